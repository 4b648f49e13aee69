package soak_test

import (
	"fmt"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const stopMessages = 300

// TestCleanStop stops the server by SIGTERM while a consumer holds messages: what it held is flagged in the next life,
// and in the one after that, what nobody ever had is not, and what was acknowledged is gone, with or without a receipt.
func TestCleanStop(t *testing.T) {
	srv := testserver.Start(t)
	const queue = "/queue/stop"
	producer := rig.Connect(t, srv.TCPAddr)
	fill(t, producer, queue, stopMessages, 100)
	c := rig.Connect(t, srv.TCPAddr)
	c.AskFrame(rig.Subscribe("c", queue, "ack", "client-individual", "prefetch-count", "50"))
	var ids []string
	read := func(count int) {
		t.Helper()
		for range count {
			f := c.Next("MESSAGE")
			_, number, err := parsePayload(f.Body)
			if want := len(ids) + 1; err != nil || number != want || f.Get("redelivered") != "" {
				t.Fatalf("got %s (%v), want message %d, for the first time", f, err, want)
			}
			ids = append(ids, f.Get("ack"))
		}
	}
	read(50)
	for _, id := range ids[:10] {
		c.DoFrame(stompclient.New("ACK", "id", id))
	}
	read(10)
	for _, id := range ids[10:19] {
		c.DoFrame(stompclient.New("ACK", "id", id))
	}
	read(9)
	// The receipt says that the server has read the frames before.
	c.AskFrame(stompclient.New("BEGIN", "transaction", "unused"))
	stopCleanly(t, srv, c)
	for range 2 {
		if err := srv.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	next := rig.Connect(t, srv.TCPAddr)
	next.AskFrame(rig.Subscribe("n", queue, "ack", "auto"))
	for number := 20; number <= stopMessages; number++ {
		f, err := next.Expect("MESSAGE", rig.Patience)
		if err != nil {
			t.Fatalf("message %d: %v", number, err)
		}
		if _, got, err := parsePayload(f.Body); err != nil || got != number {
			t.Fatalf("got %s (%v), want message %d", f, err, number)
		}
		if got, want := f.Get("redelivered") == "true", number <= 69; got != want {
			t.Errorf("message %d has redelivered:true: %t, want %t", number, got, want)
		}
	}
}

// stopCleanly stops and starts the server; a client sees the ERROR that says why, and its end.
func stopCleanly(t *testing.T, srv *testserver.Server, c *rig.Client) {
	t.Helper()
	if err := srv.Terminate(); err != nil {
		t.Fatal(err)
	}
	f, err := c.Read(rig.Patience)
	if err != nil || f.Command != "ERROR" || f.Get("message") != "server shutting down" {
		t.Errorf("got %s (%v), want the ERROR server shutting down", f, err)
	}
	if err := c.ExpectClose(rig.Patience); err != nil {
		t.Error(err)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
}

// TestStopUnderLoad stops the server by SIGTERM under the load of TestKill: each stop is clean and in time, and the
// same holds.
func TestStopUnderLoad(t *testing.T) {
	srv := testserver.Start(t)
	h := newHistory()
	for life := range 3 {
		h.lap(true)
		team := killLoad(srv, h, life)
		rig.Until(t, func() error {
			if n := h.lap(false); n < 500 {
				return fmt.Errorf("life %d: %d receipts, want 500", life, n)
			}
			return nil
		})
		if err := srv.Stop(); err != nil {
			t.Fatal(err)
		}
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
