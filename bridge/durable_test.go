package bridge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

func (g *rig) attachTo(destination string, id bridge.DurableID, start *bridge.Start, c *consumer) (*bridge.QueueSubscription, error) {
	hold := bridge.Hold{Check: time.Second, Delay: func(bridge.Delivery) time.Duration { return 0 }}
	view := bridge.View{Version: frame.V12, Destination: destination}
	return g.SubscribeDurable(g.route(destination, router.Subscribe), id, start, view, c.prefetch, hold, c)
}

func (g *rig) attach(destination string, id bridge.DurableID, start *bridge.Start, c *consumer) *bridge.QueueSubscription {
	g.t.Helper()
	s, err := g.attachTo(destination, id, start, c)
	if err != nil {
		g.t.Fatal(err)
	}
	return s
}

// ackHeld settles everything that the consumer holds, confirmed.
func (g *rig) ackHeld(c *consumer) {
	g.t.Helper()
	done := make(chan error, 1)
	g.ConfirmAck(c.takeHeld(), func(err error) { done <- err })
	if err := outcome(g.t, "ConfirmAck", done); err != nil {
		g.t.Fatal(err)
	}
}

func (c *consumer) want(t *testing.T, bodies ...string) {
	t.Helper()
	for i, want := range bodies {
		if _, got := c.next(t); got != want {
			t.Fatalf("message %d: got %q, want %q", i, got, want)
		}
	}
}

func TestDurableResumesOnAnotherNode(t *testing.T) {
	srv := startNATS(t)
	one, two := newNode(t, srv, nil), newNode(t, srv, nil)
	id := bridge.DurableID{Identity: "me", Name: "n"}
	first := &bridge.Start{Kind: bridge.StartFirst}
	one.stored("/topic-store/a", numbers(0, 20)...)

	c := newConsumer(10)
	s := one.attach("/topic-store/a", id, first, c)
	c.want(t, numbers(0, 10)...)
	c.close()
	one.ackHeld(c)
	s.Stop(c.takeHeld)

	c = newConsumer(10)
	s = two.attach("/topic-store/a", id, first, c)
	c.want(t, numbers(10, 20)...)
	c.close()
	s.Stop(c.takeHeld) // All of it goes back.

	c = newConsumer(20)
	s = one.attach("/topic-store/a", id, nil, c)
	for i := 10; i < 20; i++ {
		head, body := c.next(t)
		if body != fmt.Sprint(i) || !strings.Contains(head, "redelivered:true\n") {
			t.Errorf("got %q with %q, want %d, redelivered", body, head, i)
		}
	}
	c.close()
	s.Stop(c.takeHeld)
}

func TestDurablesAreTheirOwners(t *testing.T) {
	g := newRig(t, nil)
	// Such that plain concatenation would be one.
	ids := []bridge.DurableID{{Identity: "a", Name: "bc"}, {Identity: "ab", Name: "c"}, {Name: "abc"}, {Identity: "abc", Name: ""}, {Identity: "1:a", Name: "bc"}}
	for _, id := range ids {
		c := newConsumer(1)
		s := g.attach("/topic-store/a", id, nil, c)
		s.Stop(c.takeHeld)
	}
	if got := len(g.consumers()); got != len(ids) {
		t.Errorf("consumers: got %d, want %d", got, len(ids))
	}
	for _, name := range g.consumers() {
		if len(name) != 18 || !strings.HasPrefix(name, "d_") {
			t.Errorf("consumer %q, want d_ and 16 hex digits", name)
		}
	}
}

func TestDurableChangesAreRefused(t *testing.T) {
	g := newRig(t, nil)
	id := bridge.DurableID{Identity: "me", Name: "n"}
	c := newConsumer(1)
	g.attach("/topic-store/a", id, &bridge.Start{Kind: bridge.StartAge, Age: time.Hour}, c).Stop(c.takeHeld)
	for _, tt := range []struct {
		destination string
		start       *bridge.Start
		want        error
	}{
		{"/topic-store/a", nil, nil},
		{"/topic-store/a", &bridge.Start{Kind: bridge.StartAge, Age: 60 * time.Minute}, nil},
		{"/topic-store/a", &bridge.Start{Kind: bridge.StartAge, Age: time.Minute}, bridge.ErrDurableStart},
		{"/topic-store/a", &bridge.Start{}, bridge.ErrDurableStart},
		{"/topic-store/b", nil, bridge.ErrDurableFilter},
		{"/topic-store/>", nil, bridge.ErrDurableFilter},
	} {
		s, err := g.attachTo(tt.destination, id, tt.start, c)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s from %v: got %v, want %v", tt.destination, tt.start, err, tt.want)
		}
		if s != nil {
			s.Stop(c.takeHeld)
		}
	}
}

