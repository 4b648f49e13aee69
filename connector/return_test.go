package connector_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
)

// TestMessagesOfASlowConsumerComeBackAtOnce: what the slow-consumer policy discards of ack:auto must not wait for the
// socket that takes nothing.
func TestMessagesOfASlowConsumerComeBackAtOnce(t *testing.T) {
	const (
		messages, size = 100, 32 << 10
		burst          = 256<<10/size + 1 // so many the writer may hold at once
	)
	g := start(t, func(cfg *connector.Config) {
		cfg.Limits.Body, cfg.Limits.PendingBytes = 1<<20, 2<<20
		cfg.Limits.WriteStall = time.Hour
	})
	p, c, d := g.dial(), g.dialUnbuffered(), g.dial()
	p.store("/queue/slow", numbered(messages, size)...)
	c.subscribeAs("flood", "/topic/flood", "auto")
	c.subscribe("/queue/slow", "auto", "prefetch-count", "100")
	rig.Holds(t, "the consumer has all that may wait for it", g.TakeStarved)
	d.subscribe("/queue/slow", "client", "prefetch-count", "1000")
	for range 4 {
		p.send("/topic/flood", make([]byte, 1<<20))
	}

	seen := make(map[int]bool)
	late := func() (n int) { // those that the writer cannot hold
		for i := burst; i < messages; i++ {
			if seen[i] {
				n++
			}
		}
		return n
	}
	for late() < messages-burst {
		seen[d.nextNew(seen)] = true
	}
	// Only now the slow one reads what was on its way into the socket.
	for {
		f, err := c.Read(rig.Patience)
		if err != nil {
			t.Fatal(err)
		}
		if f.Command == "ERROR" {
			if got, want := f.Get("message"), "slow consumer"; got != want {
				t.Errorf("the ERROR says %q, want %q", got, want)
			}
			break
		}
		n := number(t, f)
		if seen[n] {
			t.Errorf("message %d was delivered and given back", n)
		}
		seen[n] = true
	}
	_ = c.Close() // The server waits for that.
	for len(seen) < messages {
		seen[d.nextNew(seen)] = true
	}
}

// nextNew is the number of the next message, which must not be among those seen.
func (c *client) nextNew(seen map[int]bool) int {
	c.t.Helper()
	n := number(c.t, c.Next("MESSAGE"))
	if seen[n] {
		c.t.Fatalf("message %d came twice", n)
	}
	return n
}

// TestAutoMessagesComeBackInOrderAfterAReset: some are in the outbox, some with the writer, some on their way from NATS.
func TestAutoMessagesComeBackInOrderAfterAReset(t *testing.T) {
	const messages, read = 3_000, 300
	for _, tt := range []struct {
		name string
		dial func(*node) *client
	}{
		{"TCP", (*node).dial},
		{"no buffer", (*node).dialUnbuffered},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := start(t, nil)
			p := g.dial()
			for round := range 3 {
				queue := fmt.Sprint("/queue/auto", round)
				p.store(queue, numbered(messages, 600)...)
				c := tt.dial(g)
				c.subscribe(queue, "auto", "prefetch-count", "1000")
				c.inOrder(0, read-1)
				if err := c.Reset(); err != nil {
					t.Fatal(err)
				}
				rig.Holds(t, "the session is over", func() bool { return g.Sessions() == 1 })
				p.store(queue, []byte(fmt.Sprint(messages))) // There is always one to come.
				d := g.dial()
				d.subscribe(queue, "auto", "prefetch-count", "1000")
				first := number(t, d.Next("MESSAGE")) // What the socket had is gone.
				d.inOrder(first+1, messages)
				_ = d.Close() // Without anything in hand.
				rig.Holds(t, "the session is over", func() bool { return g.Sessions() == 1 })
			}
		})
	}
}

// TestReturnedMessagesOf100KiBComeInOrder: fewer of them fit a pull than the consumer asks for.
func TestReturnedMessagesOf100KiBComeInOrder(t *testing.T) {
	const messages = 60
	g := start(t, nil)
	p := g.dial()
	p.store("/queue/large", numbered(messages, 100<<10)...)
	for range 3 {
		c := g.dial()
		c.subscribe("/queue/large", "client", "prefetch-count", "60")
		c.inOrder(0, messages-1)
		_ = c.Close() // Without ACK.
		rig.Holds(t, "the session is over", func() bool { return g.Sessions() == 1 })
	}
}

// TestUnsubscribeFreesRoomForTheOthersAtOnce: a subscription that found the limits of the connection used up must not
// wait until it looks again by itself.
func TestUnsubscribeFreesRoomForTheOthersAtOnce(t *testing.T) {
	const (
		unacked = 50
		tick    = 5 * time.Second // After this time a subscription looks by itself.
	)
	g := start(t, func(cfg *connector.Config) { cfg.Limits.Unacked = unacked })
	p, c := g.dial(), g.dial()
	p.store("/queue/a", numbered(unacked, 0)...)
	p.store("/queue/b", []byte("0"))
	c.subscribeAs("a", "/queue/a", "client", "prefetch-count", "0")
	c.inOrder(0, unacked-1)
	g.TakeStarved()
	begin := time.Now()
	c.subscribeAs("b", "/queue/b", "client")
	rig.Holds(t, "a subscription finds no room", g.TakeStarved)
	c.Do("UNSUBSCRIBE", "id", "a")
	if got := c.Next("MESSAGE").Get("subscription"); got != "b" {
		t.Errorf("got a message of subscription %q, want b", got)
	}
	if took := time.Since(begin); took >= tick {
		t.Errorf("it came after %s: not for the UNSUBSCRIBE, but by itself", took)
	}
}
