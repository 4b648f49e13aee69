package bridge_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// answers collects what requests are answered, by their number.
type answers struct {
	t    *testing.T
	wait sync.WaitGroup

	mu  sync.Mutex
	got map[int][]bridge.Answer
}

func newAnswers(t *testing.T) *answers { return &answers{t: t, got: map[int][]bridge.Answer{}} }

// request sends a request and returns it; an answer is awaited.
func (a *answers) request(g *rig, number int, destination string, timeout time.Duration) *bridge.Pending {
	a.wait.Add(1)
	id := fmt.Sprint(number)
	p, err := g.Request(bridge.Request{
		Route: g.route(destination, router.Send), Body: []byte(id), Timeout: timeout, Correlation: &id,
		View: bridge.View{Version: frame.V12, Destination: "/reply/a"},
		Done: func(answer bridge.Answer) {
			answer.Tail = append([]byte(nil), answer.Tail...)
			a.mu.Lock()
			a.got[number] = append(a.got[number], answer)
			first := len(a.got[number]) == 1
			a.mu.Unlock()
			if first {
				a.wait.Done()
			}
		},
	})
	if err != nil {
		a.t.Error(err)
	}
	return p
}

// check waits for one answer each, and asserts that there is no second and that nothing is left behind.
func (a *answers) check(g *rig, want int) {
	a.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); a.wait.Wait() }()
	select {
	case <-done:
	case <-time.After(patience):
		a.t.Fatal("requests without answer")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.got) != want {
		a.t.Errorf("got answers to %d requests, want %d", len(a.got), want)
	}
	for number, list := range a.got {
		text := string(list[0].Tail)
		if len(list) != 1 || !strings.Contains(text, fmt.Sprintf("correlation-id:%d\n", number)) {
			a.t.Errorf("request %d: got %d answers, the first %q, want one with its correlation-id", number, len(list), text)
		}
	}
	if m, q := g.OpenRequests(); m != 0 || q != 0 {
		a.t.Errorf("requests left open: got %d in the map, %d in the queue, want none", m, q)
	}
}

// outcomes counts the answers by outcome.
func (a *answers) outcomes() map[bridge.Outcome]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := map[bridge.Outcome]int{}
	for _, list := range a.got {
		for _, answer := range list {
			n[answer.Outcome]++
		}
	}
	return n
}

// respond answers each message of a subject as f says, on a goroutine of nats.go.
func (g *rig) respond(subject string, f func(m *nats.Msg)) {
	g.t.Helper()
	if _, err := g.nc.Subscribe(subject, f); err != nil {
		g.t.Fatal(err)
	}
	if err := g.nc.Flush(); err != nil {
		g.t.Fatal(err)
	}
}

// TestRepliesRaceTheDeadline lets a third of the replies arrive around the deadline, some twice. A third comes long before
// it and a third never, so that there are both outcomes however fast the machine is.
func TestRepliesRaceTheDeadline(t *testing.T) {
	g := newRig(t, nil)
	var replies atomic.Int64
	var timers sync.WaitGroup
	g.respond("stomp.query.never", func(*nats.Msg) {})
	g.respond("stomp.query.race", func(m *nats.Msg) {
		for range 1 + rand.N(2) {
			replies.Add(1)
			timers.Add(1)
			time.AfterFunc(rand.N(6*time.Millisecond), func() {
				defer timers.Done()
				if err := m.Respond(m.Data); err != nil {
					t.Error(err)
				}
			})
		}
	})
	a := newAnswers(t)
	const requests = 3000
	for i := range requests {
		switch i % 3 {
		case 0:
			a.request(g, i, "/query/race", 3*time.Millisecond)
		case 1:
			a.request(g, i, "/query/race", time.Minute)
		case 2:
			a.request(g, i, "/query/never", 3*time.Millisecond)
		}
	}
	a.check(g, requests)
	n := a.outcomes()
	if n[bridge.Replied]+n[bridge.TimedOut] != requests || n[bridge.Replied] < requests/3 || n[bridge.TimedOut] < requests/3 {
		t.Errorf("got %v, want replies and timeouts, %d in all", n, requests)
	}
	timers.Wait()
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "late replies", func() (got, want any) {
		return g.Stats().LateReplies, uint64(replies.Load()) - uint64(n[bridge.Replied])
	})
}

// eventually waits until got is want.
func eventually(t *testing.T, what string, f func() (got, want any)) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		got, want := f()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got %v, want %v", what, got, want)
		}
	}
}

