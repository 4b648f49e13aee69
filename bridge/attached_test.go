package bridge_test

import (
	"errors"
	"testing"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/router"
)

// fullAt attaches a consumer that holds as much as it may, so that it has no open pull.
func (g *rig) fullAt(destination string, id bridge.DurableID) (*bridge.QueueSubscription, *losing) {
	g.t.Helper()
	c := &losing{newConsumer(1), make(chan error, 1)}
	s, err := g.SubscribeDurable(g.route(destination, router.Subscribe), id, nil, bridge.View{}, 1, bridge.Hold{Check: patience}, c)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() {
		c.close()
		s.Stop(c.takeHeld)
	})
	g.stored(destination, "held", "waits")
	c.next(g.t)
	return s, c
}

func (g *rig) deletes(destination string, id bridge.DurableID) {
	g.t.Helper()
	if err := g.DeleteDurable(g.route(destination, router.Subscribe), id); err != nil {
		g.t.Fatal(err)
	}
}

func (c *losing) wantLost(t *testing.T) {
	t.Helper()
	if err := outcome(t, "Lost", c.lost); !errors.Is(err, bridge.ErrNoDurable) {
		t.Errorf("the attachment got %v, want %v", err, bridge.ErrNoDurable)
	}
}

// TestDeletedDurableIsToldToAll deletes a durable subscription from which full receivers of two nodes read.
func TestDeletedDurableIsToldToAll(t *testing.T) {
	srv := startNATS(t)
	one, two := newNode(t, srv, nil), newNode(t, srv, nil)
	id := bridge.DurableID{Identity: "me", Name: "n"}
	_, here := one.fullAt("/topic-store/a", id)
	_, there := two.fullAt("/topic-store/a", id)
	stays := bridge.DurableID{Identity: "me", Name: "stays"}
	_, other := one.fullAt("/topic-store/a", stays)
	one.deletes("/topic-store/a", id)
	here.wantLost(t)
	there.wantLost(t)
	if len(other.lost) > 0 {
		t.Errorf("who reads from another one was told: %v", <-other.lost)
	}
	one.deletes("/topic-store/a", stays)
	other.wantLost(t)
}

// TestDurableDeletedInAnOutage deletes a durable subscription, and makes one of its name to another destination, while
// a node that reads from it is away. It must not go on with the other one.
func TestDurableDeletedInAnOutage(t *testing.T) {
	for _, again := range []bool{false, true} {
		srv := externalServer(t)
		store := func(cfg *bridge.Config) { cfg.Store.Subjects = "stomp.store.>" }
		away, there := newRemote(t, srv, store), newRemote(t, srv, store)
		id := bridge.DurableID{Identity: "me", Name: "n"}
		_, c := away.fullAt("/topic-store/a", id)
		away.link.breakDown()
		away.noticed()
		there.deletes("/topic-store/a", id)
		if again {
			other := newConsumer(1)
			there.attach("/topic-store/b", id, nil, other).Stop(other.takeHeld)
		}
		away.link.restore()
		c.wantLost(t)
	}
}

// TestDurableReplacedBehindOurBack: NATS deletes a durable subscription without a word to us, and there is another one of
// its name, to another destination. Who read from the first is shown nothing of it.
func TestDurableReplacedBehindOurBack(t *testing.T) {
	srv := startNATS(t)
	one, two := newNode(t, srv, nil), newNode(t, srv, nil)
	id := bridge.DurableID{Identity: "me", Name: "n"}
	s, c := one.fullAt("/topic-store/a", id)
	for _, name := range one.consumers() {
		if err := one.js.DeleteConsumer(t.Context(), "STORE", name); err != nil {
			t.Fatal(err)
		}
	}
	other := newConsumer(1)
	again := two.attach("/topic-store/b", id, nil, other)
	defer func() {
		other.close()
		again.Stop(other.takeHeld)
	}()
	one.stored("/topic-store/b", "held", "secret")
	other.next(t)
	c.takeHeld()
	s.Wake() // It has room again.
	c.wantLost(t)
	c.close()
	s.Stop(c.takeHeld)
	if len(c.got) > 0 {
		t.Errorf("who was subscribed to another destination got %q", <-c.got)
	}
	two.ackHeld(other)
	again.Wake()
	other.want(t, "secret")
}
