package bridge_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// policy are the settings of queues that are shared so.
func policy(p bridge.Policy) func(*bridge.Config) {
	return func(cfg *bridge.Config) {
		cfg.Queues.Settings = func(string) bridge.QueueSettings { return bridge.QueueSettings{Policy: p} }
	}
}

// subscribeWith subscribes with options and waits until the server knows of the first pull.
func (g *rig) subscribeWith(destination string, o bridge.QueueOptions, c *consumer) *bridge.QueueSubscription {
	g.t.Helper()
	hold := bridge.Hold{Check: time.Second, Delay: func(bridge.Delivery) time.Duration { return 0 }}
	view := bridge.View{Version: frame.V12, Destination: destination}
	before := g.Stats().Pulls
	s, err := g.SubscribeQueue(g.route(destination, router.Subscribe), view, c.prefetch, hold, o, c)
	if err != nil {
		g.t.Fatal(err)
	}
	g.untilPulls(before + 1)
	return s
}

// inOrder takes messages whose bodies are numbers.
func (c *consumer) inOrder(t *testing.T, first, last int) {
	t.Helper()
	for i := first; i <= last; i++ {
		if _, got := c.next(t); got != fmt.Sprint(i) {
			t.Fatalf("got message %s, want %d", got, i)
		}
	}
}

// TestExclusiveQueuePassesOnInOrder: what the first subscription held comes first, though the second waits for any
// message and there are others.
func TestExclusiveQueuePassesOnInOrder(t *testing.T) {
	const queue, held, messages = "/queue/exclusive", 20, 100
	g := newRig(t, policy(bridge.Exclusive))
	first, second := newConsumer(held), newConsumer(messages)
	s := g.subscribeWith(queue, bridge.QueueOptions{}, first)
	for i := range held {
		if err := g.send(queue, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	first.inOrder(t, 0, held-1)
	s2 := g.subscribeWith(queue, bridge.QueueOptions{}, second)
	for i := held; i < messages; i++ {
		if err := g.send(queue, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	first.close()
	s.Stop(first.takeHeld)
	second.inOrder(t, 0, messages-1)
	second.close()
	s2.Stop(second.takeHeld)
}

// TestPrioritizedQueueInABurst: the subscription of the highest priority gets all that it has room for, however quickly
// it comes, and the other one what is beyond.
func TestPrioritizedQueueInABurst(t *testing.T) {
	const queue, room, messages = "/queue/prioritized", 600, 1_000
	g := newRig(t, policy(bridge.Prioritized))
	low, high := newConsumer(messages), newConsumer(room)
	s := g.subscribeWith(queue, bridge.QueueOptions{}, low)
	s2 := g.subscribeWith(queue, bridge.QueueOptions{Priority: 5}, high)
	results := make(chan error, messages)
	for i := range messages {
		g.SendQueue(g.message(queue, fmt.Sprint(i), bridge.SendOptions{}), func(err error) { results <- err })
	}
	for range messages {
		if err := outcome(t, "SendQueue", results); err != nil {
			t.Fatal(err)
		}
	}
	high.inOrder(t, 0, room-1)
	low.inOrder(t, room, messages-1)
	high.close()
	s2.Stop(high.takeHeld)
	low.close()
	s.Stop(low.takeHeld)
}

// TestPrioritizedSubscriptionStrandsNothingBesideAWideFilter: somebody listens to everything, so its pulls stay open
// when it has ended, and are served first.
func TestPrioritizedSubscriptionStrandsNothingBesideAWideFilter(t *testing.T) {
	const queue, messages = "/queue/wide", 50
	g := newRig(t, policy(bridge.Prioritized))
	if _, err := g.nc.SubscribeSync(">"); err != nil {
		t.Fatal(err)
	}
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	high, low := newConsumer(64), newConsumer(messages)
	s := g.subscribeWith(queue, bridge.QueueOptions{Priority: 9}, high)
	high.close()
	s.Stop(high.takeHeld)
	s2 := g.subscribeWith(queue, bridge.QueueOptions{}, low)
	for i := range messages {
		if err := g.send(queue, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	for range messages {
		head, _ := low.next(t)
		wantCount(t, head, "1", false)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the last message came after %s", took)
	}
	low.close()
	s2.Stop(low.takeHeld)
}
