package bridge_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/router"
)

// TestNodesMakeOneQueue has nodes with different settings make and use one queue at the same time: they do not fight.
func TestNodesMakeOneQueue(t *testing.T) {
	srv := externalServer(t)
	var nodes []*remote
	for i := range 4 {
		nodes = append(nodes, newRemote(t, srv, func(cfg *bridge.Config) { cfg.Queues.Settings = size(int64(i+1) << 20) }))
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		var wg sync.WaitGroup
		for _, n := range nodes {
			wg.Go(func() {
				if err := n.EnsureQueue(n.route("/queue/"+name, router.Send)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		wg.Wait()
	}
	made := consumerOf(t, nodes[0], "a")
	size := limitOf(t, nodes[0], "a")
	for _, n := range nodes {
		c := newConsumer(1)
		s := n.subscribe("/queue/a", c)
		if err := n.send("/queue/a", "x"); err != nil {
			t.Error(err)
		}
		c.next(t)
		s.Stop(c.takeHeld)
	}
	if got := consumerOf(t, nodes[0], "a"); !got.Equal(made) {
		t.Error("the durable was made anew")
	}
	if got := limitOf(t, nodes[0], "a"); got != size {
		t.Errorf("the size of the queue: got %d, want the first one's %d", got, size)
	}
	// A node that comes later finds the queues and leaves them as they are too.
	late := newRemote(t, srv, func(cfg *bridge.Config) { cfg.Queues.Limit = 5 })
	if err := late.send("/queue/a", "y"); err != nil {
		t.Errorf("a queue that was found: %v", err)
	}
	if err := late.send("/queue/sixth", "y"); !errors.Is(err, bridge.ErrQueueLimit) {
		t.Errorf("one more queue: got %v, want %v", err, bridge.ErrQueueLimit)
	}
	if got := consumerOf(t, late, "a"); !got.Equal(made) {
		t.Error("the durable was made anew at a start")
	}
}

func consumerOf(t *testing.T, n *remote, channel string) time.Time {
	t.Helper()
	c, err := n.js.Consumer(t.Context(), bridge.QueueStream(channel), "stomp")
	if err != nil {
		t.Fatal(err)
	}
	if c.CachedInfo().Config.MemoryStorage {
		t.Error("the durable's state is in memory")
	}
	return c.CachedInfo().Created
}

func limitOf(t *testing.T, n *remote, channel string) int64 {
	t.Helper()
	s, err := n.js.Stream(t.Context(), bridge.QueueStream(channel))
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config.MaxBytes
}

// TestForeignStream finds something else where a queue's stream, or durable, should be.
func TestForeignStream(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	limits := jetstream.StreamConfig{Name: bridge.QueueStream("limits"), Subjects: []string{"stomp.queue.limits"}}
	push := jetstream.StreamConfig{Name: bridge.QueueStream("push"), Subjects: []string{"stomp.queue.push"}, Retention: jetstream.WorkQueuePolicy}
	plain := jetstream.StreamConfig{Name: bridge.QueueStream("plain"), Subjects: []string{"stomp.queue.plain"}, Retention: jetstream.WorkQueuePolicy, MaxMsgs: 7}
	for _, cfg := range []jetstream.StreamConfig{limits, push, plain} {
		if _, err := n.js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	old, err := n.nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.AddConsumer(push.Name, &nats.ConsumerConfig{Durable: "stomp", DeliverSubject: "d", AckPolicy: nats.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	for channel, want := range map[string]string{"limits": "is no work queue", "push": "not a pull consumer"} {
		if err := n.send("/queue/"+channel, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", channel, err, want)
		}
	}
	// A queue that somebody made with limits of his own is used as it is, with what natstomp needs switched on.
	if err := n.send("/queue/plain", "x"); err != nil {
		t.Fatal(err)
	}
	s, err := n.js.Stream(t.Context(), plain.Name)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().Config; got.MaxMsgs != 7 || !got.AllowAtomicPublish || !got.AllowMsgTTL {
		t.Errorf("its settings: got %+v, want its own limit, batches and TTL", got)
	}
}

// TestNoRoom asks for a queue that the server cannot reserve the storage of.
func TestNoRoom(t *testing.T) {
	n := newRemote(t, externalServer(t), func(cfg *bridge.Config) { cfg.Queues.Settings = size(1 << 60) })
	if err := n.send("/queue/huge", "x"); !errors.Is(err, bridge.ErrNoRoom) {
		t.Errorf("got %v, want %v", err, bridge.ErrNoRoom)
	}
}

// TestPullsResume breaks the link while a consumer waits and while it holds a message: no more comes than it has credit
// for, its ack is not lost, and what may have been delivered before is flagged.
func TestPullsResume(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	c := newConsumer(1)
	s := n.subscribe("/queue/resume", c)
	defer func() { s.Stop(c.takeHeld) }()
	if err := n.send("/queue/resume", "1"); err != nil {
		t.Fatal(err)
	}
	if head, body := c.next(t); body != "1" || strings.Contains(head, "redelivered") {
		t.Errorf("got %q %q, want 1, delivered for the first time", head, body)
	}
	for _, body := range []string{"2", "3"} {
		if _, err := n.js.Publish(t.Context(), "stomp.queue.resume", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	n.link.breakDown()
	n.noticed()
	held := c.takeHeld()
	if err := n.Ack(held[0]); err != nil {
		t.Errorf("an ack during the outage: %v", err)
	}
	n.link.restore()
	s.Wake()
	for _, want := range []string{"2", "3"} {
		head, body := c.next(t)
		if body != want || !strings.Contains(head, "redelivered:true\n") {
			t.Errorf("got %q %q, want %s with redelivered:true", head, body, want)
		}
		held := c.takeHeld()
		if len(held) != 1 {
			t.Errorf("%d messages at a time, want 1", len(held))
		}
		if err := n.Ack(held[0]); err != nil {
			t.Error(err)
		}
		s.Wake()
	}
	n.stored(bridge.QueueStream("resume"), 0)
	// What comes after the outage is new.
	if err := n.send("/queue/resume", "4"); err != nil {
		t.Fatal(err)
	}
	if head, body := c.next(t); body != "4" || strings.Contains(head, "redelivered") {
		t.Errorf("got %q %q, want 4, delivered for the first time", head, body)
	}
}

// TestConfirmedAckOverAnOutage has JetStream confirm acks that were sent while the link was down, or whose answer was
// lost.
func TestConfirmedAckOverAnOutage(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	c := newConsumer(10)
	s := n.subscribe("/queue/confirm", c)
	defer func() { s.Stop(c.takeHeld) }()
	for range 2 {
		if err := n.send("/queue/confirm", "x"); err != nil {
			t.Fatal(err)
		}
		c.next(t)
	}
	held := c.takeHeld()
	results := make(chan error, 2)
	n.link.deaf.Store(true)
	n.ConfirmAck(held[:1], func(err error) { results <- err })
	n.stored(bridge.QueueStream("confirm"), 1)
	n.link.breakDown()
	n.noticed()
	n.ConfirmAck(held[1:], func(err error) { results <- err })
	n.link.restore()
	all(t, results, 2)
	n.stored(bridge.QueueStream("confirm"), 0)
}

// TestGoneAndForgotten deletes a stream and a durable behind natstomp's back.
func TestGoneAndForgotten(t *testing.T) {
	forgotten := make(chan string, 1)
	n := newRemote(t, externalServer(t), func(cfg *bridge.Config) {
		cfg.Queues.ForgetMark = func(stream string) error { forgotten <- stream; return nil }
	})
	stream := bridge.QueueStream("gone")
	c := newConsumer(1)
	s := n.subscribe("/queue/gone", c)
	if err := n.send("/queue/gone", "x"); err != nil {
		t.Fatal(err)
	}
	c.next(t)
	results := make(chan error, 1)
	n.ConfirmAck(c.takeHeld(), func(err error) { results <- err })
	all(t, results, 1)
	// The durable comes back: the stream is there.
	if err := n.js.DeleteConsumer(t.Context(), stream, "stomp"); err != nil {
		t.Fatal(err)
	}
	s.Wake()
	if err := n.send("/queue/gone", "y"); err != nil {
		t.Fatal(err)
	}
	if _, body := c.next(t); body != "y" {
		t.Errorf("got %q, want y", body)
	}
	// The stream does not.
	if err := n.js.DeleteStream(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	if err := n.send("/queue/gone", "z"); !errors.Is(err, bridge.ErrNoStream) {
		t.Errorf("got %v, want %v", err, bridge.ErrNoStream)
	}
	if err := outcome(t, "Lost", c.lost); !errors.Is(err, bridge.ErrNoStream) {
		t.Errorf("Lost: got %v, want %v", err, bridge.ErrNoStream)
	}
	s.Stop(c.takeHeld)
	if got := n.Gone(); len(got) != 1 || !strings.Contains(got[0], stream) || n.Stats().GoneStreams != 1 {
		t.Errorf("gone: got %q, want the stream", got)
	}
	if ok, err := n.Forget("another"); ok || err != nil {
		t.Errorf("forgetting another: got %v, %v", ok, err)
	}
	if ok, err := n.Forget("gone"); !ok || err != nil {
		t.Errorf("forgetting it: got %v, %v", ok, err)
	}
	if got := <-forgotten; got != stream {
		t.Errorf("mark: forgot %s, want %s", got, stream)
	}
	if got := n.Gone(); len(got) != 0 {
		t.Errorf("gone: got %q, want none", got)
	}
	if err := n.send("/queue/gone", "new"); err != nil {
		t.Error(err)
	}
	if got, want := n.bodies(stream), []string{"new"}; !slices.Equal(got, want) {
		t.Errorf("stored: got %q, want %q", got, want)
	}
}

// TestMissingAtStart starts on an embedded store that lacks a stream which the marks name.
func TestMissingAtStart(t *testing.T) {
	stream := bridge.QueueStream("was")
	forgotten := ""
	g := newRig(t, func(cfg *bridge.Config) {
		cfg.Queues.Marks = map[string]uint64{stream: 7}
		cfg.Queues.ForgetMark = func(stream string) error { forgotten = stream; return nil }
	})
	if got := g.Gone(); len(got) != 1 || !strings.Contains(got[0], stream) {
		t.Errorf("gone: got %q, want the stream", got)
	}
	if err := g.send("/queue/was", "x"); !errors.Is(err, bridge.ErrNoStream) {
		t.Errorf("got %v, want %v", err, bridge.ErrNoStream)
	}
	if ok, err := g.Forget(stream); !ok || err != nil || forgotten != stream {
		t.Errorf("forgetting it: got %v, %v, forgot %q", ok, err, forgotten)
	}
	if err := g.send("/queue/was", "x"); err != nil {
		t.Error(err)
	}
}
