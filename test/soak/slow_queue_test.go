package soak_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	sharedQueue = "/queue/slow/shared"
	// bulkQueue is what the reader that stalls fills its socket with.
	bulkQueue = "/queue/slow/bulk"
	bulkCount = 250
	bulkBody  = 32 << 10
	// perTick is how many messages go to the shared queue at once.
	perTick = 8
)

// TestSlowQueueReader has one consumer of a queue stop reading while 50 others go on. It holds what was sent to it
// until its connection is closed for the write stall, then the others get it (FR-143, FR-145).
func TestSlowQueueReader(t *testing.T) {
	srv := testserver.Start(t, "--limits-body", "256KiB", "--limits-pending-bytes", "1MiB", "--limits-write-stall", "1s")
	c := newConsumers(t, srv)
	judge(t, func() time.Duration { return c.run(t, 150, nil) }, func(round int) time.Duration {
		slow := c.stall(t)
		gap := c.run(t, 400, func() {
			rig.Until(t, func() error {
				if got := strings.Count(srv.Log(), "client.slow"); got < round {
					return fmt.Errorf("%d slow readers in the log, want %d", got, round)
				}
				return nil
			})
			c.drain(t, slow)
		})
		c.finishBulk(t)
		return gap
	})
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

// consumers are the 50 that read, the publisher, and what was delivered to anybody.
type consumers struct {
	srv       *testserver.Server
	publisher *rig.Client
	conns     []*stompclient.Conn
	team      crew
	runs      int

	mu      sync.Mutex
	closing bool           // guarded by mu
	gauges  []gauge        // guarded by mu; by consumer, of this run
	seen    map[string]int // guarded by mu; deliveries without redelivered:true, by queue and message
	fault   error          // guarded by mu; the first
}

func newConsumers(t *testing.T, srv *testserver.Server) *consumers {
	t.Helper()
	c := &consumers{srv: srv, publisher: rig.Connect(t, srv.TCPAddr), seen: map[string]int{}, gauges: make([]gauge, others)}
	for i := range others {
		mode := [...]string{"auto", "client-individual"}[i%2]
		conn := rig.Connect(t, srv.TCPAddr)
		conn.AskFrame(rig.Subscribe("s", sharedQueue, "ack", mode))
		c.conns = append(c.conns, conn.Conn)
		c.team.launch(func() error { return c.consume(i, conn.Conn) })
	}
	return c
}

// consume reads until the test ends.
func (c *consumers) consume(i int, conn *stompclient.Conn) error {
	for {
		f, err := conn.Expect("MESSAGE", 2*rig.Patience)
		if err == nil {
			c.note(sharedQueue, f, i)
			if ack, found := f.Lookup("ack"); found {
				err = conn.Send(stompclient.New("ACK", "id", ack))
			}
		}
		if err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.closing {
				return nil
			}
			return fmt.Errorf("consumer %d: %w", i, err)
		}
	}
}

// note records a delivery to the consumer i, or to the reader that stalled, which is -1.
func (c *consumers) note(queue string, f stompclient.Frame, i int) {
	round, number, err := parsePayload(f.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	key := messageKey(queue, round, number)
	flagged := f.Get("redelivered") == "true"
	// The first delivery may be seen last, when it lay in the socket that was not read.
	first := c.seen[key]
	if !flagged {
		first++
	}
	c.seen[key] = first
	if err == nil && first > 1 {
		err = fmt.Errorf("%s was delivered twice without redelivered:true: %s", key, f)
	}
	if c.fault == nil {
		c.fault = err
	}
	if i >= 0 && !flagged {
		c.gauges[i].arrive()
	}
}

func messageKey(queue string, round, number int) string {
	return queue + " " + strconv.Itoa(round) + ":" + strconv.Itoa(number)
}

// all waits until every message of a run was delivered to somebody.
func (c *consumers) all(t *testing.T, queue string, count int) {
	t.Helper()
	rig.Until(t, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fault != nil {
			t.Fatal(c.fault)
		}
		for number := range count {
			key := messageKey(queue, c.runs, number)
			if _, found := c.seen[key]; !found {
				return fmt.Errorf("%s has reached nobody", key)
			}
		}
		return nil
	})
}

