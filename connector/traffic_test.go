package connector

import (
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// BenchmarkCounting is what the metrics cost one frame in, one delivery, one burst of 100 frames out, and one stored
// SEND with its two readings of the clock.
func BenchmarkCounting(b *testing.B) {
	s := &Server{cfg: DefaultConfig()}
	s.metrics = s.newMetrics()
	timer := s.metrics.Timer(router.Queues.String())
	b.Run("frame in", func(b *testing.B) {
		var t traffic
		for b.Loop() {
			t.read(frame.Send)
		}
	})
	b.Run("delivery", func(b *testing.B) {
		var t traffic
		var o outbox
		for b.Loop() {
			t.delivered[router.Events].Add(1)
			o.fresh.count(frame.Message)
		}
	})
	b.Run("burst out", func(b *testing.B) {
		var t traffic
		burst := make([]chunk, 4)
		for i := range burst {
			burst[i].frames[frame.Message-frame.Connected] = 25
		}
		for b.Loop() {
			t.wrote(burst)
		}
	})
	b.Run("stored send", func(b *testing.B) {
		for b.Loop() {
			timer.Done(time.Now(), nil)
		}
	})
}

// BenchmarkScrape sums up a server with 10,000 connections.
func BenchmarkScrape(b *testing.B) {
	s := &Server{cfg: DefaultConfig(), conns: make(map[*conn]struct{})}
	for range 10_000 {
		s.conns[&conn{}] = struct{}{}
	}
	for b.Loop() {
		s.sample()
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	s := &Server{cfg: DefaultConfig()}
	s.metrics = s.newMetrics()
	timer := s.metrics.Timer(router.Queues.String())
	var tr traffic
	burst := make([]chunk, 2)
	if n := testing.AllocsPerRun(100, func() {
		tr.read(frame.Send)
		tr.wrote(burst)
		timer.Done(time.Now(), nil)
		s.metrics.Failed("syntax")
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// TestReasons holds reasonOf to the list that the metrics know.
func TestReasons(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errConnectionLimit, "connection_limit"},
		{errShutdown, "stopping"},
		{errSlowConsumer, "slow_consumer"},
		{errQueueFull, "queue_full"},
		{refuse("header x"), "request"},
		{&frame.SyntaxError{Text: "x"}, "syntax"},
		{&frame.LimitError{Name: "body"}, "limit"},
		{&router.Error{Text: "x"}, "destination"},
		{errTimeout, "internal"},
	} {
		got := reasonOf(tt.err)
		if got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.err, got, tt.want)
		}
		known := false
		for _, r := range reasons {
			known = known || r == got
		}
		if !known {
			t.Errorf("%s is not counted", got)
		}
	}
}
