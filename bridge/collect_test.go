package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// autoDelete are the settings of queues that vanish with their last subscription.
func autoDelete(cfg *bridge.Config) {
	cfg.Queues.Settings = func(string) bridge.QueueSettings { return bridge.QueueSettings{AutoDelete: true} }
}

// exists says whether a channel's stream is there.
func (g *rig) exists(channel string) bool {
	g.t.Helper()
	_, err := g.js.Stream(g.t.Context(), bridge.QueueStream(channel))
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		g.t.Fatal(err)
	}
	return err == nil
}

// comesTrue waits until a condition holds.
func comesTrue(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it never came about: " + what)
		}
	}
}

// sendSoon sends without waiting; the outcome comes through the channel.
func (g *rig) sendSoon(destination, body string) <-chan error {
	c := make(chan error, 1)
	g.SendQueue(g.message(destination, body, bridge.SendOptions{}), func(err error) { c <- err })
	return c
}

// leaveAll ends a subscription after acknowledging all that it holds.
func (g *rig) leaveAll(s *bridge.QueueSubscription, c *consumer) {
	g.t.Helper()
	done := make(chan error, 1)
	g.ConfirmAck(c.takeHeld(), func(err error) { done <- err })
	if err := outcome(g.t, "ConfirmAck", done); err != nil {
		g.t.Fatal(err)
	}
	c.close()
	s.Stop(c.takeHeld)
}

// TestDeleteWhileSending lets the last consumer go while its node and another one send, a thousand times, so that SENDs
// meet every moment of a deletion: nothing that was confirmed may be lost or come twice, and no SEND may fail.
func TestDeleteWhileSending(t *testing.T) {
	tries := 1_000
	if testing.Short() {
		tries = 100
	}
	srv := startNATS(t)
	deleteWhileSending(t, newNode(t, srv, autoDelete), newNode(t, srv, autoDelete), tries)
}

func deleteWhileSending(t *testing.T, a, b *rig, tries int) {
	t.Helper()
	const queues = 20
	var wg sync.WaitGroup
	var deleted atomic.Int64
	for n := range queues {
		wg.Go(func() {
			s := session{t: t, a: a, b: b, channel: fmt.Sprint("session", n), got: make(map[string]int)}
			err := error(nil)
			for i := 0; i < tries/queues && err == nil; i++ {
				err = s.try(n*tries/queues + i)
			}
			if err == nil {
				err = s.drain()
			}
			if err != nil {
				t.Errorf("%s: %v", s.channel, err)
			}
			deleted.Add(int64(s.deleted))
		})
	}
	wg.Wait()
	t.Logf("%d of %d tries deleted the queue", deleted.Load(), tries)
	if deleted.Load() == 0 || deleted.Load() == int64(tries) {
		t.Error("the SENDs did not meet the deletion")
	}
}

// session is a queue whose consumer comes and goes.
type session struct {
	t       *testing.T
	a, b    *rig
	channel string
	sent    int
	got     map[string]int
	deleted int
}

func (s *session) try(i int) error {
	c := newConsumer(100)
	sub := s.a.subscribe("/queue/"+s.channel, c)
	before := s.stream()
	// From 0 to 200 ms after the consumer has gone: before, during and after the deletion.
	after := time.NewTimer(time.Duration(i*7919%200) * time.Millisecond)
	if err := s.take(c); err != nil {
		return err
	}
	s.a.leaveAll(sub, c)
	<-after.C
	if i%16 == 0 { // However long the deletion takes.
		comesTrue(s.t, "the queue vanishes", func() bool { return s.stream() != before })
	}
	results := make(chan error, 6)
	for n, g := range []*rig{s.a, s.b} {
		go func() {
			for k := range 3 {
				body := fmt.Sprintf("%d-%d-%d", i, n, k)
				g.SendQueue(g.message("/queue/"+s.channel, body, bridge.SendOptions{}), func(err error) { results <- err })
			}
		}()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			return fmt.Errorf("try %d: SEND: %w", i, err)
		}
	}
	s.sent += cap(results)
	if s.stream() != before {
		s.deleted++
	}
	return nil
}

