package connector_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
)

func TestLargeMessageBehindSmallOnesComes(t *testing.T) {
	g := start(t, nil)
	p, c := g.dial(), g.dial()
	c.subscribe("/queue/large", "auto")
	for _, small := range []int{10, 33, 45, 64, 90} {
		p.store("/queue/large", append(numbered(small, 0), append([]byte(fmt.Sprint(small, " ")), make([]byte, 2<<20)...))...)
		c.inOrder(0, small)
	}
}

// TestManyConsumersOfLargeMessagesLeaveTheLinkToNATSUp: the messages of all pulls come through one connection to NATS,
// which the server cuts when too much waits for it.
func TestManyConsumersOfLargeMessagesLeaveTheLinkToNATSUp(t *testing.T) {
	const consumers, queues, messages, size = 150, 100, 1_600, 64 << 10
	g := start(t, nil)
	p := g.dial()
	bodies := numbered(messages, size)
	for i, body := range bodies {
		p.send(fmt.Sprint("/queue/k", i%queues), body)
	}
	p.store("/queue/victim", nil) // Receipts come in order: this one's speaks for all.
	all := make([]*client, consumers)
	for i := range all {
		all[i] = g.dial()
	}
	for i, c := range all {
		c.Do("SUBSCRIBE", "id", "1", "destination", fmt.Sprint("/queue/k", i%queues), "ack", "client")
	}
	numbers := make(chan int, messages)
	var readers sync.WaitGroup
	for _, c := range all {
		readers.Go(func() {
			for {
				f, err := c.Read(time.Minute)
				if err != nil {
					return // Closed below.
				}
				n, _, _ := bytes.Cut(f.Body, []byte(" "))
				i, err := strconv.Atoi(string(n))
				if err != nil {
					i = -1 // An ERROR, or no message of ours.
				}
				numbers <- i
			}
		})
	}
	seen := make(map[int]bool)
	for len(seen) < messages {
		select {
		case n := <-numbers:
			if n < 0 || seen[n] {
				t.Fatalf("message %d came twice, or something that is none", n)
			}
			seen[n] = true
		case <-time.After(rig.Patience):
			t.Fatalf("nothing for %s, %d of %d messages came; the server logged\n%.2000s", rig.Patience, len(seen), messages, g.Log)
		}
	}
	for _, c := range all {
		_ = c.Close() // Ends its reader.
	}
	readers.Wait()
	if text := g.Log.String(); strings.Contains(text, "nats disconnected") {
		t.Errorf("the server logged\n%.2000s", text)
	}
}

// TestClientThatReadsNothingHoldsABoundedAmount: each of its subscriptions may take one message that is larger than its
// share, and all together no more than the limit and what is on the way when it is reached.
func TestClientThatReadsNothingHoldsABoundedAmount(t *testing.T) {
	const (
		subscriptions = 100
		messages      = 40
		size          = 4<<20 - 100
		most          = 16<<20 + 4*size // limits.unacked_bytes, and the large messages that may be on the way
	)
	g := start(t, func(cfg *connector.Config) {
		cfg.Limits.Body = size
	})
	p, v := g.dial(), g.dial()
	body := make([]byte, size)
	for range messages {
		p.store("/queue/big", body)
	}
	v.subscribe("/queue/victim", "auto")
	before := heap()
	c := g.dial()
	for i := range subscriptions {
		c.Do("SUBSCRIBE", "id", fmt.Sprint(i), "destination", "/queue/big", "ack", "client")
	}
	rig.Holds(t, "the client's limit is used up", g.TakeStarved)
	grown := 0
	for i := range 50 {
		p.send("/queue/victim", []byte(fmt.Sprint(i)))
		v.inOrder(i, i)
		grown = max(grown, heap()-before)
		if _, octets := g.Held(); octets > most {
			t.Fatalf("it holds %d octets, want at most %d", octets, most)
		}
	}
	if want := 4 * most; grown > want {
		t.Errorf("the heap has grown by %d MiB, want at most %d", grown>>20, want>>20)
	}
}

// heap is the octets in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
