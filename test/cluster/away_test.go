package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const notAvailable = "NATS is not available, try again later"

// TestStartBeforeNATS starts natstomp while NATS is down: it answers CONNECT with an ERROR and heals by itself (FR-162).
func TestStartBeforeNATS(t *testing.T) {
	t.Parallel()
	n := newNATS(t, "late", freePorts(t, 1)[0], "")
	srv := testserver.StartEarly(t, "--nats-url", n.url(), "--queues-declare", "/queue/declared")
	if !strings.Contains(srv.Log(), "not ready, trying on:") {
		t.Errorf("the start block does not say that it is not ready:\n%s", srv.Log())
	}
	refused(t, srv)
	n.start(t)
	if err := srv.Await(rig.Patience); err != nil {
		t.Fatal(err)
	}
	if got, want := durability(t, srv), "nats;r=1"; got != want {
		t.Errorf("durability: got %q, want %q", got, want)
	}
	rig.Connect(t, srv.TCPAddr).AskFrame(rig.Send("/queue/late", "x"))
	_, js := native(t, n.url())
	if _, err := js.Stream(t.Context(), rig.QueueStream("declared")); err != nil {
		t.Errorf("the declared queue: %v", err)
	}
}

// refused expects the ERROR to CONNECT while NATS is away.
func refused(t *testing.T, srv *testserver.Server) {
	t.Helper()
	conn, err := stompclient.Dial(srv.TCPAddr)
	if err != nil {
		t.Fatal(err)
	}
	c := rig.NewClient(t, conn)
	c.Do("CONNECT", "accept-version", "1.2")
	if got := c.Any(); got.Command != "ERROR" || got.Get("message") != notAvailable {
		t.Errorf("got %s, want ERROR %s", got, notAvailable)
	}
	text, err := srv.Readiness()
	if err != nil || !strings.HasPrefix(text, "not ready: NATS is not available") {
		t.Errorf("readiness: got %q (%v), want that NATS is not available", text, err)
	}
}

// away waits until natstomp has noticed that NATS is away.
func away(t *testing.T, srv *testserver.Server) {
	t.Helper()
	rig.Until(t, func() error {
		text, err := srv.Readiness()
		if err == nil && text == "ok" {
			err = errors.New("still ready")
		}
		return err
	})
}

// TestSessionOverAnOutage does with an open session, while NATS is away, all that must wait for it, and what may be
// dropped; nothing closes the session (FR-149).
func TestSessionOverAnOutage(t *testing.T) {
	t.Parallel()
	n := single(t, "")
	srv := testserver.Start(t, "--nats-url", n.url())
	c, sub := rig.Connect(t, srv.TCPAddr), rig.Connect(t, srv.TCPAddr)
	sub.AskFrame(rig.Subscribe("s", "/topic/out"))
	for _, body := range []string{"1", "2", "3"} {
		c.AskFrame(rig.Send("/queue/held", body))
	}
	c.AskFrame(rig.Send("/queue/out", "stored 0"))
	c.DoFrame(rig.Subscribe("held", "/queue/held", "ack", "client-individual"))
	var acks []string
	for range 3 {
		acks = append(acks, c.Any().Get("ack"))
	}
	n.stop()
	away(t, srv)
	refused(t, srv)
	for _, f := range []stompclient.Frame{
		rig.Send("/topic/out", "dropped"),
		rig.Send("/topic/out", "waits 1", "receipt", "t1"),
		rig.Send("/topic/out", "dropped too"),
		rig.Send("/queue/out", "stored 1", "receipt", "q1"),
		rig.Send("/topic/out", "waits 2", "receipt", "t2"),
		stompclient.New("ACK", "id", acks[0]),                  // Kept.
		stompclient.New("ACK", "id", acks[1], "receipt", "a1"), // Confirmed later.
		stompclient.New("NACK", "id", acks[2], "x-delay", "0"), // Kept.
		rig.Subscribe("late", "/topic/out2", "receipt", "s1"),
		rig.Subscribe("queue", "/queue/out", "receipt", "s2"),
		stompclient.New("BEGIN", "transaction", "tx"),
		rig.Send("/queue/out", "stored 2", "transaction", "tx"),
		rig.Send("/queue/out", "stored 3", "transaction", "tx"),
		rig.Send("/topic/out", "waits 3", "transaction", "tx"),
		stompclient.New("COMMIT", "transaction", "tx", "receipt", "c1"),
	} {
		c.DoFrame(f)
	}
	n.start(t)
	var receipts []string
	bodies := map[string][]string{}
	for len(receipts) < 7 || len(bodies["queue"]) < 4 || len(bodies["held"]) < 1 {
		switch f := c.Any(); f.Command {
		case "RECEIPT":
			receipts = append(receipts, f.Get("receipt-id"))
		case "MESSAGE":
			bodies[f.Get("subscription")] = append(bodies[f.Get("subscription")], string(f.Body))
			// It may have been delivered before, as far as a server of one replica can tell.
			if before := string(f.Body) == "3" || string(f.Body) == "stored 0"; before && f.Get("redelivered") != "true" {
				t.Errorf("got %s, want redelivered:true", f)
			}
		default:
			t.Fatalf("got %s", f)
		}
	}
	if got, want := strings.Join(receipts, " "), "t1 q1 t2 a1 s1 s2 c1"; got != want {
		t.Errorf("receipts: got %q, want %q", got, want)
	}
	if got, want := bodies["queue"], []string{"stored 0", "stored 1", "stored 2", "stored 3"}; !slices.Equal(got, want) {
		t.Errorf("queue: got %q, want %q", got, want)
	}
	if got, want := bodies["held"], []string{"3"}; !slices.Equal(got, want) {
		t.Errorf("given back: got %q, want %q", got, want)
	}
	for _, want := range []string{"waits 1", "waits 2", "waits 3"} {
		if got := sub.Any(); string(got.Body) != want {
			t.Errorf("topic: got %s, want %q", got, want)
		}
	}
	_, js := native(t, n.url())
	rig.Until(t, func() error { return messages(t, js, "held", 1) }) // The first two are acknowledged, the third is held.
}

