package soak_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestRequestsInFlightDelayNoTopic measures a connection's own topic round trips with and without 1,000 requests that
// wait for their answer, turn by turn.
func TestRequestsInFlightDelayNoTopic(t *testing.T) {
	srv := testserver.Start(t)
	nc, _ := rig.Native(t, srv.NATSURL)
	sub, err := nc.SubscribeSync("stomp.query.slow")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	busy, quiet := rig.Connect(t, srv.TCPAddr), rig.Connect(t, srv.TCPAddr)
	for name, c := range map[string]*rig.Client{"busy": busy, "quiet": quiet} {
		c.AskFrame(rig.Subscribe("reply", "/reply/a"))
		c.AskFrame(rig.Subscribe("topic", "/topic/ping/"+name))
	}
	const inFlight = 1000
	for i := range inFlight {
		busy.DoFrame(rig.Send("/query/slow", "", "reply-to", "/reply/a", "correlation-id", fmt.Sprint(i)))
	}
	var with, without []time.Duration
	for range 300 {
		with = append(with, roundTrip(t, busy.Conn, "/topic/ping/busy"))
		without = append(without, roundTrip(t, quiet.Conn, "/topic/ping/quiet"))
	}
	slices.Sort(with)
	slices.Sort(without)
	got, base := with[len(with)/2], without[len(without)/2]
	t.Logf("median round trip with %d requests in flight %v, without %v", inFlight, got, base)
	if got > 2*base+time.Millisecond {
		t.Errorf("median round trip: got %v, want about the %v of a quiet connection", got, base)
	}
	for range inFlight {
		m, err := sub.NextMsg(rig.Patience)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Respond(nil); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for range inFlight {
		f := busy.Next("MESSAGE")
		seen[f.Get("correlation-id")] = true
	}
	if len(seen) != inFlight {
		t.Errorf("answered: got %d requests, want %d", len(seen), inFlight)
	}
}

func roundTrip(t *testing.T, c *stompclient.Conn, destination string) time.Duration {
	t.Helper()
	began := time.Now()
	if err := c.Send(rig.Send(destination, "")); err != nil {
		t.Fatal(err)
	}
	f, err := c.Expect("MESSAGE", rig.Patience)
	if err != nil || f.Get("destination") != destination {
		t.Fatalf("got %s, %v, want the topic's message", f, err)
	}
	return time.Since(began)
}