// take takes all that was sent before.
func (s *session) take(c *consumer) error {
	for len(s.got) < s.sent {
		select {
		case tail := <-c.got:
			_, body, _ := strings.Cut(tail, "\n\n")
			if s.got[body]++; s.got[body] > 1 {
				return fmt.Errorf("%q twice", body)
			}
		case <-time.After(patience):
			return fmt.Errorf("%d of %d confirmed messages are lost", s.sent-len(s.got), s.sent)
		}
	}
	return nil
}

func (s *session) drain() error {
	c := newConsumer(100)
	sub := s.b.subscribe("/queue/"+s.channel, c)
	defer s.b.leaveAll(sub, c)
	return s.take(c)
}

// stream tells streams of one name apart.
func (s *session) stream() time.Time {
	info, err := s.a.js.Stream(s.t.Context(), bridge.QueueStream(s.channel))
	if err != nil {
		return time.Time{}
	}
	return info.CachedInfo().Created
}

func TestAutoDeleteWaitsForOtherNodes(t *testing.T) {
	srv := startNATS(t)
	a, b := newNode(t, srv, nil), newNode(t, srv, nil)
	hold := bridge.Hold{Check: time.Second, Delay: func(bridge.Delivery) time.Duration { return 0 }}
	view := bridge.View{Version: frame.V12, Destination: "/queue/x"}
	first, second := newConsumer(10), newConsumer(10)
	s, err := a.SubscribeQueue(a.route("/queue/x", router.Subscribe), view, 10, hold, bridge.QueueOptions{AutoDelete: true}, first)
	if err != nil {
		t.Fatal(err)
	}
	other := b.subscribe("/queue/x", second)
	first.close()
	s.Stop(first.takeHeld)
	if err := a.send("/queue/x", "1"); err != nil {
		t.Fatal(err)
	}
	if head, body := second.next(t); body != "1" {
		t.Errorf("the other node's consumer got %q %q", head, body)
	}
	if !b.exists("x") {
		t.Fatal("deleted while another node uses it")
	}
	b.leaveAll(other, second)
	// The other node never asked for auto-delete; it learns of it from the stream.
	comesTrue(t, "the queue vanishes with its last consumer on another node", func() bool { return !b.exists("x") })
}

// TestSubjectLeftAwayIsGivenBack: a node that died after it took a subject away must not keep others from the queue.
func TestSubjectLeftAwayIsGivenBack(t *testing.T) {
	srv := startNATS(t)
	g := newNode(t, srv, nil)
	if err := g.send("/queue/left", "0"); err != nil {
		t.Fatal(err)
	}
	g.takeAway("left", "nobody")
	var waiting []<-chan error
	for i := 1; i <= 20; i++ {
		waiting = append(waiting, g.sendSoon("/queue/left", fmt.Sprint(i)))
	}
	for i, c := range waiting {
		if err := outcome(t, "SEND", c); err != nil {
			t.Errorf("SEND %d: %v", i+1, err)
		}
	}
	c := newConsumer(100)
	s := g.subscribe("/queue/left", c)
	defer func() { s.Stop(c.takeHeld) }()
	for i := range 21 {
		if _, got := c.next(t); got != fmt.Sprint(i) {
			t.Fatalf("message %d: got %q", i, got)
		}
	}
}

// TestStartGivesSubjectBack: so must one that starts.
func TestStartGivesSubjectBack(t *testing.T) {
	srv := startNATS(t)
	g := newNode(t, srv, nil)
	if err := g.send("/queue/left", "0"); err != nil {
		t.Fatal(err)
	}
	g.takeAway("left", "nobody")
	newNode(t, srv, nil)
	s, err := g.js.Stream(t.Context(), bridge.QueueStream("left"))
	if err != nil {
		t.Fatal(err)
	}
	if subjects := s.CachedInfo().Config.Subjects; !slices.Contains(subjects, "stomp.queue.left") {
		t.Errorf("subjects %q", subjects)
	}
	if n := s.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
}

