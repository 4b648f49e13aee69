package field_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// replayed are the destinations of the recordings.
const (
	replayedQueue  = "q.a"
	replayedTopic  = "a"
	replayedStream = "Q_q_a_"
)

// waiting are the messages that stand in the queue before a client comes.
var waiting = []string{"first", "second"}

// TestReplayAgainstTheServer writes what each recorded client wrote to the running server: as it came, whole and octet
// by octet (research FR-011). The answers are the same each time, and those that the client expects: CONNECTED in the version that it
// asked for, a RECEIPT for each receipt in their order, an ERROR where it wrote what is none of its version, and at the
// end all octets accounted for. What it did to the queue is what it asked for.
func TestReplayAgainstTheServer(t *testing.T) {
	srv := testserver.Start(t)
	nc, js := rig.Native(t, srv.NATSURL)
	c := rig.Connect(t, srv.TCPAddr)
	c.Ask("SEND", "destination", "/queue/"+replayedQueue) // Makes the queue.
	queue := theStream(t, js, replayedStream)
	all := streams(t)
	if got, want := len(all), 69; got != want {
		t.Errorf("got %d connections in the recordings, want %d", got, want)
	}
	refused := 0
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			want := expect(t, s.octets())
			if want.answers[len(want.answers)-1].command == "ERROR" {
				refused++
			}
			for _, way := range []struct {
				name string
				cut  func([]piece) []piece
			}{{"as recorded", asRecorded}, {"whole", inWholes}, {"octet by octet", singly}} {
				if err := queue.Purge(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, body := range waiting {
					if _, err := js.Publish(t.Context(), "stomp.queue."+replayedQueue, []byte(body)); err != nil {
						t.Fatal(err)
					}
				}
				r := &replay{t: t, srv: srv, nc: nc, want: want}
				r.run(s, way.cut)
				r.check(way.name, queue)
			}
		})
	}
	if refused != 10 {
		t.Errorf("got %d clients that deserve an ERROR, want 10", refused)
	}
}

// theStream finds the stream whose name begins so.
func theStream(t *testing.T, js jetstream.JetStream, prefix string) jetstream.Stream {
	t.Helper()
	list := js.StreamNames(t.Context())
	found := ""
	for name := range list.Name() {
		if strings.HasPrefix(name, prefix) {
			found = name
		}
	}
	s, err := js.Stream(t.Context(), found)
	if err != nil || list.Err() != nil {
		t.Fatalf("stream %q: %v, %v", found, err, list.Err())
	}
	return s
}

// replay is one connection of the test.
type replay struct {
	t    *testing.T
	srv  *testserver.Server
	nc   *nats.Conn
	want expected

	mu       sync.Mutex
	answers  []answer
	messages []stompclient.Frame
	end      error // how reading ended
}

// run writes the stream and reads until the server closes.
func (r *replay) run(s *stream, cut func([]piece) []piece) {
	conn := r.dial(s.pieces[0].kind)
	defer conn.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.read(conn)
	}()
	onTopic := strings.Contains(string(s.octets()), "\ndestination:/topic/"+replayedTopic+"\n")
	for _, part := range s.segments() {
		if part.settles > 0 {
			id, ok := r.message(part.settles, onTopic)
			if !ok {
				break // The server has closed: what it said shows whether it may.
			}
			part = part.settlingWith(id)
		}
		for _, p := range cut(part.pieces) {
			if err := conn.WriteKind(p.kind == "binary", p.octets); err != nil {
				break // See above.
			}
		}
	}
	refused := r.want.answers[len(r.want.answers)-1].command == "ERROR"
	if !r.want.disconnects && !refused {
		// Ours, to see that nothing of the stream is left over.
		r.want.answers = append(slices.Clip(r.want.answers), answer{"RECEIPT", "end of the stream"})
		if err := conn.Write([]byte("DISCONNECT\nreceipt:end of the stream\n\n\x00")); err != nil {
			r.t.Error(err)
		}
	}
	select {
	case <-ended:
	case <-time.After(rig.Patience):
		r.t.Fatal("the server did not close")
	}
}

func (r *replay) dial(kind string) *stompclient.Conn {
	r.t.Helper()
	conn, err := stompclient.Dial(r.srv.TCPAddr)
	if kind != "tcp" {
		conn, err = stompclient.DialWebSocket(r.srv.WebSocketURL)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return conn
}

func (r *replay) read(conn *stompclient.Conn) {
	for {
		f, err := conn.Read(rig.Patience)
		r.mu.Lock()
		switch {
		case err != nil:
			r.end = err
		case f.Command == "MESSAGE":
			r.messages = append(r.messages, f)
		case f.Command == "CONNECTED":
			r.answers = append(r.answers, answer{f.Command, f.Get("version")})
		case f.Command == "RECEIPT":
			r.answers = append(r.answers, answer{f.Command, f.Get("receipt-id")})
		default:
			r.answers = append(r.answers, answer{f.Command, f.Get("message")})
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// message waits for the nth message and returns its id; false: the connection ended. On a topic somebody must send it.
func (r *replay) message(n int, onTopic bool) (id string, ok bool) {
	r.t.Helper()
	rig.Until(r.t, func() error {
		r.mu.Lock()
		got := len(r.messages)
		if got >= n {
			id = r.messages[n-1].Get("message-id")
		}
		answers, ended := fmt.Sprint(r.answers), r.end != nil
		r.mu.Unlock()
		switch {
		case id != "" || ended:
			return nil
		case onTopic:
			return errors.Join(errors.New("no message yet"), r.nc.Publish(replayedTopic, []byte(waiting[0])))
		}
		return fmt.Errorf("got %d messages after %s, want the %dth", got, answers, n)
	})
	return id, id != ""
}

// check compares what came with what the stream asked for, and what is in the queue with what it did.
func (r *replay) check(way string, queue jetstream.Stream) {
	r.t.Helper()
	if !errors.Is(r.end, io.EOF) {
		r.t.Errorf("%s: reading ended with %v, want the end of the connection", way, r.end)
	}
	if !slices.Equal(r.answers, r.want.answers) {
		r.t.Errorf("%s:\ngot  %v\nwant %v", way, r.answers, r.want.answers)
	}
	sent := append(slices.Clone(waiting), r.want.sent...)
	for i, f := range r.messages {
		if body := string(f.Body); f.Get("destination") == "/queue/"+replayedQueue && (i >= len(sent) || body != sent[i]) ||
			!slices.Contains(sent, body) {
			r.t.Errorf("%s: message %d is %s, want one of %q, in their order on a queue", way, i, f, sent)
		}
	}
	onQueue := len(r.messages) > 0 && r.messages[0].Get("destination") == "/queue/"+replayedQueue
	if !r.want.explicitAcks || !onQueue {
		return
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), rig.Patience)
	defer cancel()
	info, err := queue.Info(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	if got, want := info.State.Msgs, uint64(len(sent)-r.want.acked); got != want {
		r.t.Errorf("%s: %d messages left in the queue, want %d: %d sent, %d acknowledged", way, got, want, len(sent), r.want.acked)
	}
}
