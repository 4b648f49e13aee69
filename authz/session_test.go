package authz_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natstomp/natstomp/authz"
)

// TestAllocations holds a remembered decision to what Allowed promises.
func TestAllocations(t *testing.T) {
	s := newSession(t, newAuthorizer(t, rulesFor(100)), "user0")
	for _, channel := range []string{"dept0.team0.in", "elsewhere"} {
		s.Allowed(authz.Write, "events", channel)
		if got := testing.AllocsPerRun(1000, func() { s.Allowed(authz.Write, "events", channel) }); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", channel, got)
		}
	}
}

// TestC13CacheDies changes a policy under what a session remembers.
func TestC13CacheDies(t *testing.T) {
	const open, closed = "p, role:x, events, >, *, allow\ng, alice, role:x", "p, role:x, events, >, *, allow"
	a := newAuthorizer(t, open)
	s := newSession(t, a, "alice")
	for i := range 100 {
		load(t, a, []string{open, closed}[i%2])
		for range 2 {
			for _, channel := range []string{"a", "b", ">", "a.*"} {
				if got, want := s.Allowed(authz.Read, "events", channel), i%2 == 0; got != want {
					t.Fatalf("%s after %d changes: got %t, want %t", channel, i, got, want)
				}
			}
		}
		if s.Allowed(authz.Read, "queues", "a") {
			t.Fatal("another resource: got allowed, want denied")
		}
	}
}

// TestC13Memory asks a session for a million channels, the longest there are.
func TestC13Memory(t *testing.T) {
	asked := 1_000_000
	if raceEnabled || testing.Short() {
		asked = 10_000
	}
	s := newSession(t, newAuthorizer(t, "p, alice, events, x.>, write, allow"), "alice")
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	s.Allowed(authz.Write, "events", "a") // What an enforcer needs is no session's.
	before := heap()
	tail := strings.Repeat("x", 500)
	for i := range asked {
		s.Allowed(authz.Write, "events", fmt.Sprintf("x.%09d%s", i, tail))
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("got %d octets for a session, want at most 1 MiB", after-before)
	}
	runtime.KeepAlive(s)
}

// TestC14Reload has eight goroutines decide while the policy changes a thousand times. What is asked after a Load has
// returned, and answered before the next begins, is answered by that policy.
func TestC14Reload(t *testing.T) {
	const toggles = 1000
	const open = "p, role:x, events, >, *, allow\np, role:y, events, >, *, allow\ng, alice, role:x"
	const closed = "p, role:x, events, >, *, allow\np, role:y, events, >, *, deny\ng, alice, role:x\ng, alice, role:y"
	a := newAuthorizer(t, open)
	s := newSession(t, a, "alice") // One for all: its memory is what could go stale.
	var loaded atomic.Int64        // Twice the number of the policy in force; one more while the next is loaded.
	var done atomic.Bool
	var wg sync.WaitGroup
	var asked, checked, stale [8]int
	for g := range 8 {
		wg.Go(func() {
			for i := 0; !done.Load(); i++ {
				before := loaded.Load()
				got := s.Allowed(authz.Action(1+i%2), "events", fmt.Sprintf("c%d", (i+g)%20))
				asked[g]++
				if before%2 == 0 && loaded.Load() == before {
					checked[g]++
					if got != (before/2%2 == 0) {
						stale[g]++
					}
				}
			}
		})
	}
	for i := range int64(toggles) {
		loaded.Store(2*i + 1)
		load(t, a, []string{closed, open}[i%2])
		loaded.Store(2*i + 2)
		for deadline := time.Now().Add(200 * time.Microsecond); time.Now().Before(deadline); {
			runtime.Gosched()
		}
	}
	done.Store(true)
	wg.Wait()
	sum := func(list [8]int) (n int) {
		for _, v := range list {
			n += v
		}
		return n
	}
	if sum(stale) != 0 || sum(checked) < toggles {
		t.Errorf("got %d decisions of an old policy among %d, want 0 among at least %d", sum(stale), sum(checked), toggles)
	}
	t.Logf("%d decisions, %d of them between changes", sum(asked), sum(checked))
}

// TestNoDecisionWaitsForALoad (FR-114) takes decisions, remembered and not, of sessions that are there and of new ones,
// while no Load can get on. How long they take beside one that does is BenchmarkBesideLoads.
func TestNoDecisionWaitsForALoad(t *testing.T) {
	a := newAuthorizer(t, rulesFor(100))
	s := newSession(t, a, "user0")
	s.Allowed(authz.Write, "events", "dept0.team0.x")
	release := authz.HoldLoads(a)
	loaded, decided := make(chan error, 1), make(chan bool, 1)
	go func() { loaded <- a.Load("policy.csv", []byte(onlyB)) }()
	go func() {
		decided <- s.Allowed(authz.Write, "events", "dept0.team0.x") && s.Allowed(authz.Write, "events", "dept0.team0.y") &&
			newSession(t, a, "user1").Allowed(authz.Write, "events", "dept1.team0.x")
	}()
	select {
	case allowed := <-decided:
		if !allowed {
			t.Error("got a denial, want what the policy before allows")
		}
	case <-time.After(patience):
		t.Error("decisions wait for a Load")
	}
	release()
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	if s.Allowed(authz.Write, "events", "dept0.team0.x") {
		t.Error("got what the policy before allows, want a denial")
	}
}

// TestHook looks at what Changed is told and at what holds when it is.
func TestHook(t *testing.T) {
	var told []authz.Status
	var a *authz.Authorizer
	var s *authz.Session
	c := authz.Config{Changed: func(st authz.Status) {
		told = append(told, st)
		if s != nil && s.Allowed(authz.Read, "events", "a") != (st.Epoch == 1) {
			t.Errorf("epoch %d: the session was not asked anew", st.Epoch)
		}
		if a.Status().Epoch != st.Epoch {
			t.Errorf("got epoch %d, want that of the status, %d", st.Epoch, a.Status().Epoch)
		}
	}}
	a, err := authz.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if st := a.Status(); st.Epoch != 0 || newSession(t, a, "alice").Allowed(authz.Read, "events", "a") {
		t.Errorf("got %+v before the first policy, want that nothing is allowed", st)
	}
	load(t, a, "# first\np, alice, events, a, read, allow\n\np, bob, events, a, read, allow\ng, bob, role:x\n")
	s = newSession(t, a, "alice")
	s.Allowed(authz.Read, "events", "a")
	bad := a.Load("other.csv", nil)
	lost := errors.New("lost")
	a.Fail("bucket", lost)
	load(t, a, "p, bob, events, a, read, allow")

	if len(told) != 4 {
		t.Fatalf("got %d calls, want 4", len(told))
	}
	if st := told[0]; st.Epoch != 1 || st.Origin != "policy.csv" || st.Rules != 2 || st.Links != 1 || st.Loaded.IsZero() || st.Err != nil {
		t.Errorf("got %+v, want the first policy", st)
	}
	if st := told[1]; st.Epoch != 1 || st.Origin != "policy.csv" || !errors.Is(st.Err, bad) || st.Refused != 1 {
		t.Errorf("got %+v, want the first policy and %v", st, bad)
	}
	if st := told[2]; !errors.Is(st.Err, lost) || st.Err.Error() != "bucket: lost" || st.Refused != 2 {
		t.Errorf("got %+v, want %v", st, lost)
	}
	if st := told[3]; st.Epoch != 2 || st.Err != nil || st.Refused != 2 {
		t.Errorf("got %+v, want the second policy", st)
	}
}
