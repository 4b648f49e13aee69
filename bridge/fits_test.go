package bridge_test

import (
	"errors"
	"sort"
	"strings"
	"testing"

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
