package soak_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	replayDestination = "/topic-store/replay/all"
	replaySubject     = "stomp.store.replay.all"
	replayBody        = 256
	// replaySlower is how much slower than the store the slow reader is.
	replaySlower = 10
	// replayGrowth is how much memory the server may need for a slow reader beyond what a fast one takes: the reader's
	// out queue (half of limits.pending_bytes) and the collector's slack.
	replayGrowth = 48 << 20
)

// replayMessages is how many messages are replayed: 60,000 (fewer under the race detector), or what NATSTOMP_REPLAY
// says.
func replayMessages(t *testing.T) int {
	t.Helper()
	text := os.Getenv("NATSTOMP_REPLAY")
	if text == "" {
		return 60_000 / slowness
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestReplay replays everything that is stored to a reader as fast as it can, then to one ten times slower: complete, in
// order, and the server's memory does not depend on how far behind the reader is (FR-143).
func TestReplay(t *testing.T) {
	messages := replayMessages(t)
	srv := testserver.Start(t)
	rig.Connect(t, srv.TCPAddr).Subscribe("first", replayDestination) // It makes the stream.
	storeAll(t, srv, messages)

	started := time.Now()
	fastPeak := replay(t, srv, messages, 0)
	fast := time.Since(started)
	t.Logf("%d messages replayed in %v, %.0f/s; resident memory up to %d MiB", messages, fast, float64(messages)/fast.Seconds(), fastPeak>>20)

	started = time.Now()
	slowPeak := replay(t, srv, messages, replaySlower*fast/time.Duration(messages))
	slow := time.Since(started)
	t.Logf("%d messages replayed in %v to a slow reader; resident memory up to %d MiB", messages, slow, slowPeak>>20)
	if slow < (replaySlower-1)*fast {
		t.Errorf("the slow reader took %v, want about %d times %v", slow, replaySlower, fast)
	}
	if slowPeak > fastPeak+replayGrowth {
		t.Errorf("resident memory: %d MiB with the slow reader, %d MiB with the fast one, want at most %d MiB more",
			slowPeak>>20, fastPeak>>20, replayGrowth>>20)
	}
}

// storeAll stores the messages with a native client.
func storeAll(t *testing.T, srv *testserver.Server, messages int) {
	t.Helper()
	nc, _ := rig.Native(t, srv.NATSURL)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4_000))
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		if _, err := js.PublishAsync(replaySubject, payload(replayBody, 1, i), jetstream.WithStallWait(rig.Patience)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(5 * time.Minute):
		t.Fatal("the store is not filled")
	}
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()
	s, err := js.Stream(ctx, "STORE")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().State.Msgs; got != uint64(messages) {
		t.Fatalf("stored: got %d messages, want %d", got, messages)
	}
}

// replay reads everything with at least the given time per message and returns the server's largest resident memory.
func replay(t *testing.T, srv *testserver.Server, messages int, each time.Duration) (peak int64) {
	t.Helper()
	c, err := rig.Open(srv.TCPAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(rig.Subscribe("s", replayDestination, "x-start", "first")); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	for i := range messages {
		f, err := c.Expect("MESSAGE", rig.Patience)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if err := replayed(f, i); err != nil {
			t.Fatal(err)
		}
		if i%1_000 == 0 {
			peak = max(peak, srv.Memory(t, "VmRSS"))
		}
		if ahead := time.Until(started.Add(time.Duration(i) * each)); ahead > 5*time.Millisecond {
			time.Sleep(ahead) // The pace of the reader is what is tested.
		}
	}
	return peak
}

func replayed(f stompclient.Frame, i int) error {
	_, number, err := parsePayload(f.Body)
	switch {
	case err != nil:
		return err
	case number != i || f.Get("x-seq") != strconv.Itoa(i+1) || len(f.Body) != replayBody:
		return fmt.Errorf("got message %d with x-seq %s, want message %d", number, f.Get("x-seq"), i)
	case strings.Contains(f.Get("redelivered"), "t"):
		return fmt.Errorf("message %d is redelivered", i)
	}
	return nil
}
