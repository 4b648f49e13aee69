package connector_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

func TestQueueWhoseStreamNameIsTakenIsRefused(t *testing.T) {
	// The streams of these two would have one name: the hash in it has 32 bits.
	victim, other := "/queue/"+strings.Repeat("v", 60)+"21701", "/queue/"+strings.Repeat("v", 60)+"141902"
	const refusal = "its stream's name is taken"
	g := start(t, nil)
	p, c := g.dial(), g.dial()
	c.subscribe(victim, "auto")
	p.store(victim, []byte("0"))
	c.inOrder(0, 0)
	for range 2 {
		d := g.dial()
		d.Do("SUBSCRIBE", "id", "1", "destination", other, "receipt", "r")
		if got := d.Refused(refusal).Get("receipt-id"); got != "r" {
			t.Errorf("the ERROR has receipt-id %q, want r", got)
		}
		d = g.dial()
		d.send(other, []byte("stray"), "receipt", "s")
		if got := d.Refused(refusal).Get("receipt-id"); got != "s" {
			t.Errorf("the ERROR has receipt-id %q, want s", got)
		}
	}
	p.store(victim, []byte("1"))
	c.inOrder(1, 1)
}

// TestCommitWithAPartThatNATSCannotTakeDoesNothing: what is wrong with the last part must show before the first is
// stored.
func TestCommitWithAPartThatNATSCannotTakeDoesNothing(t *testing.T) {
	const topic, queue = "/topic/part", "/queue/part"
	var odd []string // Headers that travel packed, in three times their octets.
	for i := range 50 {
		odd = append(odd, fmt.Sprint("k ", i), strings.Repeat("%", 8_000))
	}
	for _, tt := range []struct {
		name    string
		parts   func(c *client)
		refusal string
	}{
		{"too large for a topic", func(c *client) {
			c.send(topic, []byte("small"), "transaction", "t")
			c.send(topic, make([]byte, 4<<20), append(odd, "transaction", "t")...)
		}, "larger than NATS takes"},
		{"headers too large for a queue", func(c *client) {
			c.send(topic, []byte("small"), "transaction", "t")
			c.send(queue, make([]byte, 4<<20), append(odd, "transaction", "t")...)
		}, "headers too large"},
		{"a queue that is full", func(c *client) {
			c.send(topic, []byte("small"), "transaction", "t")
			c.send(queue, make([]byte, 4<<20), "transaction", "t")
			c.send(queue, make([]byte, 4<<20), "transaction", "t")
		}, "queue full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := start(t, func(cfg *connector.Config) { cfg.Queues.MaxBytes = 6 << 20 })
			c, d := g.dial(), g.dial()
			d.subscribeAs("t", topic, "auto")
			c.Do("BEGIN", "transaction", "t")
			c.send(queue, []byte("stored"), "transaction", "t")
			tt.parts(c)
			// The server may have refused and closed already, which the ERROR tells.
			_ = c.Send(stompclient.New("COMMIT", "transaction", "t", "receipt", "c"))
			c.Refused(tt.refusal)
			p := g.dial()
			p.store(queue, []byte("0"))
			p.send(topic, []byte("0"), "receipt", "t")
			p.Receipt("t")
			d.inOrder(0, 0) // On the topic there is nothing else.
			d.subscribeAs("q", queue, "auto")
			d.inOrder(0, 0) // Nor in the queue.
		})
	}
}

func TestGroupWithNoLocalIsRefused(t *testing.T) {
	g := start(t, nil)
	c, d := g.dial(), g.dial()
	d.subscribe("/topic/g", "auto", "x-group", "w")
	c.Do("SUBSCRIBE", "id", "1", "destination", "/topic/g", "x-group", "w", "no-local", "true", "receipt", "r")
	if got := c.Refused("x-group and no-local").Get("receipt-id"); got != "r" {
		t.Errorf("the ERROR has receipt-id %q, want r", got)
	}
	c = g.dial()
	c.subscribe("/topic/g", "auto", "x-group", "w", "no-local", "false") // Asks for nothing.
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	rig.Holds(t, "the member has left", func() bool { return g.Sessions() == 1 })
	p := g.dial()
	for i := range 20 {
		p.send("/topic/g", []byte(fmt.Sprint(i)))
	}
	d.inOrder(0, 19) // The only member has them all.
}

// TestIDThatCannotBeEchoedIsRefused: a RECEIPT whose receipt-id were left out or mangled would answer nothing.
func TestIDThatCannotBeEchoedIsRefused(t *testing.T) {
	g := start(t, nil)
	for _, tt := range []struct {
		version, header string
		frame           stompclient.Frame
	}{
		{"1.0", "receipt", stompclient.New("SEND", "destination", "/topic/echo", "receipt", "a\rb")},
		{"1.0", "receipt", stompclient.New("SUBSCRIBE", "destination", "/topic/echo", "receipt", "a\rb")},
		{"1.0", "receipt", stompclient.New("DISCONNECT", "receipt", "a\rb")},
		{"1.0", "id", stompclient.New("SUBSCRIBE", "destination", "/topic/echo", "id", "a\rb")},
		{"1.0", "transaction", stompclient.New("BEGIN", "transaction", "a\rb")},
		{"1.1", "receipt", stompclient.New("SEND", "destination", "/topic/echo", "receipt", "a\rb")},
		{"1.1", "receipt", stompclient.New("DISCONNECT", "receipt", "a\rb")},
		{"1.1", "id", stompclient.New("SUBSCRIBE", "destination", "/topic/echo", "id", "a\rb")},
	} {
		c := g.dialVersion(tt.version)
		c.DoFrame(tt.frame)
		f := c.Refused("header " + tt.header + " holds what STOMP " + tt.version + " cannot represent")
		if id, has := f.Lookup("receipt-id"); has {
			t.Errorf("%s %s: the ERROR has receipt-id %q", tt.version, tt.frame, id)
		}
	}
	c := g.dial()
	c.send("/topic/echo", nil, "receipt", "a\r\n:\\b")
	c.Receipt("a\r\n:\\b") // 1.2 can.
}
