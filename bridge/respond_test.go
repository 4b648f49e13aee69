package bridge_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// responder answers requests with their body, or refuses them.
type responder struct {
	g *rig

	mu       sync.Mutex
	refusal  string
	requests []string // the tails
	taken    int
}

func (r *responder) DeliverRequest(q *bridge.Asked) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal != "" {
		return r.refusal
	}
	r.taken++
	r.requests = append(r.requests, string(q.Append(nil, "/reply/token")))
	if q.Reply != "" {
		if err := r.g.NewSender().Answer(q.Reply, nil, []byte("answer"), nil); err != nil {
			r.g.t.Error(err)
		}
	}
	return ""
}

func (r *responder) refuse(text string) {
	r.mu.Lock()
	r.refusal = text
	r.mu.Unlock()
}

func (r *responder) last(t *testing.T) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) == 0 {
		t.Fatal("no request came")
	}
	return r.requests[len(r.requests)-1]
}

// serve makes a responder and waits until NATS knows it.
func (g *rig) serve(destination string) (*responder, *bridge.Service) {
	g.t.Helper()
	r := &responder{g: g}
	live := make(chan error, 1)
	s := g.Serve(g.route(destination, router.Subscribe), bridge.View{Version: frame.V12, Destination: destination}, r,
		func(err error) { live <- err })
	if err := outcome(g.t, "Serve", live); err != nil {
		g.t.Fatal(err)
	}
	return r, s
}

// TestDeadlineCrossesNodes asks through one node what a responder of another answers.
func TestDeadlineCrossesNodes(t *testing.T) {
	g := newRig(t, func(c *bridge.Config) { c.RequestTimeout = 30 * time.Second })
	n := g.second()
	r, s := n.serve("/query/far")
	defer s.Close()
	for i, tt := range []struct{ timeout, want time.Duration }{
		{5 * time.Second, 5 * time.Second},
		{30 * time.Second, 30 * time.Second},
		{time.Hour, 30 * time.Second}, // No longer than the responder's own node allows.
	} {
		a := newAnswers(t)
		before := time.Now()
		a.request(g, i, "/query/far", tt.timeout)
		a.check(g, 1)
		after := time.Now()
		_, text, _ := strings.Cut(r.last(t), "x-deadline:")
		ms, err := strconv.ParseInt(text[:strings.IndexByte(text, '\n')], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		got := time.UnixMilli(ms)
		if got.Before(before.Add(tt.want-time.Millisecond)) || got.After(after.Add(tt.want)) {
			t.Errorf("timeout %v: x-deadline is %v from now, want %v", tt.timeout, got.Sub(before), tt.want)
		}
		if text := string(a.got[i][0].Tail); !strings.HasSuffix(text, "\n\nanswer\x00\n") {
			t.Errorf("got the answer %q", text)
		}
	}
}

func TestRespondersShareAcrossNodes(t *testing.T) {
	g := newRig(t, func(c *bridge.Config) { c.RequestTimeout = 30 * time.Second })
	n := g.second()
	a := newAnswers(t)
	here, s1 := g.serve("/query/shared")
	defer s1.Close()
	there, s2 := n.serve("/query/shared")
	defer s2.Close()
	const requests = 200
	for i := range requests {
		a.request(g, i, "/query/shared", time.Minute)
	}
	a.check(g, requests)
	here.mu.Lock()
	defer here.mu.Unlock()
	there.mu.Lock()
	defer there.mu.Unlock()
	if here.taken+there.taken != requests || here.taken == 0 || there.taken == 0 {
		t.Errorf("got %d and %d requests, want %d in all and some on each node", here.taken, there.taken, requests)
	}
}

// TestServiceClosesUnderLoad ends a responder while requests come: each has one answer, and none waits for its deadline.
func TestServiceClosesUnderLoad(t *testing.T) {
	g := newRig(t, func(c *bridge.Config) { c.RequestTimeout = time.Minute })
	r, s := g.serve("/command/leaving")
	a := newAnswers(t)
	const requests = 3000
	for i := range requests {
		if i == requests/3 {
			r.refuse(bridge.ResponderGone)
			s.Close()
		}
		a.request(g, i, "/command/leaving", time.Minute)
	}
	a.check(g, requests)
	n := a.outcomes()
	r.mu.Lock()
	defer r.mu.Unlock()
	if n[bridge.Replied] != r.taken || n[bridge.Replied]+n[bridge.ServiceError]+n[bridge.NoResponder] != requests || n[bridge.NoResponder] == 0 {
		t.Errorf("got %v with %d taken, want a reply to each that was taken and an error at once to the others", n, r.taken)
	}
}

// TestRefusalIsAServiceError looks at a refusal as a native requester sees it.
func TestRefusalIsAServiceError(t *testing.T) {
	g := newRig(t, func(c *bridge.Config) { c.RequestTimeout = time.Minute })
	r, s := g.serve("/query/busy")
	defer s.Close()
	r.refuse(bridge.ResponderBusy)
	m, err := g.nc.Request("stomp.query.busy", nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(m.Header, len(m.Data))
	want := fmt.Sprint(nats.Header{"Nats-Service-Error-Code": {"503"}, "Nats-Service-Error": {"responder overloaded"}}, 0)
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
