package bench_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/testserver"
)

// work is the shape of a topic benchmark.
type work struct{ publishers, subscribers int }

// inFlight bounds the messages on the way to the slowest subscriber: about where NATS raw is fastest, which falls off on
// both sides, with fewer for want of batches, with more as they leave the processor's caches.
func (w work) inFlight() int { return max(512, min(4096, 10_240/w.subscribers)) }

// batch is how many messages of that size are sent at once.
func (w work) batch(size int) int { return max(1, min(batchSize/size, w.inFlight()/2)) }

// topicPeers connects all peers, natstomp first.
func topicPeers(b *testing.B, srv *testserver.Server, w work) []*peer {
	b.Helper()
	name := fmt.Sprintf("bench.%dx%d.", w.publishers, w.subscribers)
	var peers []*peer
	for _, start := range []func() (*peer, error){
		func() (*peer, error) { return stompTopic(srv.TCPAddr, name+"stomp", w) },
		func() (*peer, error) { return goTopic(srv.NATSURL, name+"go", w) },
		func() (*peer, error) { return rawTopic(srv.NATSURL, name+"raw", w) },
	} {
		p, err := start()
		b.Cleanup(p.close)
		if err != nil {
			b.Fatalf("%s: %v", p.name, err)
		}
		peers = append(peers, p)
	}
	return peers
}

// BenchmarkTopic measures deliveries per second, P x S: publishers x subscribers of one topic.
func BenchmarkTopic(b *testing.B) {
	srv := server(b)
	for _, w := range []work{{1, 1}, {1, 10}, {1, 100}, {10, 10}} {
		b.Run(fmt.Sprintf("%dx%d", w.publishers, w.subscribers), func(b *testing.B) { benchTopic(b, srv, w) })
	}
}

func benchTopic(b *testing.B, srv *testserver.Server, w work) {
	defer useCores()()
	peers := topicPeers(b, srv, w)
	rates := make([][]float64, len(peers))
	costs := make([]cost, len(peers))
	turn := func(i int, d time.Duration) float64 {
		before := cpuTime(srv.PID())
		sent, took, err := peers[i].flow(w.inFlight(), d)
		if err != nil {
			b.Fatal(err)
		}
		deliveries := float64(sent) * float64(w.subscribers)
		costs[i].add(cpuTime(srv.PID())-before, deliveries)
		return deliveries / took.Seconds()
	}
	for i := range peers {
		turn(i, smokeSlice) // Buffers grow, nothing is measured yet.
		costs[i] = cost{}
	}
	rounds(b, func(d time.Duration) {
		for i := range peers {
			rates[i] = append(rates[i], turn(i, d))
		}
	})
	stomp, viaGo, raw := median(rates[0]), median(rates[1]), median(rates[2])
	b.ReportMetric(stomp, "deliveries/s")
	b.ReportMetric(0, "lost") // Anything else has ended the benchmark.
	reportRatio(b, stomp, viaGo, "ratio_to_natsgo")
	reportRatio(b, stomp, raw, "ratio_to_raw")
	reportRatio(b, costs[0].each(), costs[2].each(), "cpu_ratio_to_raw")
}

// cost is the server's CPU time for a number of messages.
type cost struct {
	cpu      time.Duration
	messages float64
}

func (c *cost) add(cpu time.Duration, messages float64) {
	c.cpu += cpu
	c.messages += messages
}

// each is the CPU time of one message in seconds, 0 if it is not known.
func (c *cost) each() float64 {
	if c.messages == 0 {
		return 0
	}
	return c.cpu.Seconds() / c.messages
}
