package bridge_test

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// TestWhatFitsIsTakenByNATS: a COMMIT checks its parts with Fits before it stores the first, so the largest message that
// fits must pass in a batch and on a topic with an origin; anything larger must not fit.
func TestWhatFitsIsTakenByNATS(t *testing.T) {
	const maxPayload = 2 << 20 // The rig's.
	g := newRig(t, nil)
	var many []frame.Header
	for i := range 60 {
		name := strings.Repeat("n", i+1)
		many = append(many, header(name, strings.Repeat("v", 100)))
	}
	for _, tt := range []struct {
		name    string
		headers []frame.Header
	}{
		{"no headers", nil},
		{"one header", []frame.Header{header("a", "b")}},
		{"many headers", many},
		{"packed headers", []frame.Header{header("a b", strings.Repeat("%", 8_000)), header("c d", "\r\n")}},
		{"repeated and owned headers", []frame.Header{header("a", "b"), header("a", "c"), header("receipt", "r")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			send := bridge.Send{Route: g.route("/queue/fits", router.Send), Headers: tt.headers}
			body := make([]byte, maxPayload)
			size := sort.Search(maxPayload, func(n int) bool {
				send.Body = body[:n+1]
				err := g.Fits(send)
				if err != nil && !errors.Is(err, bridge.ErrTooLarge) {
					t.Fatalf("got %v, want %v", err, bridge.ErrTooLarge)
				}
				return err != nil
			})
			send.Body = body[:size] // The largest that fits.
			if size < maxPayload-64<<10 {
				t.Fatalf("a body of %d octets does not fit, max_payload is %d", size+1, maxPayload)
			}
			done := make(chan error, 1)
			g.SendBatch([]bridge.Send{send, send}, func(err error) { done <- err })
			if err := outcome(t, "SendBatch", done); err != nil {
				t.Errorf("a batch of what fits, bodies of %d octets: %v", size, err)
			}
			err := g.PublishTopic(g.route("/topic/fits", router.Send), send.Headers, send.Body, strings.Repeat("f", 32))
			if err != nil {
				t.Errorf("what fits on a topic, body of %d octets: %v", size, err)
			}
		})
	}
}

// TestHeadersThatFitAreStored: JetStream refuses more than 64 KiB, and loses what it can no longer deliver when it is due.
func TestHeadersThatFitAreStored(t *testing.T) {
	const limit = 64 << 10 // JetStream's.
	g := newRig(t, nil)
	queue := "/queue/" + strings.Repeat("long.", 30) + "name"
	try := func(size int, o bridge.SendOptions, batch int) error {
		t.Helper()
		value := []frame.Header{header("h", strings.Repeat("v", size))}
		sends := make([]bridge.Send, batch)
		for i := range sends {
			sends[i] = g.message(queue, "x", o, value...)
		}
		done := make(chan error, 1)
		g.SendBatch(sends, func(err error) { done <- err })
		return outcome(t, "SendBatch", done)
	}
	for _, tt := range []struct {
		name  string
		o     bridge.SendOptions
		batch int
	}{
		{"one", bridge.SendOptions{}, 1},
		{"a batch", bridge.SendOptions{}, 2},
		{"with a time and an id", bridge.SendOptions{TTL: time.Minute, DedupID: "i", Identity: "me"}, 1},
		{"delayed", bridge.SendOptions{Delay: time.Millisecond, TTL: time.Minute, Identity: "me"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newConsumer(100)
			s := g.subscribe(queue, c)
			defer func() {
				c.close()
				s.Stop(c.takeHeld)
			}()
			stored := 0
			least := sort.Search(4<<10, func(n int) bool { // The most that is taken is so much below the limit.
				o := tt.o
				if o.DedupID != "" {
					o.DedupID = fmt.Sprint(n)
				}
				err := try(limit-n, o, tt.batch)
				if err != nil && !errors.Is(err, bridge.ErrHeaders) {
					t.Fatalf("%d octets below the limit: %v, want %v", n, err, bridge.ErrHeaders)
				}
				if err == nil {
					stored += tt.batch
				}
				return err == nil
			})
			if most := 2 << 10; least > most {
				t.Errorf("%d octets below the limit are refused, want at most %d", least-1, most)
			}
			for range stored {
				c.next(t)
			}
			g.settleAll(c)
		})
	}
}

// settleAll acks what c holds.
func (g *rig) settleAll(c *consumer) {
	g.t.Helper()
	done := make(chan error, 1)
	g.ConfirmAck(c.takeHeld(), func(err error) { done <- err })
	if err := outcome(g.t, "ConfirmAck", done); err != nil {
		g.t.Fatal(err)
	}
}