// messages says whether a queue's stream holds so many messages.
func messages(t *testing.T, js jetstream.JetStream, channel string, want uint64) error {
	t.Helper()
	s, err := js.Stream(t.Context(), rig.QueueStream(channel))
	if err == nil && s.CachedInfo().State.Msgs != want {
		err = fmt.Errorf("%d messages in the queue, want %d", s.CachedInfo().State.Msgs, want)
	}
	return err
}

// TestPublishTimeout expects an ERROR with the receipt when NATS stays away for too long, and heart-beats until then
// (FR-149).
func TestPublishTimeout(t *testing.T) {
	t.Parallel()
	n := single(t, "")
	srv := testserver.Start(t, "--nats-url", n.url(), "--nats-publish-timeout", "5s", "--limits-heartbeat", "100ms")
	queue, topic := rig.Connect(t, srv.TCPAddr, "heart-beat", "0,100"), rig.Connect(t, srv.TCPAddr, "heart-beat", "0,100")
	queue.AskFrame(rig.Send("/queue/late", "x"))
	n.stop()
	away(t, srv)
	for c, f := range map[*rig.Client]stompclient.Frame{
		queue: rig.Send("/queue/late", "y", "receipt", "late"),
		topic: rig.Send("/topic/late", "y", "receipt", "late"),
	} {
		start, beats := time.Now(), c.Beats()
		c.DoFrame(f)
		got := c.Any()
		if beats = c.Beats() - beats; beats < 3 {
			t.Errorf("got %d heart-beats while the client waited, want one each 100 ms at least", beats)
		}
		if got.Command != "ERROR" || got.Get("receipt-id") != "late" || got.Get("message") != "not confirmed by NATS within nats.publish_timeout" {
			t.Errorf("got %s, want the ERROR of nats.publish_timeout", got)
		}
		if took := time.Since(start); took < 5*time.Second || took > 20*time.Second {
			t.Errorf("the ERROR came after %v, want about 5 s", took)
		}
	}
}

// TestStopWithoutNATS stops natstomp while NATS is away and messages wait: it must not wait for them (testserver fails
// the test if it does not end in time with 0).
func TestStopWithoutNATS(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]bool{"down": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := single(t, "")
			p := newProxy(t, "127.0.0.1:"+strconv.Itoa(n.port))
			srv := testserver.Start(t, "--nats-url", p.url())
			c := rig.Connect(t, srv.TCPAddr)
			c.AskFrame(rig.Send("/queue/stop", "x"))
			c.DoFrame(rig.Subscribe("s", "/queue/stop", "ack", "client"))
			c.Any()
			if hang {
				p.hang()
			} else {
				n.stop()
				away(t, srv)
			}
			c.DoFrame(rig.Send("/queue/stop", "y", "receipt", "never"))
			start := time.Now()
			if err := srv.Stop(); err != nil {
				t.Error(err)
			}
			t.Logf("stopped in %v", time.Since(start))
			if got := c.Any(); got.Command != "ERROR" || got.Get("message") != "server shutting down" {
				t.Errorf("got %s, want ERROR server shutting down", got)
			}
		})
	}
}

