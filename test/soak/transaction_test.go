package soak_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	txRounds = 100
	txTopic  = "/topic/tx/shared"
)

// TestSameLoginSameTransaction has two connections with one login use the same names for everything, a hundred times:
// transaction tx-1, receipt 0, subscription s. Nothing of one may be swallowed, or reach the other.
func TestSameLoginSameTransaction(t *testing.T) {
	srv := testserver.Start(t)
	twins := []*twin{{name: "one"}, {name: "two"}}
	for _, w := range twins {
		w.conn = rig.Connect(t, srv.TCPAddr, "login", "svc", "passcode", "secret", "host", "/", "client-id", "same").Conn
		w.queue = "/queue/tx/" + w.name
		for _, f := range []stompclient.Frame{
			rig.Subscribe("s", w.queue, "ack", "client-individual", "prefetch-count", "1000"),
			rig.Subscribe("t", txTopic),
		} {
			if err := w.do(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	var team crew
	for _, w := range twins {
		team.launch(func() error {
			for round := range txRounds {
				if err := w.round(round); err != nil {
					return fmt.Errorf("connection %s, round %d: %w", w.name, round, err)
				}
			}
			return nil
		})
	}
	if err := team.wait(); err != nil {
		t.Fatal(err)
	}
	for _, w := range twins {
		if err := w.finish(twins); err != nil {
			t.Errorf("connection %s: %v", w.name, err)
		}
	}
	if t.Failed() {
		return
	}
	wantNothingLeft(t, srv, twins)
}

// twin is one of the two connections.
type twin struct {
	conn  *stompclient.Conn
	name  string
	queue string

	committed []string // Bodies of committed SENDs, in order.
	queued    []string // Bodies that came from the queue.
	topics    []string // Bodies that came from the topic.
	unacked   []string // Ack values of messages held.
}

// do sends frames with receipt:0 in one write and reads as many receipts; the messages between them are kept.
func (w *twin) do(frames ...stompclient.Frame) error {
	var octets bytes.Buffer
	for _, f := range frames {
		f.Headers = append(f.Headers[:len(f.Headers):len(f.Headers)], stompclient.Header{Name: "receipt", Value: "0"})
		octets.Write(f.Encode("1.2"))
	}
	if err := w.conn.Write(octets.Bytes()); err != nil {
		return err
	}
	for range frames {
		for {
			f, err := w.conn.Read(rig.Patience)
			if err != nil {
				return fmt.Errorf("waiting for the receipts of %v: %w", frames, err)
			}
			if f.Command == "RECEIPT" && f.Get("receipt-id") == "0" {
				break
			}
			if err := w.take(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// take keeps a message.
func (w *twin) take(f stompclient.Frame) error {
	switch {
	case f.Command == "MESSAGE" && f.Get("subscription") == "s":
		w.queued = append(w.queued, string(f.Body))
		w.unacked = append(w.unacked, f.Get("ack"))
		if f.Get("redelivered") != "" {
			return fmt.Errorf("got %s, which nobody gave back", f)
		}
		return nil
	case f.Command == "MESSAGE" && f.Get("subscription") == "t":
		w.topics = append(w.topics, string(f.Body))
		return nil
	}
	return fmt.Errorf("got %s, want a MESSAGE or a RECEIPT", f)
}

// round is one life of tx-1: SENDs to the own queue and to the topic, or ACKs, committed or aborted.
func (w *twin) round(n int) error {
	frames := []stompclient.Frame{stompclient.New("BEGIN", "transaction", "tx-1")}
	var bodies []string
	if n%4 == 3 {
		for _, id := range w.unacked {
			frames = append(frames, stompclient.New("ACK", "id", id, "transaction", "tx-1"))
		}
	} else {
		for i := range 3 {
			body := fmt.Sprintf("%s %d %d", w.name, n, i)
			bodies = append(bodies, body)
			frames = append(frames,
				rig.Send(w.queue, []byte(body), "transaction", "tx-1"), rig.Send(txTopic, []byte(body), "transaction", "tx-1"))
		}
	}
	end, commit := "ABORT", n%5 != 2
	if commit {
		end = "COMMIT"
	}
	frames = append(frames, stompclient.New(end, "transaction", "tx-1"))
	acked := len(w.unacked)
	if n%2 == 0 {
		if err := w.do(frames...); err != nil {
			return err
		}
	} else {
		for _, f := range frames {
			if err := w.do(f); err != nil {
				return err
			}
		}
	}
	if commit {
		w.committed = append(w.committed, bodies...)
		if n%4 == 3 {
			w.unacked = w.unacked[acked:]
		}
	}
	return nil
}

// finish reads until all that both have committed is here, and compares.
func (w *twin) finish(twins []*twin) error {
	topics := 0
	for _, other := range twins {
		topics += len(other.committed)
	}
	for len(w.queued) < len(w.committed) || len(w.topics) < topics {
		f, err := w.conn.Read(rig.Patience)
		if err != nil {
			return fmt.Errorf("%d of %d from the queue, %d of %d from the topic: %w",
				len(w.queued), len(w.committed), len(w.topics), topics, err)
		}
		if err := w.take(f); err != nil {
			return err
		}
	}
	if !slices.Equal(w.queued, w.committed) {
		return fmt.Errorf("got from its queue %q, want %q", w.queued, w.committed)
	}
	for _, other := range twins {
		var got []string
		for _, body := range w.topics {
			if bytes.HasPrefix([]byte(body), []byte(other.name+" ")) {
				got = append(got, body)
			}
		}
		if !slices.Equal(got, other.committed) {
			return fmt.Errorf("got from the topic %q, want %q", got, other.committed)
		}
	}
	// A transaction of that name is open on neither connection, and nothing waits to be read.
	if err := w.do(stompclient.New("BEGIN", "transaction", "tx-1"), stompclient.New("ABORT", "transaction", "tx-1")); err != nil {
		return err
	}
	if len(w.queued) != len(w.committed) || len(w.topics) != topics {
		return fmt.Errorf("got more: %q, %q", w.queued, w.topics)
	}
	return nil
}

// wantNothingLeft looks at the queues from outside: they hold what was not acknowledged, each its own.
func wantNothingLeft(t *testing.T, srv *testserver.Server, twins []*twin) {
	t.Helper()
	_, js := rig.Native(t, srv.NATSURL)
	for _, w := range twins {
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		defer cancel()
		s, err := js.Stream(ctx, rig.QueueStream("tx."+w.name))
		if err != nil {
			t.Fatal(err)
		}
		got, want := s.CachedInfo().State, len(w.unacked)
		if got.Msgs != uint64(want) || got.LastSeq != uint64(len(w.committed)) {
			t.Errorf("queue of %s: %d messages of %d ever, want %d of %d", w.name, got.Msgs, got.LastSeq, want, len(w.committed))
		}
		if info := consumerInfo(t, js, "tx."+w.name); info.NumAckPending != want {
			t.Errorf("queue of %s: %d messages held, want %d", w.name, info.NumAckPending, want)
		}
	}
}
