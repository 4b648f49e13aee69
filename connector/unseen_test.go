package connector_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
)

// TestMessagesDroppedUnwrittenAreNoRedeliveries: a client is cut off before the writer has come to them.
func TestMessagesDroppedUnwrittenAreNoRedeliveries(t *testing.T) {
	const (
		messages, size = 60, 32 << 10
		burst          = 256<<10/size + 1 // so many the writer may hold at once
	)
	for _, mode := range []string{"auto", "client", "client-individual"} {
		t.Run(mode, func(t *testing.T) {
			g := start(t, func(cfg *connector.Config) {
				cfg.Limits.PendingBytes, cfg.Limits.WriteStall = 8<<20, 2*time.Second
			})
			p, c := g.dial(), g.dialUnbuffered()
			p.store("/queue/x", numbered(messages, size)...)
			c.subscribe("/queue/x", mode, "prefetch-count", strconv.Itoa(messages))
			c.inOrder(0, 0)
			rig.Holds(t, "the session is over, since nobody reads", func() bool { return g.Sessions() == 1 })

			d := g.dial()
			d.subscribe("/queue/x", "client", "prefetch-count", strconv.Itoa(messages))
			flagged := 0
			first := -1
			for first < messages-1 {
				f := d.Next("MESSAGE")
				n := number(t, f)
				if first >= 0 && n != first+1 {
					t.Fatalf("message %d follows %d", n, first)
				}
				first = n
				want := "1"
				if f.Get("redelivered") == "true" {
					want = "2"
					flagged++
				}
				if got := f.Get("x-delivery-count"); got != want {
					t.Errorf("message %d: x-delivery-count is %s, want %s", n, got, want)
				}
				if n == 0 && want == "1" {
					t.Error("the first message is not flagged")
				}
			}
			if flagged > 2*burst {
				t.Errorf("%d messages are flagged, want at most %d: the writer cannot have had more", flagged, 2*burst)
			}
			if mode != "auto" && flagged == 0 {
				t.Error("no message is flagged")
			}
		})
	}
}
