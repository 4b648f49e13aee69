package cluster_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestOtherNodeKnowsWhatNobodySaw has a client of one natstomp take messages that it does not read and drop its
// connection: what never left that natstomp is no redelivery on another one, all else is.
func TestOtherNodeKnowsWhatNobodySaw(t *testing.T) {
	t.Parallel()
	const count, least, octets = 40, 30, 200_000 // More than the sockets take.
	n := single(t, "")
	a, b := testserver.Start(t, "--nats-url", n.url()), testserver.Start(t, "--nats-url", n.url())
	pub := rig.Connect(t, b.TCPAddr)
	for i := range count {
		pub.AskFrame(rig.Send("/queue/unseen", strconv.Itoa(i)+" "+strings.Repeat("x", octets)))
	}
	gone := rig.Connect(t, a.TCPAddr)
	gone.DoFrame(rig.Subscribe("s", "/queue/unseen", "ack", "client", "prefetch-count", strconv.Itoa(count)))
	_, js := native(t, n.url())
	rig.Until(t, func() error {
		c, err := js.Consumer(t.Context(), rig.QueueStream("unseen"), "stomp")
		if err == nil && c.CachedInfo().NumAckPending < least {
			err = fmt.Errorf("%d messages are delivered, want at least %d", c.CachedInfo().NumAckPending, least)
		}
		return err
	})
	if err := gone.Reset(); err != nil {
		t.Fatal(err)
	}
	c := rig.Connect(t, b.TCPAddr)
	c.DoFrame(rig.Subscribe("s", "/queue/unseen", "ack", "auto"))
	flagged := 0
	for range count {
		f := c.Any()
		again := f.Get("redelivered") == "true"
		if again {
			flagged++
		}
		if want := map[bool]string{true: "2", false: "1"}[again]; f.Get("x-delivery-count") != want {
			t.Errorf("redelivered is %t and x-delivery-count is %s", again, f.Get("x-delivery-count"))
		}
	}
	t.Logf("%d of %d are flagged", flagged, count)
	if flagged == 0 || flagged >= least {
		t.Errorf("%d messages are flagged, want some, and fewer than the %d that were delivered at least", flagged, least)
	}
}
