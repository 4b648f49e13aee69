package bridge_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// reader is a StoreReceiver that keeps what it gets.
type reader struct {
	got  chan string
	lost chan error

	mu     sync.Mutex
	credit int // how many more it takes
	closed bool
}

func newReader(credit int) *reader {
	return &reader{got: make(chan string, 100_000), lost: make(chan error, 1), credit: credit}
}

func (r *reader) Credit(outstanding int) (messages, octets int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.credit - outstanding, 1 << 20
}

func (r *reader) DeliverStored(tail []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.credit--
	r.got <- string(tail)
	return true
}

func (r *reader) Lost(err error) { r.lost <- err }

func (r *reader) allow(more int) {
	r.mu.Lock()
	r.credit += more
	r.mu.Unlock()
}

func (r *reader) next(t *testing.T) (head, body string) {
	t.Helper()
	select {
	case tail := <-r.got:
		head, body, _ = strings.Cut(tail, "\n\n")
		return head, strings.TrimSuffix(body, "\x00\n")
	case <-time.After(patience):
		t.Fatal("no message")
		return "", ""
	}
}

// want asserts the bodies that come next.
func (r *reader) want(t *testing.T, bodies ...string) {
	t.Helper()
	for i, want := range bodies {
		if _, got := r.next(t); got != want {
			t.Fatalf("message %d: got %q, want %q", i, got, want)
		}
	}
}

func (r *reader) nothing(t *testing.T) {
	t.Helper()
	if n := len(r.got); n > 0 {
		t.Fatalf("got %d messages more, the first %q", n, <-r.got)
	}
}

func (g *rig) read(destination string, start bridge.Start, r bridge.StoreReceiver) *bridge.OrderedSubscription {
	g.t.Helper()
	route := g.route(destination, router.Subscribe)
	view := bridge.View{Version: frame.V12}
	if !route.Wildcard {
		view.Destination = destination
	}
	s, err := g.SubscribeOrdered(route, nil, start, view, r)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { s.Stop(nil) })
	return s
}

// stored sends bodies one after the other, each after the PubAck of the one before.
func (g *rig) stored(destination string, bodies ...string) {
	g.t.Helper()
	for _, b := range bodies {
		if err := g.send(destination, b); err != nil {
			g.t.Fatal(err)
		}
	}
}

func numbers(from, to int) []string {
	var list []string
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprint(i))
	}
	return list
}

// consumers are the names of the consumers of the stream.
func (g *rig) consumers() []string {
	g.t.Helper()
	s, err := g.js.Stream(g.t.Context(), "STORE")
	if err != nil {
		g.t.Fatal(err)
	}
	var names []string
	list := s.ConsumerNames(g.t.Context())
	for name := range list.Name() {
		names = append(names, name)
	}
	if list.Err() != nil {
		g.t.Fatal(list.Err())
	}
	return names
}

// lose deletes the consumers of ordered subscriptions behind their back.
func (g *rig) lose() {
	g.t.Helper()
	for _, name := range g.consumers() {
		if strings.HasPrefix(name, "d_") {
			continue
		}
		if err := g.js.DeleteConsumer(g.t.Context(), "STORE", name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			g.t.Fatal(err)
		}
	}
}

// awaitPull waits until the one subscription waits for messages at the server: what is asked of a consumer that goes at
// that moment is answered by nobody.
func (g *rig) awaitPull() {
	g.t.Helper()
	until(g.t, "the pull", func() bool {
		names := g.consumers()
		if len(names) != 1 {
			return false // The one of an earlier subscription is still going.
		}
		c, err := g.js.Consumer(g.t.Context(), "STORE", names[0])
		return err == nil && c.CachedInfo().NumWaiting == 1
	})
}

// until waits for a condition that must come true.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func TestStoreSettings(t *testing.T) {
	g := newRig(t, func(cfg *bridge.Config) {
		cfg.Store.MaxAge, cfg.Store.MaxBytes = 30*time.Second, 1<<20
	})
	g.stored("/topic-store/a/b", "x")
	s, err := g.js.Stream(t.Context(), "STORE")
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	if c.Retention != jetstream.LimitsPolicy || c.Discard != jetstream.DiscardOld || c.MaxAge != 30*time.Second || c.MaxBytes != 1<<20 ||
		!slices.Equal(c.Subjects, []string{"stomp.store.>"}) || c.Duplicates != 30*time.Second {
		t.Errorf("got %+v", c)
	}
}

