package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/router"
)

// TestDeleteWhileSendingShared is TestDeleteWhileSending for two nodes on an external NATS.
func TestDeleteWhileSendingShared(t *testing.T) {
	srv := externalServer(t)
	deleteWhileSending(t, newRemote(t, srv, autoDelete).rig, newRemote(t, srv, autoDelete).rig, 200)
}

// idle has queues vanish that nobody uses for a moment.
func idle(cfg *bridge.Config) { cfg.Queues.IdleDelete = 300 * time.Millisecond }

// TestDeletedWhileAway deletes queues while another node that knows them is away: that one must not take them for lost,
// and its subscription and what it sends go on with new ones.
func TestDeletedWhileAway(t *testing.T) {
	srv := externalServer(t)
	n := newRemote(t, srv, nil)
	c := newConsumer(10)
	s := n.subscribe("/queue/read", c)
	defer func() { s.Stop(c.takeHeld) }()
	results := make(chan error, 10)
	n.begin("/queue/sent", 0, 1, results)
	all(t, results, 1)
	reader := newConsumer(10)
	r := n.subscribe("/queue/sent", reader)
	reader.next(t)
	n.leaveAll(r, reader)
	n.link.breakDown()
	n.noticed()
	n.begin("/queue/sent", 1, 4, results)
	newRemote(t, srv, idle)
	comesTrue(t, "the queues vanish", func() bool { return !n.exists("read") && !n.exists("sent") })
	n.link.restore()
	all(t, results, 3)
	if got, want := n.bodies(bridge.QueueStream("sent")), []string{"1", "2", "3"}; !slices.Equal(got, want) {
		t.Errorf("stored: got %q, want %q", got, want)
	}
	if err := n.send("/queue/read", "x"); err != nil {
		t.Error(err)
	}
	if _, got := c.next(t); got != "x" {
		t.Errorf("got %q, want x", got)
	}
	if gone := n.Gone(); len(gone) > 0 {
		t.Errorf("gone: got %q, want none", gone)
	}
}

// TestDeletedElsewhereIsMissed: that natstomp deleted a queue once says nothing about the one that came after it.
func TestDeletedElsewhereIsMissed(t *testing.T) {
	srv := externalServer(t)
	n, other := newRemote(t, srv, nil), newRemote(t, srv, idle)
	if err := other.EnsureQueue(other.route("/queue/twice", router.Send)); err != nil {
		t.Fatal(err)
	}
	comesTrue(t, "the queue vanishes", func() bool { return !n.exists("twice") })
	if err := n.send("/queue/twice", "x"); err != nil {
		t.Fatal(err)
	}
	if err := n.js.DeleteStream(t.Context(), bridge.QueueStream("twice")); err != nil {
		t.Fatal(err)
	}
	if err := n.send("/queue/twice", "y"); !errors.Is(err, bridge.ErrNoStream) {
		t.Errorf("got %v, want %v", err, bridge.ErrNoStream)
	}
}

// TestSubjectLeftAwayShared: a node that died after it took a subject away must not keep others from the queue.
func TestSubjectLeftAwayShared(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	results := make(chan error, 20)
	n.begin("/queue/left", 0, 1, results)
	all(t, results, 1)
	n.takeAway("left", "nobody")
	n.begin("/queue/left", 1, 20, results)
	all(t, results, 19)
	n.inOrder(bridge.QueueStream("left"), 20)
}

