package connector_test

import (
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
)

// lateRig gives back after a while what clients hold: time enough for another one to subscribe. long lets a subscription
// hold on.
func lateRig(t *testing.T) (g *node, long []string) {
	t.Helper()
	g = start(t, func(cfg *connector.Config) {
		cfg.Queues.AckTimeout, cfg.Queues.RedeliveryDelay = 2*time.Second, 0
	})
	return g, []string{"x-ack-wait", "600000"}
}

// TestLateAckIsAcceptedOnce: the message is with another client, to whom a late ACK does nothing. A second one is for a
// message that is settled already.
func TestLateAckIsAcceptedOnce(t *testing.T) {
	for _, mode := range []string{"client", "client-individual"} {
		for _, command := range []string{"ACK", "NACK"} {
			t.Run(mode+" "+command, func(t *testing.T) {
				t.Parallel() // They wait most of the time.
				g, long := lateRig(t)
				p, c, d := g.dial(), g.dial(), g.dial()
				c.subscribe("/queue/late", mode, "prefetch-count", "1")
				p.store("/queue/late", []byte("0"))
				held := c.Next("MESSAGE")
				d.subscribe("/queue/late", "client-individual", long...)
				again := d.Next("MESSAGE") // c has held it too long.
				if got, want := again.Get("redelivered"), "true"; got != want {
					t.Errorf("redelivered:%s, want %s", got, want)
				}
				c.Do(command, "id", held.Get("ack"), "receipt", "late")
				c.Receipt("late")
				if got := g.LateAcks(); got != 1 {
					t.Errorf("%d late ACKs are counted, want 1", got)
				}
				c.Do(command, "id", held.Get("ack"), "receipt", "twice")
				if got := c.Refused("it is settled already").Get("receipt-id"); got != "twice" {
					t.Errorf("the ERROR has receipt-id %q, want twice", got)
				}
				if got := g.LateAcks(); got != 1 {
					t.Errorf("%d late ACKs are counted after the refused one, want 1", got)
				}
				_ = d.Close() // Without ACK: the message must still be there.
				e := g.dial()
				e.subscribe("/queue/late", "auto")
				if got, want := e.Next("MESSAGE").Get("x-delivery-count"), "3"; got != want {
					t.Errorf("x-delivery-count:%s, want %s", got, want)
				}
			})
		}
	}
}

// TestCumulativeAckCoversWhatWasHeldTooLong: after it, an ACK of the earlier message is one too many.
func TestCumulativeAckCoversWhatWasHeldTooLong(t *testing.T) {
	g, long := lateRig(t)
	p, c, d := g.dial(), g.dial(), g.dial()
	c.subscribe("/queue/late", "client", "prefetch-count", "1")
	p.store("/queue/late", []byte("0"))
	first := c.Next("MESSAGE")
	d.subscribe("/queue/late", "client", append(long, "prefetch-count", "1")...)
	d.Next("MESSAGE")
	p.store("/queue/late", []byte("1"))
	second := c.Next("MESSAGE")
	c.Do("ACK", "id", second.Get("ack"), "receipt", "both")
	// Held for no longer than it takes or not, the second may come again before the RECEIPT.
	f := c.nextBut("MESSAGE")
	if f.Command != "RECEIPT" || f.Get("receipt-id") != "both" {
		t.Fatalf("got %s, want the RECEIPT", f)
	}
	if got := g.LateAcks(); got == 0 {
		t.Error("no late ACK is counted")
	}
	c.Do("ACK", "id", first.Get("ack"))
	if f := c.nextBut("MESSAGE"); f.Command != "ERROR" {
		t.Errorf("got %s for an ACK of what is settled already, want an ERROR", f)
	}
}

// TestAckMayCrossTheUnsubscribe: the client has sent it before it knew that the message is given back.
func TestAckMayCrossTheUnsubscribe(t *testing.T) {
	for _, destination := range []string{"/queue/cross", "/topic/cross"} {
		for _, mode := range []string{"client", "client-individual"} {
			t.Run(destination+" "+mode, func(t *testing.T) {
				g := start(t, nil)
				p, c := g.dial(), g.dial()
				c.subscribe(destination, mode)
				for i := range 3 {
					p.send(destination, []byte{byte('0' + i)})
				}
				ids := make([]string, 3)
				for i := range ids {
					ids[i] = c.Next("MESSAGE").Get("ack")
				}
				c.Do("UNSUBSCRIBE", "id", "1", "receipt", "u")
				c.Do("ACK", "id", ids[0], "receipt", "a")
				c.Do("NACK", "id", ids[2])
				c.Do("NACK", "id", ids[1], "receipt", "n")
				for _, id := range []string{"u", "a", "n"} {
					c.Receipt(id)
				}
				if got := g.LateAcks(); got != 3 {
					t.Errorf("%d late ACKs are counted, want 3", got)
				}
				if destination == "/queue/cross" {
					d := g.dial()
					d.subscribe(destination, "auto")
					d.inOrder(0, 2) // All went back; none is settled.
				}
				c.subscribe(destination, mode) // Under the same id; not the same subscription.
				c.Do("ACK", "id", ids[0][:len(ids[0])-1]+"9", "receipt", "never")
				if got := c.Refused("was delivered").Get("receipt-id"); got != "never" {
					t.Errorf("the ERROR has receipt-id %q, want never", got)
				}
			})
		}
	}
}