// TestGoneStream deletes the stream of a queue that natstomp knows.
func TestGoneStream(t *testing.T) {
	t.Parallel()
	n := single(t, "")
	a, b := testserver.Start(t, "--nats-url", n.url()), testserver.Start(t, "--nats-url", n.url())
	_, js := native(t, n.url())
	stream := rig.QueueStream("gone.q")
	ca := rig.Connect(t, a.TCPAddr)
	ca.AskFrame(rig.Send("/queue/gone/q", "x"))
	reader := rig.Connect(t, b.TCPAddr)
	reader.DoFrame(rig.Subscribe("s", "/queue/gone/q", "ack", "client"))
	reader.Any()
	if err := js.DeleteStream(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	goneError(t, reader)
	ca.DoFrame(rig.Send("/queue/gone/q", "y", "receipt", "r"))
	goneError(t, ca)
	for _, srv := range []*testserver.Server{a, b} {
		text, err := srv.Readiness()
		if err != nil || !strings.Contains(text, "stream "+stream+" is gone") {
			t.Errorf("readiness: got %q (%v), want that %s is gone", text, err, stream)
		}
	}
	// Others are served, the queue is not made anew.
	c := rig.Connect(t, a.TCPAddr)
	c.AskFrame(rig.Send("/queue/other", "x"))
	c.DoFrame(rig.Send("/queue/gone/q", "y", "receipt", "r"))
	goneError(t, c)
	if _, err := js.Stream(t.Context(), stream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the stream: got %v, want that it is not there", err)
	}
	for _, srv := range []*testserver.Server{a, b} {
		if out, err := srv.Command("queues", "forget", "/queue/gone/q", "--listeners-admin-address", srv.AdminAddr); err != nil {
			t.Errorf("queues forget: %v\n%s", err, out)
		}
		if text, err := srv.Readiness(); text != "ok" {
			t.Errorf("readiness after forget: got %q (%v), want ok", text, err)
		}
	}
	rig.Connect(t, a.TCPAddr).AskFrame(rig.Send("/queue/gone/q", "z"))
	if out, err := a.Command("queues", "forget", "/queue/gone/q", "--listeners-admin-address", a.AdminAddr); err == nil ||
		!strings.Contains(out, "no queue") {
		t.Errorf("forget of a queue that is there: got %v\n%s", err, out)
	}
}

func goneError(t *testing.T, c *rig.Client) {
	t.Helper()
	if got := c.Any(); got.Command != "ERROR" || got.Get("message") != "the stream of the destination was removed from NATS" {
		t.Errorf("got %s, want the ERROR that the queue was removed", got)
	}
}

// TestLostStore has NATS come back without its store, or with an old one: what natstomp knew must not be made anew, nor
// be taken for what it was (reliability goal Q10).
func TestLostStore(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]string{"empty": "NATS has no such stream", "old": "it ends at sequence 1, but 2 was confirmed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := single(t, "")
			srv := testserver.Start(t, "--nats-url", n.url())
			c := rig.Connect(t, srv.TCPAddr)
			store, old := filepath.Join(n.dir, "store"), filepath.Join(n.dir, "old")
			c.AskFrame(rig.Send("/queue/lost", "1"))
			if name == "old" {
				n.stop()
				if err := os.CopyFS(old, os.DirFS(store)); err != nil {
					t.Fatal(err)
				}
				n.start(t)
			}
			c.AskFrame(rig.Send("/queue/lost", "2"))
			n.stop()
			if err := os.RemoveAll(store); err != nil {
				t.Fatal(err)
			}
			if name == "old" {
				if err := os.Rename(old, store); err != nil {
					t.Fatal(err)
				}
			}
			n.start(t)
			rig.Until(t, func() error {
				text, err := srv.Readiness()
				if err == nil && !strings.Contains(text, "stream "+rig.QueueStream("lost")+" is gone ("+why) {
					err = fmt.Errorf("readiness: %q, want that the stream is gone (%s)", text, why)
				}
				return err
			})
			c.DoFrame(rig.Send("/queue/lost", "3", "receipt", "r"))
			goneError(t, c)
		})
	}
}
