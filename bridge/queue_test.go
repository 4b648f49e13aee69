package bridge_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// consumer is a QueueReceiver that keeps what it gets.
type consumer struct {
	prefetch int

	mu     sync.Mutex
	closed bool
	held   []bridge.Delivery
	got    chan string
	lost   chan error
}

func newConsumer(prefetch int) *consumer {
	return &consumer{prefetch: prefetch, got: make(chan string, 10_000), lost: make(chan error, 1)}
}

func (c *consumer) Credit(outstanding int) (messages, octets int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.prefetch - len(c.held) - outstanding, 1 << 20
}

func (c *consumer) DeliverQueue(tail []byte, d bridge.Delivery) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.held = append(c.held, d)
	c.got <- string(tail)
	return true
}

func (c *consumer) Ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *consumer) Held(time.Time) (keep, expired []bridge.Delivery) { return nil, nil }

func (c *consumer) Lost(err error) {
	select {
	case c.lost <- err:
	default: // Said already.
	}
}

func (c *consumer) takeHeld() []bridge.Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.held
	c.held = nil
	return held
}

func (c *consumer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
}

// next is the body of the next message, with its other headers.
func (c *consumer) next(t *testing.T) (head, body string) {
	t.Helper()
	select {
	case tail := <-c.got:
		head, body, _ = strings.Cut(tail, "\n\n")
		return head, strings.TrimSuffix(body, "\x00\n")
	case <-time.After(patience):
		t.Fatal("no message")
		return "", ""
	}
}

func (g *rig) subscribe(destination string, c *consumer) *bridge.QueueSubscription {
	g.t.Helper()
	hold := bridge.Hold{Check: time.Second, Delay: func(bridge.Delivery) time.Duration { return 0 }}
	view := bridge.View{Version: frame.V12, Destination: destination}
	s, err := g.SubscribeQueue(g.route(destination, router.Subscribe), view, c.prefetch, hold, bridge.QueueOptions{}, c)
	if err != nil {
		g.t.Fatal(err)
	}
	return s
}