// run sends to the shared queue for so many ticks and returns the largest gap that one consumer saw, or the publisher
// between its receipts. Every message must reach somebody, after after.
func (c *consumers) run(t *testing.T, ticks int, after func()) time.Duration {
	t.Helper()
	c.runs++
	start := time.Now()
	c.mu.Lock()
	for i := range c.gauges {
		c.gauges[i] = gauge{last: start}
	}
	c.mu.Unlock()
	receipts := gauge{last: start}
	var team crew
	team.launch(func() error { return c.publish(ticks) })
	team.launch(func() error {
		for number := range ticks * perTick {
			f, err := c.publisher.Read(rig.Patience)
			if want := fmt.Sprint(number); err != nil || f.Command != "RECEIPT" || f.Get("receipt-id") != want {
				return unexpected(f, err, "the receipt "+want)
			}
			receipts.arrive()
		}
		return nil
	})
	if err := team.wait(); err != nil {
		t.Fatal(err)
	}
	most := receipts.most
	c.mu.Lock()
	for i := range c.gauges {
		c.gauges[i].arrive() // The end of the run.
		most = max(most, c.gauges[i].most)
	}
	c.mu.Unlock()
	if after != nil {
		after()
	}
	c.all(t, sharedQueue, ticks*perTick)
	return most
}

func (c *consumers) publish(ticks int) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for number := range ticks * perTick {
		f := rig.Send(sharedQueue, payload(256, c.runs, number), "receipt", fmt.Sprint(number))
		if err := c.publisher.Send(f); err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
		if number%perTick == perTick-1 {
			<-tick.C
		}
	}
	return nil
}

// stall connects the reader that does not read: its socket fills up from the bulk queue.
func (c *consumers) stall(t *testing.T) *rig.Client {
	t.Helper()
	for number := range bulkCount {
		f := rig.Send(bulkQueue, payload(bulkBody, c.runs+1, number))
		if number == bulkCount-1 {
			c.publisher.AskFrame(f)
		} else if err := c.publisher.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	slow := rig.Connect(t, c.srv.TCPAddr)
	slow.AskFrame(rig.Subscribe("shared", sharedQueue, "ack", "auto"))
	slow.DoFrame(rig.Subscribe("bulk", bulkQueue, "ack", "auto", "prefetch-count", "1000"))
	return slow
}

// drain reads what still reached the socket of the slow reader.
func (c *consumers) drain(t *testing.T, slow *rig.Client) {
	t.Helper()
	for {
		f, err := slow.Expect("MESSAGE", rig.Patience)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection of a reader that was too slow is still open")
		}
		if err != nil {
			return // Ended, perhaps within a frame.
		}
		queue := sharedQueue
		if f.Get("subscription") == "bulk" {
			queue = bulkQueue
		}
		c.note(queue, f, -1)
	}
}

// finishBulk reads what the slow reader left in its own queue.
func (c *consumers) finishBulk(t *testing.T) {
	t.Helper()
	rest := rig.Connect(t, c.srv.TCPAddr)
	defer rest.Close()
	rest.AskFrame(rig.Subscribe("bulk", bulkQueue))
	var team crew
	team.launch(func() error {
		for {
			f, err := rest.Expect("MESSAGE", rig.Patience)
			if err != nil {
				return nil //nolint:nilerr // Closed below, when all was seen.
			}
			c.note(bulkQueue, f, -1)
		}
	})
	c.all(t, bulkQueue, bulkCount)
	_ = rest.Close()
	if err := team.wait(); err != nil {
		t.Error(err)
	}
}

func (c *consumers) close() error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	return errors.Join(c.team.wait(), c.fault)
}
