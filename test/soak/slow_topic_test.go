package soak_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	topicBody = 1 << 10
	// greed is how often the reader that stalls subscribes, so that its own socket fills up soon.
	greed = 80
	// idleCount and slowCount are the messages of a run without and with it: enough for it to be cut off meanwhile.
	idleCount, slowCount = 150, 400
)

// TestSlowTopicReader has one subscriber of a topic stop reading while 50 others go on (FR-143, FR-145).
func TestSlowTopicReader(t *testing.T) {
	t.Run("close", func(t *testing.T) {
		srv := testserver.Start(t, "--limits-body", "256KiB", "--limits-pending-bytes", "1MiB", "--limits-write-stall", "1s")
		r := newReaders(t, srv)
		judge(t, func() time.Duration { return r.run(t, idleCount) }, func(round int) time.Duration {
			return r.stalled(t, func(c *stompclient.Conn) {
				rig.Until(t, func() error {
					if got := strings.Count(srv.Log(), "client.slow"); got < round {
						return fmt.Errorf("%d slow readers in the log, want %d", got, round)
					}
					return nil
				})
				wantCutOff(t, c)
			})
		})
	})
	t.Run("drop", func(t *testing.T) {
		srv := testserver.Start(t, "--limits-body", "256KiB", "--limits-pending-bytes", "1MiB", "--limits-write-stall", "60s",
			"--limits-slow-consumer", "drop")
		r := newReaders(t, srv)
		judge(t, func() time.Duration { return r.run(t, idleCount) }, func(int) time.Duration {
			return r.stalled(t, func(c *stompclient.Conn) { r.wantHole(t, c) })
		})
	})
}

// wantCutOff reads what still reached a reader that was too slow: messages in order, perhaps the ERROR, then the end.
func wantCutOff(t *testing.T, c *stompclient.Conn) {
	t.Helper()
	next := map[string]int{}
	for {
		f, err := c.Read(rig.Patience)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection of a reader that was too slow is still open")
		}
		if err != nil {
			return // Ended, perhaps within a frame.
		}
		if f.Command == "ERROR" {
			if got := f.Get("message"); got != "slow consumer" {
				t.Fatalf("got %s, want the ERROR slow consumer", f)
			}
			continue
		}
		_, number, err := parsePayload(f.Body)
		if err != nil {
			t.Fatal(err)
		}
		id := f.Get("subscription")
		if number != next[id] {
			t.Fatalf("subscription %s got message %d, want %d: a hole where nothing may be dropped", id, number, next[id])
		}
		next[id]++
	}
}

// readers are the 50 that read, and the publisher.
type readers struct {
	srv       *testserver.Server
	topic     string
	publisher *rig.Client
	conns     []*stompclient.Conn
	runs      int
}

func newReaders(t *testing.T, srv *testserver.Server) *readers {
	t.Helper()
	r := &readers{srv: srv, topic: "/topic/slow", publisher: rig.Connect(t, srv.TCPAddr)}
	for range others {
		c := rig.Connect(t, srv.TCPAddr)
		c.AskFrame(rig.Subscribe("s", r.topic))
		r.conns = append(r.conns, c.Conn)
	}
	return r
}

// stalled is a run beside a reader that stalls, which after sees.
func (r *readers) stalled(t *testing.T, after func(*stompclient.Conn)) time.Duration {
	t.Helper()
	c := rig.Connect(t, r.srv.TCPAddr)
	for i := range greed {
		c.AskFrame(rig.Subscribe(fmt.Sprint(i), r.topic))
	}
	gap := r.run(t, slowCount)
	after(c.Conn)
	_ = c.Close()
	return gap
}

// run sends so many messages, which all must get in order, and returns the largest gap that one of them saw.
func (r *readers) run(t *testing.T, count int) time.Duration {
	t.Helper()
	r.runs++
	var team crew
	gauges := make([]gauge, len(r.conns))
	for i, c := range r.conns {
		team.launch(func() error {
			for number := range count {
				f, err := c.Expect("MESSAGE", rig.Patience)
				if err != nil {
					return fmt.Errorf("subscriber %d, message %d of %d: %w", i, number, count, err)
				}
				if err := wantPayload(f, r.runs, number); err != nil {
					return fmt.Errorf("subscriber %d: %w", i, err)
				}
				gauges[i].arrive()
			}
			return nil
		})
	}
	team.launch(func() error { return r.publish(count) })
	if err := team.wait(); err != nil {
		t.Fatal(err)
	}
	most := time.Duration(0)
	for _, g := range gauges {
		most = max(most, g.most)
	}
	return most
}

func (r *readers) publish(count int) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for number := range count {
		if err := r.publisher.Send(rig.Send(r.topic, payload(topicBody, r.runs, number))); err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
		<-tick.C
	}
	return nil
}

func wantPayload(f stompclient.Frame, round, number int) error {
	gotRound, gotNumber, err := parsePayload(f.Body)
	if err == nil && (gotRound != round || gotNumber != number) {
		err = fmt.Errorf("got message %d of run %d, want %d of %d", gotNumber, gotRound, number, round)
	}
	return err
}

// wantHole lets a reader that was too slow read again: under the policy drop it has missed messages, in order, but
// lives on and gets the next ones.
func (r *readers) wantHole(t *testing.T, c *stompclient.Conn) {
	t.Helper()
	const marker = 1 << 20
	done := make(chan struct{})
	var team crew
	team.launch(func() error {
		// Each marker also goes to the others, who read it here.
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			if err := r.publisher.Send(rig.Send(r.topic, payload(topicBody, r.runs, marker))); err != nil {
				return err
			}
			for _, other := range r.conns {
				f, err := other.Expect("MESSAGE", rig.Patience)
				if err == nil {
					err = wantPayload(f, r.runs, marker)
				}
				if err != nil {
					return err
				}
			}
			select {
			case <-done:
				return nil
			case <-tick.C:
			}
		}
	})
	got, last := 0, map[string]int{}
	for marked := 0; marked < greed; {
		f, err := c.Expect("MESSAGE", rig.Patience)
		if err != nil {
			t.Errorf("a slow reader under slow_consumer: drop: %v", err)
			break
		}
		_, number, err := parsePayload(f.Body)
		if err != nil {
			t.Error(err)
			break
		}
		id := f.Get("subscription")
		if before, found := last[id]; found && (number < before || number == before && number != marker) {
			t.Errorf("subscription %s got message %d after %d", id, number, before)
		}
		if number == marker && last[id] != marker {
			marked++
		}
		if number != marker {
			got++
		}
		last[id] = number
	}
	close(done)
	if err := team.wait(); err != nil {
		t.Fatal(err)
	}
	if all := greed * slowCount; got == 0 || got >= all {
		t.Errorf("a slow reader got %d of %d messages, want some to be dropped", got, all)
	}
}