func TestStoreDropsOldest(t *testing.T) {
	g := newRig(t, func(cfg *bridge.Config) { cfg.Store.MaxBytes = 8 << 10 })
	for i := range 50 {
		g.stored("/topic-store/a", fmt.Sprint(i, strings.Repeat(" x", 200)))
	}
	r := newReader(100)
	g.read("/topic-store/a", bridge.Start{Kind: bridge.StartFirst}, r)
	_, first := r.next(t)
	if strings.HasPrefix(first, "0 ") {
		t.Error("the oldest message is still there")
	}
	last := first
	until(t, "the newest message", func() bool {
		if len(r.got) > 0 {
			_, last = r.next(t)
		}
		return strings.HasPrefix(last, "49 ")
	})
}

// TestStoreBroughtUpToDate starts with other settings on the same store, and leaves a stream alone that is not ours.
func TestStoreBroughtUpToDate(t *testing.T) {
	srv := startNATS(t)
	newNode(t, srv, nil).stored("/topic-store/a", "x")
	g := newNode(t, srv, func(cfg *bridge.Config) { cfg.Store.MaxAge = time.Hour })
	s, err := g.js.Stream(t.Context(), "STORE")
	if err != nil {
		t.Fatal(err)
	}
	if c := s.CachedInfo(); c.Config.MaxAge != time.Hour || c.State.Msgs != 1 {
		t.Errorf("got max age %v and %d messages, want an hour and the one", c.Config.MaxAge, c.State.Msgs)
	}
}

func TestForeignStoreIsLeftAlone(t *testing.T) {
	srv := startNATS(t)
	g := newNode(t, srv, nil)
	if _, err := g.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "STORE", Subjects: []string{"goods.>"}}); err != nil {
		t.Fatal(err)
	}
	if err := g.send("/topic-store/a", "x"); !errors.Is(err, bridge.ErrForeignStore) {
		t.Errorf("got %v, want %v", err, bridge.ErrForeignStore)
	}
	newNode(t, srv, nil).stored("/queue/fine", "x") // A start beside it is no fault.
	s, err := g.js.Stream(t.Context(), "STORE")
	if err != nil || !slices.Equal(s.CachedInfo().Config.Subjects, []string{"goods.>"}) {
		t.Errorf("the stream was changed: %+v, %v", s.CachedInfo().Config, err)
	}
}

func TestOrderedGoesOnAfterLoss(t *testing.T) {
	g := newRig(t, nil)
	g.stored("/topic-store/a", numbers(0, 300)...)
	r := newReader(100)
	s := g.read("/topic-store/a", bridge.Start{Kind: bridge.StartFirst}, r)
	r.want(t, numbers(0, 50)...)
	g.lose()
	r.want(t, numbers(50, 100)...)
	for i := 100; i < 300; i += 50 {
		r.allow(50)
		s.Wake()
		r.want(t, numbers(i, i+50)...)
		g.lose()
	}
	g.stored("/topic-store/a", "300")
	r.allow(1)
	s.Wake()
	r.want(t, "300")
	r.nothing(t)
}

func TestOrderedStopLeavesNothing(t *testing.T) {
	g := newRig(t, nil)
	g.stored("/topic-store/a", numbers(0, 10)...)
	r := newReader(10)
	s := g.read("/topic-store/a", bridge.Start{Kind: bridge.StartFirst}, r)
	r.want(t, numbers(0, 10)...)
	if got := len(g.consumers()); got != 1 {
		t.Fatalf("consumers: got %d, want 1", got)
	}
	s.Stop(nil)
	until(t, "the end of the consumer", func() bool { return len(g.consumers()) == 0 })
}

