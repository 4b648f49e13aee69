package auth_test

import (
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/natstomp/natstomp/connector/auth"
)

// told is what a Repeats has told.
type told struct {
	mu  sync.Mutex
	all []auth.Repeated
}

func (l *told) tell(r auth.Repeated) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
}

func (l *told) take() []auth.Repeated {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

func want(t *testing.T, l *told, when string, want ...auth.Repeated) {
	t.Helper()
	if got := l.take(); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", when, got, want)
	}
}

// TestFR107OneLineAMinute holds FR-107: a browser that comes every 6 s with an expired token is one line, and one more each
// minute with how often it came, until it stops.
func TestFR107OneLineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l told
		r := auth.NewRepeats(l.tell)
		from := netip.MustParseAddr("192.0.2.1")
		if !r.Refused(from, auth.CodeExpired) {
			t.Error("the first one is not told")
		}
		for range 3 * 10 { // 3 minutes.
			time.Sleep(6*time.Second - time.Millisecond)
			if r.Refused(from, auth.CodeExpired) {
				t.Error("one more is told at once")
			}
		}
		synctest.Wait()
		want(t, &l, "3 minutes of it", auth.Repeated{From: from, Code: auth.CodeExpired, Count: 10},
			auth.Repeated{From: from, Code: auth.CodeExpired, Count: 10})
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, &l, "its end", auth.Repeated{From: from, Code: auth.CodeExpired, Count: 10})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		want(t, &l, "silence")
		if !r.Refused(from, auth.CodeExpired) {
			t.Error("one of another day is not told")
		}
		r.Stop()
		want(t, &l, "stop")
	})
}

// TestRepeatsAreOfOneSourceAndCode: another address, and another reason, are told by themselves.
func TestRepeatsAreOfOneSourceAndCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l told
		r := auth.NewRepeats(l.tell)
		for _, tt := range []struct {
			from, code string
			now        bool
		}{
			{"192.0.2.1", auth.CodeExpired, true},
			{"192.0.2.1", auth.CodePasscode, true},
			{"192.0.2.2", auth.CodeExpired, true},
			{"::ffff:192.0.2.2", auth.CodeExpired, false},
			{"2001:db8::1", auth.CodeExpired, true},
			{"2001:db8::2", auth.CodeExpired, false}, // One host has a whole /64.
			{"2001:db8:0:1::1", auth.CodeExpired, true},
		} {
			if now := r.Refused(netip.MustParseAddr(tt.from), tt.code); now != tt.now {
				t.Errorf("%s, %s: got %v", tt.from, tt.code, now)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := l.take(); len(got) != 2 {
			t.Errorf("got %v, want what 2 sources left out", got)
		}
		r.Stop()
	})
}

// TestRepeatsAreBounded: an attack from everywhere costs no more memory than from 10,000 sources, and is counted all the same.
func TestRepeatsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attackers = 50_000
		var l told
		r := auth.NewRepeats(l.tell)
		lines := 0
		from := netip.MustParseAddr("10.0.0.0")
		for range attackers {
			from = from.Next()
			if r.Refused(from, auth.CodePasscode) {
				lines++
			}
		}
		if lines != 10_001 {
			t.Errorf("got %d lines at once", lines)
		}
		r.Stop()
		want(t, &l, "the others", auth.Repeated{Code: auth.CodePasscode, Count: attackers - lines})
		if !r.Refused(from, auth.CodePasscode) {
			t.Error("after Stop nobody is told")
		}
	})
}
