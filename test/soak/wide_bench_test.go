package soak_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

// BenchmarkWideFilterCost measures what an open /topic/> costs queues at full speed. Runs with and without it
// alternate; "ratio" is the median throughput with it by the median without it, of at least five runs each. The goal is
// more than 0.7.
func BenchmarkWideFilterCost(b *testing.B) {
	srv := testserver.Start(b)
	r := newRace(b, srv)
	r.run(b) // The queue is made, buffers have grown.
	var without, with []float64
	pair := func() {
		without = append(without, r.run(b))
		c, err := rig.Open(srv.TCPAddr)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Confirm(rig.Subscribe("w", "/topic/>"), rig.Patience); err != nil {
			b.Fatal(err)
		}
		with = append(with, r.run(b))
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		pair()
	}
	b.StopTimer()
	for len(with) < 5 {
		pair()
	}
	b.ReportMetric(median(without), "without-msg/s")
	b.ReportMetric(median(with), "with-msg/s")
	b.ReportMetric(median(with)/median(without), "ratio")
	b.ReportMetric(0, "ns/op")
}

func median(figures []float64) float64 {
	sorted := slices.Clone(figures)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// race is a producer and a consumer of one queue at full speed.
type race struct {
	producer *rig.Client
	sent     atomic.Int64
	received atomic.Int64
}

const (
	raceQueue = "/queue/race"
	raceTime  = 150 * time.Millisecond
)

func newRace(b *testing.B, srv *testserver.Server) *race {
	b.Helper()
	r := &race{producer: rig.Connect(b, srv.TCPAddr)}
	consumer := rig.Connect(b, srv.TCPAddr)
	consumer.AskFrame(rig.Subscribe("q", raceQueue, "ack", "auto", "prefetch-count", "500"))
	var team crew
	team.launch(func() error { return consumeLoad(consumer.Conn, &r.received) })
	b.Cleanup(func() {
		_ = consumer.Close()
		if err := team.wait(); err != nil {
			b.Error(err)
		}
	})
	return r
}

// run is one stretch at full speed; it returns the messages per second, stored and consumed.
func (r *race) run(b *testing.B) float64 {
	b.Helper()
	before, start := r.received.Load(), time.Now()
	var stop atomic.Bool
	timer := time.AfterFunc(raceTime, func() { stop.Store(true) })
	defer timer.Stop()
	err := produceLoad(r.producer.Conn, raceQueue, &stop, &r.sent)
	if err == nil {
		err = waitEqual(&r.received, &r.sent)
	}
	if err != nil {
		b.Fatal(fmt.Errorf("full speed: %w", err))
	}
	return float64(r.received.Load()-before) / time.Since(start).Seconds()
}