// TestForeignQueueIsKept: a stream that somebody else made for a queue is not natstomp's to delete.
func TestForeignQueueIsKept(t *testing.T) {
	srv := externalServer(t)
	n := newRemote(t, srv, func(cfg *bridge.Config) { idle(cfg); autoDelete(cfg) })
	_, err := n.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: bridge.QueueStream("foreign"), Subjects: []string{"stomp.queue.foreign"}, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, channel := range []string{"foreign", "own"} {
		c := newConsumer(1)
		s := n.subscribe("/queue/"+channel, c)
		if err := n.send("/queue/"+channel, strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
		c.next(t)
		n.leaveAll(s, c)
	}
	comesTrue(t, "the own queue vanishes", func() bool { return !n.exists("own") })
	if !n.exists("foreign") {
		t.Error("the stream of somebody else was deleted")
	}
}

// TestQueueOfADeadNodeVanishes: the last subscription of an auto-delete queue goes with its node, and another one, which
// never used the queue, deletes it.
func TestQueueOfADeadNodeVanishes(t *testing.T) {
	srv := externalServer(t)
	dead := newRemote(t, srv, nil)
	c := newConsumer(1)
	hold := bridge.Hold{Check: time.Second, Delay: func(bridge.Delivery) time.Duration { return 0 }}
	s, err := dead.SubscribeQueue(dead.route("/queue/orphan", router.Subscribe), bridge.View{}, 1, hold, bridge.QueueOptions{AutoDelete: true}, c)
	if err != nil {
		t.Fatal(err)
	}
	dead.link.breakDown()
	dead.noticed()
	n := newRemote(t, srv, nil)
	comesTrue(t, "the queue vanishes", func() bool { return !n.exists("orphan") })
	s.Stop(c.takeHeld)
}

// TestDedupOverAnOutage loses the PubAck of a batch in which one message was stored before: that one is left out, and the
// rest stored once.
func TestDedupOverAnOutage(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	stream := bridge.QueueStream("ids")
	options := func(id string) bridge.SendOptions { return bridge.SendOptions{DedupID: id} }
	results := make(chan error, 1)
	put := func(id string) error {
		n.SendQueue(n.message("/queue/ids", id, options(id)), func(err error) { results <- err })
		return outcome(t, "SendQueue", results)
	}
	if err := put("a"); err != nil {
		t.Fatal(err)
	}
	if err := put("a"); !errors.Is(err, bridge.ErrDuplicate) {
		t.Errorf("the same again: got %v, want %v", err, bridge.ErrDuplicate)
	}
	n.link.deaf.Store(true)
	n.SendQueue(n.message("/queue/ids", "a", options("a")), func(err error) { results <- err })
	retries := n.Stats().Retries
	n.link.breakDown()
	n.link.restore()
	if err := outcome(t, "SendQueue", results); !errors.Is(err, bridge.ErrDuplicate) || n.Stats().Retries == retries {
		t.Errorf("the same, sent twice: got %v, want %v", err, bridge.ErrDuplicate)
	}
	batch := func(ids ...string) {
		var sends []bridge.Send
		for _, id := range ids {
			o := options(id)
			if id == "-" {
				o = bridge.SendOptions{}
			}
			sends = append(sends, n.message("/queue/ids", id, o))
		}
		n.SendBatch(sends, func(err error) { results <- err })
	}
	n.link.breakDown()
	n.noticed()
	batch("a", "b", "-")
	n.link.restore()
	all(t, results, 1)
	n.link.deaf.Store(true)
	batch("c", "-")
	n.stored(stream, 5)
	n.link.breakDown()
	n.link.restore()
	all(t, results, 1)
	if got, want := n.bodies(stream), []string{"a", "b", "-", "c", "-"}; !slices.Equal(got, want) {
		t.Errorf("stored: got %q, want %q", got, want)
	}
	batch("a", "b")
	if err := outcome(t, "SendBatch", results); !errors.Is(err, bridge.ErrDuplicate) {
		t.Errorf("a batch of which all is there: got %v, want %v", err, bridge.ErrDuplicate)
	}
}

// TestDelayOverAnOutage delays messages while the link is down or says nothing: each comes once, and not early.
func TestDelayOverAnOutage(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	results := make(chan error, 20)
	const delay = 400 * time.Millisecond
	put := func(from, to int) time.Time {
		for i := from; i < to; i++ {
			o := bridge.SendOptions{Delay: delay}
			n.SendQueue(n.message("/queue/late", strconv.Itoa(i), o), func(err error) { results <- err })
		}
		return time.Now().Add(delay)
	}
	put(0, 1)
	all(t, results, 1)
	n.link.breakDown()
	n.noticed()
	put(1, 10)
	n.link.restore()
	all(t, results, 9)
	n.stored(bridge.QueueStream("late"), 10)
	n.stored("natstomp_delay", 0)
	n.link.deaf.Store(true)
	due := put(10, 20)
	n.stored("natstomp_delay", 10)
	n.link.breakDown()
	n.link.restore()
	all(t, results, 10)
	c := newConsumer(100)
	s := n.subscribe("/queue/late", c)
	defer func() { s.Stop(c.takeHeld) }()
	got := map[string]bool{}
	for range 20 {
		_, body := c.next(t)
		if i, err := strconv.Atoi(body); err != nil || got[body] || i >= 10 && time.Now().Before(due) {
			t.Errorf("got %q again or early", body)
		}
		got[body] = true
	}
}

// TestAway tells faults that pass from others: a client is told that NATS is away, not of an internal error.
func TestAway(t *testing.T) {
	for err, want := range map[error]bool{
		nats.ErrConnectionClosed: true, nats.ErrDisconnected: true, nats.ErrTimeout: true, nats.ErrNoResponders: true,
		nats.ErrConnectionDraining: true, context.DeadlineExceeded: true, bridge.ErrTimeout: true,
		&jetstream.APIError{Code: 503}: true, &jetstream.APIError{Code: 400}: false, bridge.ErrQueueFull: false, bridge.ErrNoRoom: false,
	} {
		if got := bridge.Away(fmt.Errorf("doing: %w", err)); got != want {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
}

// TestDeletionLeftToAnother: a node whose mark another one overwrote says that it deletes the queue no more. Otherwise that
// one, which does delete it, could not make it anew.
func TestDeletionLeftToAnother(t *testing.T) {
	srv := externalServer(t)
	n := newRemote(t, srv, autoDelete)
	words, err := n.nc.SubscribeSync("_natstomp.queue.*")
	if err != nil {
		t.Fatal(err)
	}
	word := func() string {
		m, err := words.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(m.Subject, "_natstomp.queue.")
	}
	for range 20 {
		c := newConsumer(1)
		s := n.subscribe("/queue/both", c)
		c.close()
		s.Stop(c.takeHeld)
		if got := word(); got != "closing" {
			t.Fatalf("the node says %q, want closing", got)
		}
		if !n.overtake("both", "another") {
			if got := word(); got != "gone" { // Not before it was deleted.
				t.Fatalf("the node says %q, want gone", got)
			}
			continue
		}
		if got := word(); got != "open" {
			t.Fatalf("the node says %q, want open", got)
		}
		return
	}
	t.Fatal("the queue was deleted faster than it could be marked, always")
}

// overtake marks a queue's stream as another node does that deletes it too. false: it is gone already.
func (n *remote) overtake(channel, node string) bool {
	n.t.Helper()
	for {
		s, err := n.js.Stream(n.t.Context(), bridge.QueueStream(channel))
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return false
		}
		if err != nil {
			n.t.Fatal(err)
		}
		c := s.CachedInfo().Config
		if c.Metadata["natstomp_closing"] == "" {
			continue // Its mark comes first.
		}
		c.Metadata = maps.Clone(c.Metadata)
		c.Metadata["natstomp_closing"] = node
		_, err = n.js.UpdateStream(n.t.Context(), c)
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			n.t.Fatal(err)
		}
		return err == nil
	}
}

// TestSilentDeletion: a node that lives said that it deletes a queue, which is gone, and its word that it is done was lost.
func TestSilentDeletion(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	answers, err := n.nc.Subscribe("_natstomp.node.other", func(m *nats.Msg) {
		if err := m.Respond(nil); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer answers.Unsubscribe()
	closing := &nats.Msg{
		Subject: "_natstomp.queue.closing", Header: nats.Header{"Natstomp-Node": {"other"}},
		Data: []byte(bridge.QueueStream("silent")),
	}
	if err := n.nc.PublishMsg(closing); err != nil {
		t.Fatal(err)
	}
	if err := n.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	n.FlushControl()
	if err := n.send("/queue/silent", "x"); err != nil {
		t.Errorf("SEND: %v", err)
	}
}
