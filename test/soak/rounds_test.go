package soak_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	// rounds of so many clients that are there at once; the first ones only warm up.
	rounds, roundsWarm, roundClients = 12, 4, 2_000 / slowness
	// roundsGrowth is what the heap may grow by over the others: 256 octets of each client that was there would be more.
	roundsGrowth = (rounds - roundsWarm) * roundClients * 256
)

// TestReportRoundsOfClients holds FR-155: 12 times 2,000 clients connect, subscribe, use names of their own, and leave, half
// of them without a word. Heap and goroutines are then what they were.
func TestReportRoundsOfClients(t *testing.T) {
	server := rig.Start(t, func(c *connector.Config) { c.Logger = nil }) // What is logged is memory of the test.
	srv := &testserver.Server{TCPAddr: server.At("tcp")}
	round := func(number int) {
		conns := make([]*stompclient.Conn, roundClients)
		for i := range conns {
			own := fmt.Sprintf("%d-%d", number, i)
			conns[i] = openRound(t, srv, own)
		}
		for i, c := range conns {
			if i%2 == 0 {
				if err := c.Confirm(stompclient.New("DISCONNECT"), rig.Patience); err != nil {
					t.Fatal(err)
				}
			}
			_ = c.Close() // Its end is seen on the other side.
		}
		rig.Until(t, func() error {
			if n := len(server.Connections()); n != 0 {
				return fmt.Errorf("%d sessions are left", n)
			}
			return nil
		})
	}
	for number := range roundsWarm {
		round(number)
	}
	goroutines, before := settled(t, runtime.NumGoroutine), heap()
	for number := roundsWarm; number < rounds; number++ {
		round(number)
	}
	rig.Until(t, func() error {
		if n := runtime.NumGoroutine(); n > goroutines {
			return fmt.Errorf("%d goroutines, want %d as before", n, goroutines)
		}
		if after := heap(); after > before+roundsGrowth {
			return fmt.Errorf("a heap of %d KiB, want %d KiB as before and %d KiB more at most", after>>10, before>>10, roundsGrowth>>10)
		}
		return nil
	})
	t.Logf("a heap of %d KiB before, %d KiB after %d clients", before>>10, heap()>>10, (rounds-roundsWarm)*roundClients)
}

// openRound is a client that leaves with much that is its own.
func openRound(t *testing.T, srv *testserver.Server, own string) *stompclient.Conn {
	t.Helper()
	c, err := rig.Open(srv.TCPAddr, "login", own)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []stompclient.Frame{
		rig.Subscribe("own", "/topic/rounds/"+own), rig.Subscribe("group", "/topic/rounds/all", "x-group", own), rig.Subscribe("reply", "/reply/"+own),
		stompclient.New("BEGIN", "transaction", own), rig.Send("/topic/rounds/"+own, []byte(own), "transaction", own),
	} {
		if err := c.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Confirm(rig.Send("/topic/nobody", ""), rig.Patience); err != nil {
		t.Fatal(err)
	}
	return c
}

// heap is what is in use once the garbage is collected.
func heap() int64 {
	runtime.GC()
	runtime.GC() // What the first one freed of pools.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
