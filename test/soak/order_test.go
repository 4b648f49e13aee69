package soak_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// maxBody is limits.body by default, and what CONNECTED announces.
const maxBody = 4 << 20

// bodies are 1,000 numbered ones with, among them, all octets, nothing, 1 MiB, and the largest.
func bodies() [][]byte {
	octets := make([]byte, 256)
	for i := range octets {
		octets[i] = byte(i)
	}
	var all [][]byte
	for n := range 1_000 {
		all = append(all, fmt.Append(nil, "number ", n))
	}
	all = slices.Insert(all, 900, bytes.Repeat(octets, maxBody/256))
	all = slices.Insert(all, 700, bytes.Repeat([]byte("\x00MiB"), 1<<20/4))
	all = slices.Insert(all, 500, []byte{})
	return slices.Insert(all, 300, octets)
}

// TestThousandInOrder sends 1,000 messages and odd bodies between STOMP and native NATS, on a topic and on a queue,
// both ways: all arrive, in order, octet by octet.
func TestThousandInOrder(t *testing.T) {
	srv := testserver.Start(t)
	nc, js := rig.Native(t, srv.NATSURL)
	want := bodies()
	t.Run("topic to core NATS", func(t *testing.T) {
		sub, err := nc.SubscribeSync("thousand.out")
		if err != nil {
			t.Fatal(err)
		}
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		sendBodies(t, srv, "/topic/thousand/out", want)
		for i := range want {
			m, err := sub.NextMsg(rig.Patience)
			if err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
			wantBody(t, i, m.Data, want[i])
		}
	})
	t.Run("core NATS to topic", func(t *testing.T) {
		c := rig.Connect(t, srv.TCPAddr)
		c.AskFrame(rig.Subscribe("s", "/topic/thousand/in"))
		for _, body := range want {
			if err := nc.Publish("thousand.in", body); err != nil {
				t.Fatal(err)
			}
		}
		readBodies(t, c.Conn, want)
	})
	t.Run("queue to a pull consumer", func(t *testing.T) {
		sendBodies(t, srv, "/queue/thousand/out", want)
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		defer cancel()
		durable, err := js.Consumer(ctx, rig.QueueStream("thousand.out"), "stomp")
		if err != nil {
			t.Fatal(err)
		}
		next, err := durable.Messages(jetstream.PullMaxMessages(1_000))
		if err != nil {
			t.Fatal(err)
		}
		defer next.Stop()
		for i := range want {
			m, err := next.Next(jetstream.NextContext(ctx))
			if err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
			wantBody(t, i, m.Data(), want[i])
			if err := m.Ack(); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("js.Publish to queue", func(t *testing.T) {
		c := rig.Connect(t, srv.TCPAddr)
		c.AskFrame(rig.Subscribe("s", "/queue/thousand/in", "ack", "client"))
		for _, body := range want {
			if _, err := js.PublishAsync("stomp.queue.thousand.in", body); err != nil {
				t.Fatal(err)
			}
		}
		readBodies(t, c.Conn, want)
	})
}

func sendBodies(t *testing.T, srv *testserver.Server, destination string, all [][]byte) {
	t.Helper()
	c := rig.Connect(t, srv.TCPAddr)
	for _, body := range all[:len(all)-1] {
		c.DoFrame(rig.Send(destination, body))
	}
	c.AskFrame(rig.Send(destination, all[len(all)-1]))
}

func readBodies(t *testing.T, c *stompclient.Conn, all [][]byte) {
	t.Helper()
	for i, want := range all {
		f, err := c.Expect("MESSAGE", rig.Patience)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		wantBody(t, i, f.Body, want)
		if id, found := f.Lookup("ack"); found {
			if err := c.Send(stompclient.New("ACK", "id", id)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func wantBody(t *testing.T, i int, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("message %d has %d octets %.40q, want %d %.40q", i, len(got), got, len(want), want)
	}
}

// TestLargestBody is limits.body to the octet, on a topic and on a queue: CONNECTED announces it, a body of exactly that
// size goes both ways, with and without content-length, with headers beside it; one more is refused by name. What
// is larger from native NATS is shown all the same: nobody could be told.
func TestLargestBody(t *testing.T) {
	srv := testserver.Start(t)
	nc, _ := rig.Native(t, srv.NATSURL)
	body := bytes.Repeat([]byte("b"), maxBody)
	plain := func(destination string, body []byte) stompclient.Frame {
		f := stompclient.New("SEND", "destination", destination, "filler", strings.Repeat("f", 7_000))
		f.Body = body
		return f
	}
	for _, destination := range []string{"/topic/largest", "/queue/largest"} {
		for name, frame := range map[string]func(string, []byte) stompclient.Frame{
			"content-length": func(destination string, body []byte) stompclient.Frame { return rig.Send(destination, body) },
			"up to NUL":      plain,
		} {
			conn, err := stompclient.Dial(srv.TCPAddr)
			if err != nil {
				t.Fatal(err)
			}
			c := rig.NewClient(t, conn)
			if got, want := c.Login().Get("x-max-body"), fmt.Sprint(maxBody); got != want {
				t.Errorf("x-max-body is %q, want %s", got, want)
			}
			c.AskFrame(rig.Subscribe("s", destination))
			c.DoFrame(frame(destination, body))
			f, err := c.Expect("MESSAGE", rig.Patience)
			if err != nil {
				t.Fatalf("%s, %s: %v", destination, name, err)
			}
			wantBody(t, 0, f.Body, body)
			wantTooLarge(t, c.Conn, frame(destination, append(body[:maxBody:maxBody], 'b')))
		}
	}
	c := rig.Connect(t, srv.TCPAddr)
	c.AskFrame(rig.Subscribe("s", "/topic/larger"))
	larger := append(body, body[:1000]...)
	if err := nc.PublishMsg(&nats.Msg{Subject: "larger", Data: larger}); err != nil {
		t.Fatal(err)
	}
	readBodies(t, c.Conn, [][]byte{larger})
}

// wantTooLarge sends a frame that the server refuses while it is still being written.
func wantTooLarge(t *testing.T, c *stompclient.Conn, f stompclient.Frame) {
	t.Helper()
	var team crew
	team.launch(func() error {
		_ = c.Send(f) // It need not take it all.
		return nil
	})
	got, err := c.Read(rig.Patience)
	if err != nil || got.Command != "ERROR" || !strings.Contains(got.Get("message"), fmt.Sprintf("limits.body is %d", maxBody)) {
		t.Errorf("one octet more: got %s (%v), want the ERROR limits.body", got, err)
	}
	if err := c.ExpectClose(rig.Patience); err != nil {
		t.Error(err)
	}
	_ = c.Close()
	if err := team.wait(); err != nil {
		t.Error(err)
	}
}