// TestNewSeesAllAfterSubscribe publishes right behind the subscription, over another connection, and takes the consumer
// away before the first message.
func TestNewSeesAllAfterSubscribe(t *testing.T) {
	g := newRig(t, nil)
	g.stored("/topic-store/a", "old")
	for i := range 50 {
		r := newReader(10)
		s := g.read("/topic-store/a", bridge.Start{}, r)
		if i%2 == 1 {
			g.awaitPull()
			g.lose()
		}
		if _, err := g.js.Publish(t.Context(), "stomp.store.a", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		r.want(t, fmt.Sprint(i))
		s.Stop(nil)
		r.nothing(t)
	}
}

func TestLastPerChannelAfterLoss(t *testing.T) {
	const channels = 40
	g := newRig(t, nil)
	for round := range 3 {
		for c := range channels {
			g.stored(fmt.Sprintf("/topic-store/c/%d", c), fmt.Sprintf("%d-%d", c, round))
		}
	}
	for lostAt := range 4 {
		r := newReader(10 * lostAt)
		s := g.read("/topic-store/c/*", bridge.Start{Kind: bridge.StartLastPerChannel}, r)
		last := map[string]string{}
		take := func(n int) {
			for range n {
				_, body := r.next(t)
				channel, round, _ := strings.Cut(body, "-")
				last[channel] += " " + round
			}
		}
		take(10 * lostAt)
		// Two channels go on, one of which may not have been delivered yet.
		for _, more := range []string{"a", "b"} {
			g.stored("/topic-store/c/0", "0-"+more)
			g.stored("/topic-store/c/39", "39-"+more)
		}
		g.lose()
		r.allow(1_000)
		s.Wake()
		for !strings.HasSuffix(last["39"], "b") || len(last) < channels {
			take(1)
		}
		for c := range channels {
			got := last[fmt.Sprint(c)]
			want := " 2"
			if c == 0 || c == 39 {
				want = " a b"
				got = got[max(0, len(got)-len(want)):] // Whether the one before comes depends on when the consumer was lost.
			}
			if got != want {
				t.Errorf("lost after %d: channel %d: got%s, want%s", 10*lostAt, c, got, want)
			}
		}
		s.Stop(nil)
		r.nothing(t)
		g.stored("/topic-store/c/0", "0-2")
		g.stored("/topic-store/c/39", "39-2")
	}
}

// TestRemovedStoreIsNotMadeAnew takes the stream away under a reader and a sender.
func TestRemovedStoreIsNotMadeAnew(t *testing.T) {
	g := newRig(t, nil)
	g.stored("/topic-store/a", "x")
	r := newReader(10)
	s := g.read("/topic-store/a", bridge.Start{Kind: bridge.StartFirst}, r)
	r.want(t, "x")
	g.awaitPull()
	if err := g.js.DeleteStream(t.Context(), "STORE"); err != nil {
		t.Fatal(err)
	}
	if err := outcome(t, "Lost", r.lost); !errors.Is(err, bridge.ErrNoStream) {
		t.Errorf("the reader got %v, want %v", err, bridge.ErrNoStream)
	}
	if err := g.send("/topic-store/a", "y"); !errors.Is(err, bridge.ErrNoStream) {
		t.Errorf("the sender got %v, want %v", err, bridge.ErrNoStream)
	}
	s.Stop(nil)
	if _, err := g.js.Stream(t.Context(), "STORE"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream exists again: %v", err)
	}
}

// TestOrderedWaitsForCredit holds that nothing comes without credit, and that what was not wanted for long is not lost.
func TestOrderedWaitsForCredit(t *testing.T) {
	g := newRig(t, nil)
	g.stored("/topic-store/a", numbers(0, 20)...)
	r := newReader(5)
	s := g.read("/topic-store/a", bridge.Start{Kind: bridge.StartFirst}, r)
	r.want(t, numbers(0, 5)...)
	until(t, "the consumer to be asked for no more", func() bool {
		names := g.consumers()
		c, err := g.js.Consumer(t.Context(), "STORE", names[0])
		return err == nil && c.CachedInfo().NumWaiting == 0 && c.CachedInfo().Delivered.Consumer == 5
	})
	r.nothing(t)
	r.allow(100)
	s.Wake()
	r.want(t, numbers(5, 20)...)
}
