package bench_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// latencyRate is how many messages a second the latency is measured at.
const latencyRate = 1_000

// BenchmarkLatency measures the time from a publisher's write to the subscriber, at a constant low rate.
func BenchmarkLatency(b *testing.B) {
	srv := server(b)
	b.Run("topic", func(b *testing.B) {
		defer useCores()()
		peers := topicPeers(b, srv, work{publishers: 1, subscribers: 1})
		clocks := make([]*clock, len(peers))
		for i, p := range peers {
			clocks[i] = newClock(p)
			if err := clocks[i].run(smokeSlice); err != nil {
				b.Fatal(err)
			}
			clocks[i].microseconds = nil
		}
		rounds(b, func(d time.Duration) {
			for _, c := range clocks {
				if err := c.run(d); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, q := range []struct {
			share float64
			name  string
		}{{0.5, "p50"}, {0.99, "p99"}} {
			stomp := quantile(clocks[0].microseconds, q.share)
			b.ReportMetric(stomp, q.name+"_us")
			reportRatio(b, stomp, quantile(clocks[1].microseconds, q.share), q.name+"_ratio_to_natsgo")
			reportRatio(b, stomp, quantile(clocks[2].microseconds, q.share), q.name+"_ratio_to_raw")
		}
	})
}

// clock times each message of a peer with one subscriber.
type clock struct {
	p            *peer
	epoch        time.Time
	sentAt       [1024]atomic.Int64 // by the message's number, in ns since epoch
	microseconds []float64          // guarded by the sink's count: its reader has written before it counts
}

func newClock(p *peer) *clock {
	c := &clock{p: p, epoch: time.Now()}
	p.sinks[0].seen = c.seen
	return c
}

// seen notes the latency of the messages from and up to those numbers.
func (c *clock) seen(from, to int64) {
	now := time.Since(c.epoch).Nanoseconds()
	for n := from; n < to; n++ {
		sent := c.sentAt[n%int64(len(c.sentAt))].Load()
		c.microseconds = append(c.microseconds, float64(now-sent)/1e3)
	}
}

// run sends one message at each tick for d.
func (c *clock) run(d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d+grace)
	defer cancel()
	tick := time.NewTicker(time.Second / latencyRate)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); {
		<-tick.C
		if err := c.p.awaitAll(ctx, c.p.sent+1-int64(len(c.sentAt))); err != nil {
			return err
		}
		c.sentAt[c.p.sent%int64(len(c.sentAt))].Store(time.Since(c.epoch).Nanoseconds())
		if err := c.p.send(1); err != nil {
			return err
		}
		c.p.sent++
	}
	if err := c.p.awaitAll(ctx, c.p.sent); err != nil {
		return err
	}
	return c.p.complete()
}