func TestDurableLimit(t *testing.T) {
	g := newRig(t, func(cfg *bridge.Config) { cfg.Store.Durables = 2 })
	c := newConsumer(1)
	for _, name := range []string{"one", "two", "one"} {
		g.attach("/topic-store/a", bridge.DurableID{Name: name}, nil, c).Stop(c.takeHeld)
	}
	if _, err := g.attachTo("/topic-store/a", bridge.DurableID{Name: "three"}, nil, c); !errors.Is(err, bridge.ErrDurableLimit) {
		t.Errorf("got %v, want %v", err, bridge.ErrDurableLimit)
	}
}

func TestDurableDelete(t *testing.T) {
	g := newRig(t, nil)
	id := bridge.DurableID{Identity: "me", Name: "n"}
	route := g.route("/topic-store/a", router.Subscribe)
	if err := g.DeleteDurable(route, id); !errors.Is(err, bridge.ErrNoDurable) {
		t.Errorf("one that is not there: got %v, want %v", err, bridge.ErrNoDurable)
	}
	c := &losing{consumer: newConsumer(1), lost: make(chan error, 1)}
	hold := bridge.Hold{Check: time.Second, Delay: func(bridge.Delivery) time.Duration { return 0 }}
	s, err := g.SubscribeDurable(route, id, nil, bridge.View{Version: frame.V12, Destination: "d"}, 1, hold, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Stop(c.takeHeld) }()
	g.awaitPull()
	if err := g.DeleteDurable(route, id); err != nil {
		t.Fatal(err)
	}
	if err := outcome(t, "Lost", c.lost); !errors.Is(err, bridge.ErrNoDurable) {
		t.Errorf("the attachment got %v, want %v", err, bridge.ErrNoDurable)
	}
}

// losing is a consumer that tells of its loss.
type losing struct {
	*consumer
	lost chan error
}

func (l *losing) Lost(err error) { l.lost <- err }

// TestMarkedAfterUncleanStop starts on a store of which nobody knows what was delivered.
func TestMarkedAfterUncleanStop(t *testing.T) {
	for _, clean := range []bool{true, false} {
		srv := startNATS(t)
		g := newNode(t, srv, nil)
		id := bridge.DurableID{Name: "n"}
		c := newConsumer(1)
		g.attach("/topic-store/a", id, nil, c).Stop(c.takeHeld)
		g.stored("/topic-store/a", "before")
		g = newNode(t, srv, func(cfg *bridge.Config) { cfg.Queues.CleanMarks = clean })
		g.stored("/topic-store/a", "after")
		c = newConsumer(2)
		s := g.attach("/topic-store/a", id, nil, c)
		head, _ := c.next(t)
		if got := strings.Contains(head, "redelivered:true"); got == clean {
			t.Errorf("clean stop %t: redelivered is %t", clean, got)
		}
		if head, _ = c.next(t); strings.Contains(head, "redelivered:true") {
			t.Errorf("clean stop %t: what was stored afterwards is flagged", clean)
		}
		s.Stop(c.takeHeld)
	}
}

// TestHeldComesFirstAfterStart starts a bridge where an earlier one died with messages in its hands: they come at once,
// before what was never delivered, and not what was settled.
func TestHeldComesFirstAfterStart(t *testing.T) {
	srv := startNATS(t)
	g := newNode(t, srv, nil)
	id := bridge.DurableID{Name: "n"}
	c := newConsumer(6)
	s := g.attach("/topic-store/a", id, nil, c)
	defer func() { s.Stop(c.takeHeld) }()
	g.stored("/topic-store/a", numbers(0, 10)...)
	c.want(t, numbers(0, 6)...)
	c.mu.Lock()
	held := c.held // It stays full, so that it pulls no more.
	c.mu.Unlock()
	settled := make(chan error, 1)
	g.ConfirmAck([]bridge.Delivery{held[0], held[3]}, func(err error) { settled <- err })
	if err := outcome(t, "ConfirmAck", settled); err != nil {
		t.Fatal(err)
	}

	other := newNode(t, srv, nil)
	c2 := newConsumer(10)
	s2 := other.attach("/topic-store/a", id, nil, c2)
	defer func() { s2.Stop(c2.takeHeld) }()
	c2.want(t, "1", "2", "4", "5", "6", "7", "8", "9")
}
