package bridge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// bind is a rig with bindings.
func bind(t *testing.T, list ...router.Binding) *rig {
	return newRig(t, func(cfg *bridge.Config) {
		c := router.DefaultConfig()
		c.Bindings = list
		var err error
		if cfg.Router, err = router.New(c); err != nil {
			t.Fatal(err)
		}
	})
}

func (g *rig) stream(name string, subjects ...string) {
	g.t.Helper()
	if _, err := g.js.CreateStream(g.t.Context(), jetstream.StreamConfig{Name: name, Subjects: subjects}); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) consumer(stream string, cfg jetstream.ConsumerConfig) {
	g.t.Helper()
	if _, err := g.js.CreateConsumer(g.t.Context(), stream, cfg); err != nil {
		g.t.Fatal(err)
	}
}

func TestBoundSubjects(t *testing.T) {
	g := bind(t,
		router.Binding{Destination: "/queue/consumer", Stream: "S", Consumer: "one"},
		router.Binding{Destination: "/queue/stream", Stream: "T"},
		router.Binding{Destination: "/queue/many", Stream: "S"},
		router.Binding{Destination: "/queue/subject", Subject: "t.in"},
		router.Binding{Destination: "/queue/nowhere", Subject: "nothing.stores.this"},
	)
	g.stream("S", "s.a", "s.b")
	g.stream("T", "t.in")
	g.consumer("S", jetstream.ConsumerConfig{Durable: "one", FilterSubject: "s.b", AckPolicy: jetstream.AckExplicitPolicy})
	for _, tt := range []struct {
		destination string
		want        error
	}{
		{"/queue/consumer", nil},
		{"/queue/stream", nil},
		{"/queue/subject", nil},
		{"/queue/many", bridge.ErrNoSubject},
		{"/queue/nowhere", bridge.ErrNotThere},
	} {
		if err := g.send(tt.destination, tt.destination); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.destination, err, tt.want)
		}
	}
	for _, tt := range []struct {
		stream, subject string
		want            uint64
	}{{"S", "s.a", 0}, {"S", "s.b", 1}, {"T", "t.in", 2}} {
		s, err := g.js.Stream(t.Context(), tt.stream)
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(tt.subject))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.State.Subjects[tt.subject]; got != tt.want {
			t.Errorf("%s: got %d messages, want %d", tt.subject, got, tt.want)
		}
	}
}