func TestStopReturnsEverythingInOrder(t *testing.T) {
	const messages = 300
	g := newRig(t, nil)
	for i := range messages {
		if err := g.send("/queue/back", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	first := newConsumer(messages)
	s := g.subscribe("/queue/back", first)
	first.next(t) // It pulls; most is still on its way.
	first.close()
	s.Stop(first.takeHeld)

	second := newConsumer(messages)
	s = g.subscribe("/queue/back", second)
	defer func() { s.Stop(second.takeHeld) }()
	for i := range messages {
		if _, got := second.next(t); got != fmt.Sprint(i) {
			t.Fatalf("message %d after the return: got %q", i, got)
		}
	}
}

func TestMessageLargerThanPullBudgetComes(t *testing.T) {
	g := newRig(t, nil)
	large := strings.Repeat("x", 3<<19) // Above the octets of one pull, below max_payload.
	for _, body := range []string{"before", large, "after"} {
		if err := g.send("/queue/large", body); err != nil {
			t.Fatal(err)
		}
	}
	c := newConsumer(10)
	s := g.subscribe("/queue/large", c)
	defer func() { s.Stop(c.takeHeld) }()
	for _, want := range []string{"before", large, "after"} {
		if _, got := c.next(t); got != want {
			t.Fatalf("got %d octets, want %d", len(got), len(want))
		}
	}
}

// size are the settings of queues of so many octets.
func size(octets int64) func(string) bridge.QueueSettings {
	return func(string) bridge.QueueSettings { return bridge.QueueSettings{MaxBytes: octets} }
}

func TestBatchIsAllOrNothing(t *testing.T) {
	g := newRig(t, func(cfg *bridge.Config) { cfg.Queues.Settings = size(4_000) })
	batch := func(n, size int) error {
		var sends []bridge.Send
		for range n {
			sends = append(sends, bridge.Send{
				Route: g.route("/queue/batch", router.Send),
				Body:  make([]byte, size),
			})
		}
		c := make(chan error, 1)
		g.SendBatch(sends, func(err error) { c <- err })
		return outcome(t, "SendBatch", c)
	}
	stored := func() uint64 {
		t.Helper()
		s, err := g.js.Stream(t.Context(), bridge.QueueStream("batch"))
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State.Msgs
	}
	if err := batch(5, 10); err != nil {
		t.Fatal(err)
	}
	if got := stored(); got != 5 {
		t.Errorf("after a batch of 5: %d messages stored", got)
	}
	if err := batch(5, 1_500); !errors.Is(err, bridge.ErrQueueFull) {
		t.Errorf("a batch above the queue's size: got %v, want %v", err, bridge.ErrQueueFull)
	}
	if got := stored(); got != 5 {
		t.Errorf("after a refused batch: %d messages stored, want 5", got)
	}
	if err := batch(1, 10); err != nil {
		t.Errorf("a batch of one after a refused one: %v", err)
	}
}

func TestQueueFull(t *testing.T) {
	g := newRig(t, func(cfg *bridge.Config) { cfg.Queues.Settings = size(2_000) })
	err := error(nil)
	for i := 0; err == nil && i < 10; i++ {
		err = g.send("/queue/full", strings.Repeat("x", 500))
	}
	if !errors.Is(err, bridge.ErrQueueFull) {
		t.Errorf("got %v, want %v", err, bridge.ErrQueueFull)
	}
}

func TestQueueLimit(t *testing.T) {
	g := newRig(t, func(cfg *bridge.Config) { cfg.Queues.Limit = 2 })
	for _, q := range []string{"/queue/a", "/queue/b", "/queue/a"} {
		if err := g.send(q, "x"); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	if err := g.send("/queue/c", "x"); !errors.Is(err, bridge.ErrQueueLimit) {
		t.Errorf("third queue: got %v, want %v", err, bridge.ErrQueueLimit)
	}
}

func TestRemovedStreamIsNotMadeAnew(t *testing.T) {
	g := newRig(t, nil)
	if err := g.send("/queue/gone", "x"); err != nil {
		t.Fatal(err)
	}
	if err := g.js.DeleteStream(t.Context(), bridge.QueueStream("gone")); err != nil {
		t.Fatal(err)
	}
	if err := g.send("/queue/gone", "y"); !errors.Is(err, bridge.ErrNoStream) {
		t.Errorf("got %v, want %v", err, bridge.ErrNoStream)
	}
	if _, err := g.js.Stream(t.Context(), bridge.QueueStream("gone")); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream exists again: %v", err)
	}
}

func TestDeliveryCountAndFlag(t *testing.T) {
	g := newRig(t, nil)
	if err := g.send("/queue/count", "x"); err != nil {
		t.Fatal(err)
	}
	c := newConsumer(1)
	s := g.subscribe("/queue/count", c)
	defer func() { s.Stop(c.takeHeld) }()
	for count := 1; count <= 3; count++ {
		head, _ := c.next(t)
		if want := fmt.Sprintf("x-delivery-count:%d\n", count); !strings.Contains(head, want) {
			t.Errorf("delivery %d: %q lacks %q", count, head, want)
		}
		if got, want := strings.Contains(head, "redelivered:true"), count > 1; got != want {
			t.Errorf("delivery %d: redelivered is %t, want %t", count, got, want)
		}
		done := make(chan error, 1)
		g.ConfirmNack(c.takeHeld(), func(bridge.Delivery) time.Duration { return 0 }, func(err error) { done <- err })
		if err := outcome(t, "ConfirmNack", done); err != nil {
			t.Fatal(err)
		}
		s.Wake()
	}
}

func TestConfirmedAckRemoves(t *testing.T) {
	g := newRig(t, nil)
	for i := range 10 {
		if err := g.send("/queue/acks", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	c := newConsumer(10)
	s := g.subscribe("/queue/acks", c)
	defer func() { s.Stop(c.takeHeld) }()
	for range 10 {
		c.next(t)
	}
	done := make(chan error, 1)
	g.ConfirmAck(c.takeHeld(), func(err error) { done <- err })
	if err := outcome(t, "ConfirmAck", done); err != nil {
		t.Fatal(err)
	}
	stream, err := g.js.Stream(t.Context(), bridge.QueueStream("acks"))
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Msgs; got != 0 {
		t.Errorf("%d messages left after confirmed acks", got)
	}
}

func TestQueueStreamNames(t *testing.T) {
	for _, tt := range []struct{ channel, want string }{
		{"orders", "Q_orders_1c168adb"},
		{"a.b", "Q_a_b_"},
		{"a_b", "Q_a_b_"},
		{"grün.c#", "Q_gr-n_c-_"},
		{strings.Repeat("x", 200), "Q_" + strings.Repeat("x", 60) + "_"},
	} {
		got := bridge.QueueStream(tt.channel)
		if !strings.HasPrefix(got, tt.want) && got != tt.want || len(got) > 2+60+1+8 {
			t.Errorf("%q: got %q, want %q", tt.channel, got, tt.want)
		}
	}
	if bridge.QueueStream("a.b") == bridge.QueueStream("a_b") {
		t.Error("two channels share a stream")
	}
}
