package bridge_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// looker is a BrowseReceiver with so much room at a time.
type looker struct {
	mu   sync.Mutex
	room int // guarded by mu
	got  chan string
	lost chan error
}

func newLooker(room int) *looker {
	return &looker{room: room, got: make(chan string, 10_000), lost: make(chan error, 1)}
}

func (l *looker) Room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.room
}

func (l *looker) DeliverBrowsed(tail []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room -= len(tail)
	l.got <- string(tail)
	return true
}

func (l *looker) Lost(err error) { l.lost <- err }

func (l *looker) more(octets int) {
	l.mu.Lock()
	l.room += octets
	l.mu.Unlock()
}

func (l *looker) next(t *testing.T) string {
	t.Helper()
	select {
	case tail := <-l.got:
		return tail
	case err := <-l.lost:
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatal("nothing to see")
	}
	return ""
}

func (g *rig) browse(destination string, l *looker) *bridge.Browse {
	g.t.Helper()
	b, err := g.BrowseQueue(g.route(destination, router.Subscribe), bridge.View{Version: frame.V12, Destination: destination}, l)
	if err != nil {
		g.t.Fatal(err)
	}
	return b
}

// TestBrowse looks at a queue that others use, with and without direct access to its stream.
func TestBrowse(t *testing.T) {
	for _, direct := range []bool{true, false} {
		t.Run(fmt.Sprintf("direct %t", direct), func(t *testing.T) {
			const messages = 700
			g := newRig(t, nil)
			for i := range messages {
				if err := g.send("/queue/seen", fmt.Sprint(i), header("n", fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
			if !direct {
				s, err := g.js.Stream(t.Context(), bridge.QueueStream("seen"))
				if err != nil {
					t.Fatal(err)
				}
				c := s.CachedInfo().Config
				c.AllowDirect = false
				if _, err := g.js.UpdateStream(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			// A consumer takes the first ten for good and holds the next.
			c := newConsumer(20)
			s := g.subscribe("/queue/seen", c)
			defer func() { s.Stop(c.takeHeld) }()
			for range 20 {
				c.next(t)
			}
			held := c.takeHeld()
			acked := make(chan error, 1)
			g.ConfirmAck(held[:10], func(err error) { acked <- err })
			if err := outcome(t, "ConfirmAck", acked); err != nil {
				t.Fatal(err)
			}
			l := newLooker(1 << 20)
			b := g.browse("/queue/seen", l)
			defer b.Stop(nil)
			for i := 10; i < messages; i++ {
				tail := l.next(t)
				if want := fmt.Sprintf("\nn:%d\n", i); !strings.Contains(tail, want) || !strings.HasSuffix(tail, fmt.Sprintf("\n\n%d\x00\n", i)) {
					t.Fatalf("message %d: got %q", i, tail)
				}
				for _, absent := range []string{"redelivered", "x-delivery-count", "Nats-"} {
					if strings.Contains(tail, absent) {
						t.Fatalf("message %d shows %s: %q", i, absent, tail)
					}
				}
			}
			if tail := l.next(t); !strings.Contains(tail, "browser:end\n") {
				t.Errorf("the end: got %q", tail)
			}
			if got := g.left(bridge.QueueStream("seen")); got != messages-10 {
				t.Errorf("%d messages left, want %d", got, messages-10)
			}
			done := make(chan error, 1)
			g.ConfirmAck(held[10:], func(err error) { done <- err })
			if err := outcome(t, "ConfirmAck", done); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestBrowseWaitsForRoom(t *testing.T) {
	g := newRig(t, nil)
	const messages = 50
	for range messages {
		if err := g.send("/queue/room", strings.Repeat("x", 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	l := newLooker(25_000)
	b := g.browse("/queue/room", l)
	defer b.Stop(nil)
	for seen := 0; seen < messages; {
		taken := l.next(t)
		seen++
		if n := len(l.got); n > 3 {
			t.Fatalf("%d messages at once into room for 25,000 octets", n)
		}
		l.more(len(taken))
		b.Wake()
	}
	if tail := l.next(t); !strings.Contains(tail, "browser:end\n") {
		t.Errorf("the end: got %q", tail)
	}
}

func TestBrowseEndsWithTheBridgeAndWithoutRoom(t *testing.T) {
	g := newRig(t, nil)
	if err := g.send("/queue/stuck", "x"); err != nil {
		t.Fatal(err)
	}
	l := newLooker(0)
	b := g.browse("/queue/stuck", l)
	b.Stop(nil)
	if len(l.got) > 0 {
		t.Errorf("got %q without room", <-l.got)
	}
}