// TestBoundConsumerLimits reads from a consumer that takes only small pulls and waits only briefly for acks.
func TestBoundConsumerLimits(t *testing.T) {
	g := bind(t, router.Binding{Destination: "/queue/q", Stream: "S", Consumer: "tight"})
	g.stream("S", "s")
	g.consumer("S", jetstream.ConsumerConfig{
		Durable: "tight", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 4 * time.Second,
		MaxRequestBatch: 3, MaxRequestMaxBytes: 4 << 10, MaxRequestExpires: time.Second,
	})
	c := &holding{newConsumer(100)}
	hold := bridge.Hold{Check: 5 * time.Second, Delay: func(bridge.Delivery) time.Duration { return 0 }}
	s, err := g.SubscribeQueue(g.route("/queue/q", router.Subscribe), bridge.View{Version: frame.V12, Destination: "d"}, 100, hold, bridge.QueueOptions{}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Stop(c.takeHeld) }()
	words, err := g.nc.SubscribeSync("$JS.ACK.>")
	if err == nil {
		err = g.nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := g.send("/queue/q", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	c.want(t, numbers(0, 20)...)
	// What is held for longer than the consumer's ack wait stays held: each third of it the server is told so.
	for told := map[string]int{}; ; {
		m, err := words.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Data) == "+WPI" {
			told[m.Subject]++
		}
		if told[m.Subject] == 5 {
			break
		}
	}
	if err := g.send("/queue/q", "last"); err != nil {
		t.Fatal(err)
	}
	if head, body := c.next(t); body != "last" || strings.Contains(head, "redelivered") {
		t.Errorf("got %q with %q, want the last message, not one that is held", body, head)
	}
}

// holding is a consumer that holds on.
type holding struct{ *consumer }

func (h *holding) Held(time.Time) (keep, expired []bridge.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(keep, h.held...), nil
}

func TestBoundConsumersThatCannotBeShared(t *testing.T) {
	g := bind(t,
		router.Binding{Destination: "/queue/none", Stream: "S", Consumer: "none"},
		router.Binding{Destination: "/queue/push", Stream: "S", Consumer: "push"},
		router.Binding{Destination: "/queue/send", Stream: "S"},
		router.Binding{Destination: "/queue/gone", Stream: "S", Consumer: "gone"},
		router.Binding{Destination: "/queue/away", Stream: "AWAY", Consumer: "gone"},
	)
	g.stream("S", "s")
	g.consumer("S", jetstream.ConsumerConfig{Durable: "none", AckPolicy: jetstream.AckNonePolicy})
	if _, err := g.js.CreatePushConsumer(t.Context(), "S", jetstream.ConsumerConfig{
		Durable: "push", DeliverSubject: "to.somebody", AckPolicy: jetstream.AckExplicitPolicy,
	}); err != nil {
		t.Fatal(err)
	}
	for destination, want := range map[string]error{
		"/queue/none": bridge.ErrNotShared,
		"/queue/push": bridge.ErrNotShared,
		"/queue/send": bridge.ErrNoConsumer,
		"/queue/gone": bridge.ErrNotThere,
		"/queue/away": bridge.ErrNotThere,
	} {
		_, err := g.SubscribeQueue(g.route(destination, router.Subscribe), bridge.View{}, 1, bridge.Hold{}, bridge.QueueOptions{}, newConsumer(1))
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", destination, err, want)
		}
	}
	for name := range g.js.StreamNames(t.Context()).Name() {
		if name != "S" {
			t.Errorf("stream %s was made", name)
		}
	}
}

// TestBoundStreamTakenAway takes a bound stream away in the middle of its use.
func TestBoundStreamTakenAway(t *testing.T) {
	g := bind(t, router.Binding{Destination: "/queue/q", Stream: "S", Consumer: "c"})
	g.stream("S", "s")
	g.consumer("S", jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy})
	c := &losing{consumer: newConsumer(1), lost: make(chan error, 1)}
	hold := bridge.Hold{Check: time.Second, Delay: func(bridge.Delivery) time.Duration { return 0 }}
	s, err := g.SubscribeQueue(g.route("/queue/q", router.Subscribe), bridge.View{Version: frame.V12, Destination: "d"}, 1, hold, bridge.QueueOptions{}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Stop(c.takeHeld) }()
	until(t, "the pull", func() bool {
		consumer, err := g.js.Consumer(t.Context(), "S", "c")
		return err == nil && consumer.CachedInfo().NumWaiting == 1
	})
	if err := g.send("/queue/q", "x"); err != nil {
		t.Fatal(err)
	}
	c.want(t, "x")
	g.ackHeld(c.consumer)
	s.Wake()
	until(t, "the pull", func() bool {
		consumer, err := g.js.Consumer(t.Context(), "S", "c")
		return err == nil && consumer.CachedInfo().NumWaiting == 1
	})
	if err := g.js.DeleteStream(t.Context(), "S"); err != nil {
		t.Fatal(err)
	}
	if err := outcome(t, "Lost", c.lost); !errors.Is(err, bridge.ErrNotThere) {
		t.Errorf("the reader got %v, want %v", err, bridge.ErrNotThere)
	}
	if err := g.send("/queue/q", "y"); !errors.Is(err, bridge.ErrNotThere) {
		t.Errorf("the sender got %v, want %v", err, bridge.ErrNotThere)
	}
}
