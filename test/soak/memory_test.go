package soak_test

import (
	"bytes"
	"flag"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

var flood = flag.Duration("flood", 8*time.Second, "how long TestMemoryLimit floods the server")

const (
	floodPublishers, floodDeaf = 200, 50
	// floodLimit is memory_limit, floodBound what the process may have in all: the limit is on what the Go runtime has.
	floodLimit, floodBound = 256 << 20, 300 << 20
	// backlog is the messages that a consumer takes off a queue meanwhile.
	backlog = 20_000
)

// TestMemoryLimit has 200 publishers send as fast as they can to 50 subscribers that do not read. The process stays below
// its limit, somebody who consumes from a queue goes on, also while publishers wait, and afterwards all is as before (FR-153).
func TestMemoryLimit(t *testing.T) {
	srv := testserver.Start(t, "--memory-limit", fmt.Sprintf("%dMiB", floodLimit>>20))
	steady := rig.Connect(t, srv.TCPAddr)
	fillQueue(t, steady)
	stop := make(chan struct{})
	var team crew
	for range floodDeaf {
		team.launch(func() error { return deaf(srv, stop) })
	}
	senders := make([]*stompclient.Conn, floodPublishers)
	for i := range senders {
		senders[i] = rig.Connect(t, srv.TCPAddr).Conn
		team.launch(func() error { return floodTopic(senders[i], stop) })
	}
	consumed, last := new(atomic.Int64), make(chan struct{})
	team.launch(func() error {
		defer close(last)
		return consume(steady.Conn, consumed)
	})
	seen := watchFlood(t, srv, consumed)
	close(stop)
	for _, c := range senders {
		_ = c.Close() // Ends a write that waits.
	}
	begun := time.Now()
	rig.Until(t, func() error {
		if scrape(t, srv, "natstomp_memory_alarm") != 0 {
			return fmt.Errorf("publishers still wait")
		}
		return nil
	})
	reader, writer := rig.Connect(t, srv.TCPAddr), rig.Connect(t, srv.TCPAddr)
	reader.AskFrame(rig.Subscribe("r", "/topic/after"))
	writer.AskFrame(rig.Send("/topic/after", []byte("hello")))
	if _, err := reader.Expect("MESSAGE", rig.Patience); err != nil {
		t.Errorf("after the flood: %v", err)
	}
	recovered := time.Since(begun)
	<-last
	if err := team.wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d MiB at the peak, paused %d of %d times looked, %d connections closed for it, recovered after %v",
		seen.peak>>20, seen.paused, seen.looks, seen.closed, recovered)
	if recovered > 15*time.Second*slowness {
		t.Errorf("served again after %v, want within 15 s", recovered)
	}
	if slowness == 1 && seen.peak > floodBound {
		t.Errorf("the process had %d MiB, want at most %d MiB", seen.peak>>20, floodBound>>20)
	}
	if seen.paused == 0 || seen.closed == 0 {
		t.Error("the limit was never near: the test shows nothing")
	}
	if seen.consumedPaused == 0 {
		t.Error("the consumer of the queue got nothing while publishers waited")
	}
}

// sights are what watchFlood saw.
type sights struct {
	peak                  int64
	looks, paused, closed int
	consumedPaused        int64
}

// watchFlood looks at the server while it is flooded.
func watchFlood(t *testing.T, srv *testserver.Server, consumed *atomic.Int64) (seen sights) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(*flood); time.Now().Before(end); <-tick.C {
		before := consumed.Load()
		seen.looks++
		first := scrape(t, srv, "natstomp_memory_alarm")
		again := scrape(t, srv, "natstomp_memory_alarm")
		if first != 0 && again != 0 {
			seen.paused++
			seen.consumedPaused += consumed.Load() - before
		}
	}
	seen.peak = srv.Memory(t, "VmHWM")
	seen.closed = scrape(t, srv, "natstomp_memory_closed_total")
	return seen
}

// scrape reads one metric without labels.
func scrape(t *testing.T, srv *testserver.Server, name string) int {
	t.Helper()
	n, err := strconv.ParseFloat(rig.Metric(t, srv.AdminAddr, name), 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// fillQueue stores the backlog and subscribes to it.
func fillQueue(t *testing.T, c *rig.Client) {
	t.Helper()
	for i := range backlog - 1 {
		c.DoFrame(rig.Send("/queue/steady", fmt.Append(nil, i)))
	}
	c.AskFrame(rig.Send("/queue/steady", fmt.Append(nil, backlog-1)))
}

// consume takes the backlog, in order, a little at a time.
func consume(c *stompclient.Conn, consumed *atomic.Int64) error {
	if err := c.Send(rig.Subscribe("s", "/queue/steady", "ack", "client-individual", "prefetch-count", "10")); err != nil {
		return err
	}
	for i := range backlog {
		f, err := c.Expect("MESSAGE", rig.Patience)
		if err != nil {
			return fmt.Errorf("message %d of the queue: %w", i, err)
		}
		if got, want := string(f.Body), fmt.Sprint(i); got != want {
			return fmt.Errorf("got message %s of the queue, want %s", got, want)
		}
		if err := c.Send(stompclient.New("ACK", "id", f.Get("ack"))); err != nil {
			return err
		}
		consumed.Add(1)
	}
	return nil
}

// floodTopic sends until it is told to stop or the connection is closed, which the test does.
func floodTopic(c *stompclient.Conn, stop <-chan struct{}) error {
	frames := bytes.Repeat(rig.Send("/topic/flood", bytes.Repeat([]byte{'x'}, 1<<10)).Encode("1.2"), 16)
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := c.NetConn().SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			return nil
		}
		if _, err := c.NetConn().Write(frames); err != nil {
			select {
			case <-stop:
				return nil
			default:
				return fmt.Errorf("a publisher: %w", err)
			}
		}
	}
}

// deaf subscribes, sends heart-beats and does not read. When the server closes the connection it comes again.
func deaf(srv *testserver.Server, stop <-chan struct{}) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := rig.Open(srv.TCPAddr, "heart-beat", "1000,1000")
		if err != nil {
			return err
		}
		for err = c.Send(rig.Subscribe("d", "/topic/flood")); err == nil; err = c.Write([]byte{'\n'}) {
			select {
			case <-stop:
				return c.Close()
			case <-tick.C:
			}
		}
		_ = c.Close() // The server has done so.
	}
}
