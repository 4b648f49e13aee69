package soak_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	kills = 10
	// outstanding is how many receipts a producer waits for.
	outstanding = 50
)

var killQueues = []string{"/queue/kill/one", "/queue/kill/two"}

// TestKill ends the process with its embedded NATS by SIGKILL ten times under load: nothing receipted may be lost, and
// no second delivery may lack redelivered:true.
func TestKill(t *testing.T) {
	srv := testserver.Start(t)
	h := newHistory()
	r := rand.New(rand.NewPCG(1, 2)) // The course of a run is up to the machine anyway.
	for life := range kills {
		h.lap(true)
		team := killLoad(srv, h, life)
		least := 100 + r.IntN(1_000)
		rig.Until(t, func() error {
			if n := h.lap(false); n < least {
				return fmt.Errorf("life %d: %d receipts, want %d", life, n, least)
			}
			return nil
		})
		srv.Kill()
		// All have read to the end of their sockets before the next life delivers.
		if err := team.wait(); err != nil {
			t.Fatal(err)
		}
		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	drainQueues(t, srv, h)
	h.check(t)
}

// killLoad starts producers and consumers that go on until their connections end.
func killLoad(srv *testserver.Server, h *history, life int) *crew {
	team := &crew{}
	for i := range 3 {
		queue := killQueues[i%len(killQueues)]
		name := fmt.Sprintf("%s life %d producer %d", queue, life, i)
		team.launch(func() error { return ended(produceKill(srv, h, queue, name)) })
	}
	team.launch(func() error {
		return ended(produceTransactions(srv, h, killQueues[0], fmt.Sprintf("life %d", life)))
	})
	for i := range 6 {
		queue := killQueues[i%len(killQueues)]
		c := &killConsumer{
			h: h, mode: []string{"client-individual", "client"}[i/2%2], prefetch: []int{10, 50, 200}[i%3],
			rand: rand.New(rand.NewPCG(uint64(life), uint64(i))),
		}
		team.launch(func() error { return ended(c.run(srv, queue)) })
	}
	return team
}

// errBroken is a fault of the server, as opposed to the end of its life.
var errBroken = errors.New("broken")

// errStopping says that the server has said goodbye.
var errStopping = errors.New("server shutting down")

// other is what a frame means that was not expected.
func other(f stompclient.Frame, want string) error {
	if f.Command == "ERROR" && f.Get("message") == errStopping.Error() {
		return errStopping
	}
	return fmt.Errorf("%w: got %s, want %s", errBroken, f, want)
}

// ended lets the end of a connection pass.
func ended(err error) error {
	if errors.Is(err, errBroken) {
		return err
	}
	return nil
}

// produceKill sends with outstanding receipts until the connection ends.
func produceKill(srv *testserver.Server, h *history, queue, name string) error {
	c, err := rig.Open(srv.TCPAddr)
	if err != nil {
		return err
	}
	defer c.Close()
	body := func(n int) string { return fmt.Sprintf("%s message %d", name, n) }
	for n := 0; ; n++ {
		if n >= outstanding {
			f, err := c.Read(rig.Patience)
			if err != nil {
				return err
			}
			want := body(n - outstanding)
			if f.Command != "RECEIPT" || f.Get("receipt-id") != want {
				return other(f, "the receipt "+want)
			}
			h.receipt(want)
		}
		if err := c.Send(rig.Send(queue, []byte(body(n)), "receipt", body(n))); err != nil {
			return err
		}
	}
}

// produceTransactions sends in transactions, one after the other, until the connection ends.
func produceTransactions(srv *testserver.Server, h *history, queue, name string) error {
	c, err := rig.Open(srv.TCPAddr)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 0; ; n++ {
		id := fmt.Sprintf("%s transaction %d", name, n)
		frames := stompclient.New("BEGIN", "transaction", "tx-1").Encode("1.2")
		var bodies []string
		for part := range 5 {
			body := fmt.Sprintf("%s part %d", id, part)
			bodies = append(bodies, body)
			frames = append(frames, rig.Send(queue, []byte(body), "transaction", "tx-1").Encode("1.2")...)
		}
		frames = append(frames, stompclient.New("COMMIT", "transaction", "tx-1", "receipt", id).Encode("1.2")...)
		h.begin(bodies)
		if err := c.Write(frames); err != nil {
			return err
		}
		f, err := c.Read(rig.Patience)
		if err != nil {
			return err
		}
		if f.Command != "RECEIPT" || f.Get("receipt-id") != id {
			return other(f, "the receipt "+id)
		}
		for _, body := range bodies {
			h.receipt(body)
		}
	}
}

// killConsumer is a consumer that acknowledges some, gives some back, and holds some.
type killConsumer struct {
	h        *history
	mode     string
	prefetch int
	rand     *rand.Rand

	conn *stompclient.Conn
	held int
}

func (c *killConsumer) run(srv *testserver.Server, queue string) error {
	var err error
	if c.conn, err = rig.Open(srv.TCPAddr); err != nil {
		return err
	}
	defer c.conn.Close()
	if err := c.conn.Send(rig.Subscribe("c", queue, "ack", c.mode, "prefetch-count", fmt.Sprint(c.prefetch))); err != nil {
		return err
	}
	for {
		f, err := c.conn.Read(rig.Patience)
		if err != nil {
			return err
		}
		if f.Command != "MESSAGE" {
			return other(f, "a MESSAGE")
		}
		c.h.deliver(f)
		if err := c.settle(f); err != nil {
			return c.rest(err)
		}
	}
}

// rest reads what the socket still gives after a write has failed: it was delivered, too.
func (c *killConsumer) rest(err error) error {
	for {
		f, readErr := c.conn.Read(rig.Patience)
		if readErr != nil {
			return err
		}
		if f.Command == "MESSAGE" {
			c.h.deliver(f)
		}
	}
}

func (c *killConsumer) settle(f stompclient.Frame) error {
	id := f.Get("ack")
	switch dice := c.rand.IntN(100); {
	case c.held < c.prefetch/2 && dice < 10:
		c.held++
		return nil
	case dice < 25:
		c.held = c.heldAfter()
		return c.conn.Send(stompclient.New("NACK", "id", id, "x-delay", fmt.Sprint(c.rand.IntN(20))))
	case c.mode == "client" && dice < 80:
		c.held++
		if c.held < c.prefetch/2 {
			return nil
		}
	}
	c.held = c.heldAfter()
	return c.conn.Send(stompclient.New("ACK", "id", id))
}

// heldAfter is how many messages are held after an ACK or NACK: a cumulative one leaves none.
func (c *killConsumer) heldAfter() int {
	if c.mode == "client" {
		return 0
	}
	return c.held
}

// drainQueues acknowledges all that the queues hold.
func drainQueues(t *testing.T, srv *testserver.Server, h *history) {
	t.Helper()
	_, js := rig.Native(t, srv.NATSURL)
	var team crew
	for _, queue := range killQueues {
		c := rig.Connect(t, srv.TCPAddr)
		c.DoFrame(rig.Subscribe("d", queue, "ack", "client", "prefetch-count", "500"))
		team.launch(func() error { return drainQueue(c.Conn, h) })
		channel := "kill." + queue[len("/queue/kill/"):]
		rig.Until(t, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
			defer cancel()
			s, err := js.Stream(ctx, rig.QueueStream(channel))
			if err != nil {
				return err
			}
			if n := s.CachedInfo().State.Msgs; n > 0 {
				return fmt.Errorf("%s still holds %d messages", queue, n)
			}
			return nil
		})
		_ = c.Close()
	}
	if err := team.wait(); err != nil {
		t.Fatal(err)
	}
}

// drainQueue acknowledges each message until the connection is closed.
func drainQueue(c *stompclient.Conn, h *history) error {
	for {
		f, err := c.Read(2 * rig.Patience)
		if err != nil {
			return nil //nolint:nilerr // Closed by the test, when the queue is empty.
		}
		if f.Command != "MESSAGE" {
			return unexpected(f, nil, "a MESSAGE")
		}
		h.deliver(f)
		if err := c.Send(stompclient.New("ACK", "id", f.Get("ack"))); err != nil {
			return nil //nolint:nilerr // See above.
		}
	}
}