// takeAway does what a node does before it deletes a queue.
func (g *rig) takeAway(channel, node string) {
	g.t.Helper()
	s, err := g.js.Stream(g.t.Context(), bridge.QueueStream(channel))
	if err != nil {
		g.t.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.Subjects = []string{"_natstomp.closed." + c.Name}
	c.Metadata = maps.Clone(c.Metadata)
	c.Metadata["natstomp_closing"] = node
	if _, err := g.js.UpdateStream(g.t.Context(), c); err != nil {
		g.t.Fatal(err)
	}
}

func TestIdleDelete(t *testing.T) {
	srv := startNATS(t)
	idle := func(cfg *bridge.Config) {
		cfg.Queues.IdleDelete = 2 * time.Second
		cfg.Queues.Settings = func(channel string) bridge.QueueSettings {
			return bridge.QueueSettings{Keep: channel == "kept"}
		}
	}
	a, b := newNode(t, srv, idle), newNode(t, srv, nil)
	for _, channel := range []string{"kept", "empty", "full", "used"} {
		if err := a.EnsureQueue(a.route("/queue/"+channel, router.Send)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.send("/queue/full", "x"); err != nil {
		t.Fatal(err)
	}
	c := newConsumer(1)
	s := b.subscribe("/queue/used", c)
	comesTrue(t, "the empty queue vanishes", func() bool { return !a.exists("empty") })
	for _, channel := range []string{"kept", "full", "used"} {
		if !a.exists(channel) {
			t.Errorf("queue %s was deleted", channel)
		}
	}
	c.close()
	s.Stop(c.takeHeld)
	comesTrue(t, "the queue that is used no more vanishes", func() bool { return !a.exists("used") })
	// The other node did not delete it, and makes it anew.
	if err := b.send("/queue/used", "y"); err != nil {
		t.Errorf("SEND to a queue that another node deleted: %v", err)
	}
}

// TestSubscriptionSurvivesDeletion: a node that was missed when another one asked for users goes on with the new queue.
func TestSubscriptionSurvivesDeletion(t *testing.T) {
	srv := startNATS(t)
	g := newNode(t, srv, nil)
	c := newConsumer(10)
	s := g.subscribe("/queue/missed", c)
	defer func() { s.Stop(c.takeHeld) }()
	stream := bridge.QueueStream("missed")
	g.takeAway("missed", "other")
	for _, word := range []string{"closing", "gone"} {
		if err := g.nc.Publish("_natstomp.queue."+word, []byte(stream)); err != nil {
			t.Fatal(err)
		}
		if word == "closing" {
			if err := g.js.DeleteStream(t.Context(), stream); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := g.send("/queue/missed", "x"); err != nil {
		t.Fatal(err)
	}
	if _, got := c.next(t); got != "x" {
		t.Errorf("got %q", got)
	}
}

func TestSettingsChangeAtStart(t *testing.T) {
	srv := startNATS(t)
	first := newNode(t, srv, func(cfg *bridge.Config) { cfg.Queues.Settings = size(1 << 20) })
	if err := first.send("/queue/set", "x"); err != nil {
		t.Fatal(err)
	}
	newNode(t, srv, func(cfg *bridge.Config) {
		cfg.Queues.Settings = func(string) bridge.QueueSettings {
			return bridge.QueueSettings{MaxBytes: 2 << 20, MaxAge: time.Hour, Policy: bridge.Exclusive}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := first.js.Stream(ctx, bridge.QueueStream("set"))
	if err != nil {
		t.Fatal(err)
	}
	if c := s.CachedInfo().Config; c.MaxBytes != 2<<20 || c.MaxAge != time.Hour {
		t.Errorf("stream: max_bytes %d, max_age %s", c.MaxBytes, c.MaxAge)
	}
	if n := s.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
	consumer, err := s.Consumer(ctx, "stomp")
	if err != nil {
		t.Fatal(err)
	}
	if p := consumer.CachedInfo().Config.PriorityPolicy; p != jetstream.PriorityPolicyPinned {
		t.Errorf("policy of the durable: %v", p)
	}
}