func TestDeadlinesInAnyOrder(t *testing.T) {
	g := newRig(t, nil)
	g.respond("stomp.query.silent", func(*nats.Msg) {})
	a := newAnswers(t)
	a.request(g, 0, "/query/silent", time.Minute).Cancel()
	a.wait.Done()
	began := time.Now()
	for i, ms := range []int{400, 100, 300, 50, 200} {
		a.request(g, i+1, "/query/silent", time.Duration(ms)*time.Millisecond)
	}
	a.check(g, 5)
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("the last timed out after %v, want 400ms", took)
	}
}

// TestCancelledRequestsAreSilent cancels requests while their replies arrive: each is either answered or cancelled.
func TestCancelledRequestsAreSilent(t *testing.T) {
	g := newRig(t, nil)
	g.respond("stomp.query.echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }) // A lost reply shows below.
	var answered atomic.Int64
	const requests = 2000
	for i := range requests {
		id := fmt.Sprint(i)
		cancelled := new(atomic.Bool)
		p, err := g.Request(bridge.Request{
			Route: g.route("/query/echo", router.Send), Timeout: time.Minute, Correlation: &id,
			View: bridge.View{Version: frame.V12, Destination: "/reply/a"},
			Done: func(bridge.Answer) { answered.Add(1) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			p.Cancel()
			cancelled.Store(true)
		}
	}
	eventually(t, "open requests", func() (got, want any) { m, q := g.OpenRequests(); return m + q, 0 })
	eventually(t, "replies", func() (got, want any) { return uint64(answered.Load()) + g.Stats().LateReplies, uint64(requests) })
	if n := answered.Load(); n < requests/2 {
		t.Errorf("answered: got %d, want at least the %d that were not cancelled", n, requests/2)
	}
}

// TestInboxIsNotGuessed publishes replies to guessed subjects (reliability D5).
func TestInboxIsNotGuessed(t *testing.T) {
	guesses := 200_000
	if testing.Short() || raceEnabled {
		guesses = 50_000
	}
	g := newRig(t, nil)
	g.known()
	seen := make(chan string, 1)
	var last atomic.Pointer[nats.Msg]
	g.respond("stomp.query.guess", func(m *nats.Msg) {
		last.Store(m)
		seen <- m.Reply
	})
	a := newAnswers(t)
	a.request(g, 0, "/query/guess", time.Minute)
	reply := <-seen
	prefix, ok := strings.CutPrefix(reply, g.Inbox())
	if !ok || strings.Contains(prefix, ".") {
		t.Fatalf("got the reply subject %q, want one token below %q", reply, g.Inbox())
	}
	for i := range guesses {
		// The inbox itself is known to every responder; the token is what must not be guessed.
		if err := g.nc.Publish(fmt.Sprintf("%s%022d~60000", g.Inbox(), i), []byte("forged")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "guesses counted", func() (got, want any) { return g.Stats().LateReplies, uint64(guesses) })
	if err := last.Load().Respond([]byte("true")); err != nil {
		t.Fatal(err)
	}
	a.check(g, 1)
	if text := string(a.got[0][0].Tail); !strings.Contains(text, "\n\ntrue\x00") {
		t.Errorf("got the answer %q, want the true one", text)
	}
}

func TestRequestTooLarge(t *testing.T) {
	g := newRig(t, nil)
	_, err := g.Request(bridge.Request{
		Route: g.route("/query/x", router.Send), Body: make([]byte, 3<<20), Timeout: time.Minute,
		Done: func(bridge.Answer) { t.Error("Done was called") },
	})
	if !errors.Is(err, bridge.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, bridge.ErrTooLarge)
	}
	if m, q := g.OpenRequests(); m+q != 0 {
		t.Errorf("requests left open: got %d, want none", m+q)
	}
}

// TestRequestWithoutNATS asks while the link is down: nobody can answer, and nobody has to wait to learn it.
func TestRequestWithoutNATS(t *testing.T) {
	var data *nats.Conn
	g := newRig(t, func(c *bridge.Config) { data = c.Data })
	a := newAnswers(t)
	data.Close()
	a.request(g, 1, "/command/x", time.Minute)
	a.check(g, 1)
	if text := string(a.got[1][0].Tail); !strings.Contains(text, "x-error:no responder\nx-executed:false\n") {
		t.Errorf("got the answer %q, want no responder", text)
	}
}
