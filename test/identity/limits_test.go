package identity_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
)

// slots is limits.connections of each server of TestLimits; each row leaves all of them free.
const slots = 3

// limit is one key of limits: what is allowed by it works, what is more does what section 7 of the design says.
type limit struct {
	key  string
	set  func(*connector.Limits) // what this row needs beside small; it then has a server of its own
	test func(g *rig, c *client) // c is connected
}

// small are limits that a test reaches.
func small(l *connector.Limits) {
	l.Connections, l.Subscriptions, l.RPCPending = slots, 2, 2
	l.Transactions, l.TransactionFrames, l.TransactionBytes = 2, 3, 2<<10
	l.Unacked = 3
	l.Destination, l.ID, l.Headers, l.HeaderLine, l.Passcode, l.FrameBeforeConnect, l.Body = 64, 32, 8, 256, 512, 2<<10, 1<<10
}

// TestLimits has a row for each key: at the limit all works, above it the ERROR names the limit, or what section 7 says
// happens, and the slot of the connection is free again.
func TestLimits(t *testing.T) {
	t.Parallel()
	shared := newRig(t, func(c *connector.Config) {
		small(&c.Limits)
		c.RPC.StompResponders = true
	})
	seen := map[string]bool{}
	for _, row := range append(append(frameLimits(), sessionLimits()...), timeLimits()...) {
		seen[row.key] = true
		t.Run(row.key, func(t *testing.T) {
			g := *shared
			g.t = t
			if row.set != nil {
				g = *newRig(t, func(c *connector.Config) {
					small(&c.Limits)
					row.set(&c.Limits)
				})
			}
			c := g.login("client-id", row.key)
			row.test(&g, c)
			g.closeAll()
			g.wantSlots()
		})
	}
	kind := reflect.TypeFor[connector.Limits]()
	for i := range kind.NumField() {
		if key := kind.Field(i).Tag.Get("yaml"); !seen[key] {
			t.Errorf("limits.%s has no row", key)
		}
	}
}

// wantSlots waits until all slots are free, and uses them all.
func (g *rig) wantSlots() {
	g.t.Helper()
	until(g.t, "free slots", func() bool {
		var open []*client
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		for range slots {
			c := g.come(visit{over: "tcp"})
			open = append(open, c)
			if _, err := c.Connect("1.2"); err != nil {
				return false
			}
		}
		return true
	})
	until(g.t, "end of them", func() bool { return len(g.Connections()) == 0 })
}

// octets writes what a client sends as it is.
func (c *client) octets(text string) {
	c.t.Helper()
	if err := c.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// first is a client that has not sent its CONNECT.
func (g *rig) first(connect string) *client {
	g.t.Helper()
	c := g.come(visit{over: "tcp"})
	c.octets(connect)
	return c
}

// frameLimits are about the octets of a frame.
func frameLimits() []limit {
	x := func(n int) string { return strings.Repeat("x", n) }
	return []limit{
		{"headers", nil, func(g *rig, c *client) {
			c.octets("SEND\ndestination:/topic/a\nreceipt:r\n" + strings.Repeat("a:b\n", 6) + "\n\x00")
			c.receipt("r")
			c.octets("SEND\ndestination:/topic/a\nreceipt:r\n" + strings.Repeat("a:b\n", 7) + "\n\x00")
			c.refused("limits.headers is 8")
		}},
		{"header_line", nil, func(g *rig, c *client) {
			c.octets("SEND\ndestination:/topic/a\nreceipt:r\na:" + x(254) + "\n\n\x00")
			c.receipt("r")
			c.octets("SEND\ndestination:/topic/a\nreceipt:r\na:" + x(255) + "\n\n\x00")
			c.refused("limits.header_line is 256")
		}},
		{"passcode", nil, func(g *rig, c *client) {
			g.first("CONNECT\naccept-version:1.2\npasscode:" + x(503) + "\n\n\x00").next("CONNECTED")
			g.first("CONNECT\naccept-version:1.2\npasscode:" + x(504) + "\n\n\x00").refused("limits.passcode is 512")
		}},
		{"frame_before_connect", nil, func(g *rig, c *client) {
			begin := "CONNECT\naccept-version:1.2\n" + strings.Repeat("a:"+x(249)+"\n", 6) + "passcode:"
			rest := 2<<10 - len(begin) - len("\n\n\x00")
			g.first(begin + x(rest) + "\n\n\x00").next("CONNECTED")
			g.first(begin + x(rest+1) + "\n\n\x00").refused("limits.frame_before_connect is 2048")
		}},
		{"body", nil, func(g *rig, c *client) {
			c.send("/topic/a", x(1024), "receipt", "r")
			c.receipt("r")
			c.octets("SEND\ndestination:/topic/a\ncontent-length:1024\nreceipt:s\n\n" + x(1024) + "\x00")
			c.receipt("s")
			c.send("/topic/a", x(1025))
			c.refused("limits.body is 1024")
		}},
		{"destination", nil, func(g *rig, c *client) {
			c.send("/topic/"+x(57), "", "receipt", "r")
			c.receipt("r")
			c.send("/topic/"+x(58), "")
			c.refused("limits.destination is 64 (got 65)")
		}},
		{"id", nil, func(g *rig, c *client) {
			c.subscribe(x(32), "/topic/a")
			c.do("UNSUBSCRIBE", "id", x(33))
			c.refused("limits.id is 32 (got 33)")
		}},
	}
}

// sessionLimits are about what a session, or all of them, may have.
func sessionLimits() []limit {
	return []limit{
		{"connections", nil, func(g *rig, c *client) {
			b, d := g.login(), g.login()
			e := g.come(visit{over: "ws"})
			e.do("CONNECT", "accept-version", "1.2")
			e.refused("connection limit reached") // The text that the design fixes.
			for _, in := range []*client{b, c, d} {
				in.alive()
			}
		}},
		{"subscriptions", nil, func(g *rig, c *client) {
			c.subscribe("1", "/topic/a")
			c.subscribe("2", "/queue/a")
			c.do("UNSUBSCRIBE", "id", "1", "receipt", "u")
			c.receipt("u")
			c.subscribe("3", "/topic/a")
			c.do("SUBSCRIBE", "id", "4", "destination", "/topic/a")
			c.refused("limits.subscriptions is 2")
		}},
		{"transactions", nil, func(g *rig, c *client) {
			for _, name := range []string{"a", "b"} {
				c.do("BEGIN", "transaction", name, "receipt", name)
				c.receipt(name)
			}
			c.do("BEGIN", "transaction", "c")
			c.refused("limits.transactions is 2")
		}},
		{"transaction_frames", nil, func(g *rig, c *client) {
			c.do("BEGIN", "transaction", "t")
			for range 3 {
				c.send("/topic/a", "x", "transaction", "t", "receipt", "r")
				c.receipt("r")
			}
			c.send("/topic/a", "x", "transaction", "t")
			c.refused("limits.transaction_frames is 3")
		}},
		{"transaction_bytes", nil, func(g *rig, c *client) {
			body := strings.Repeat("x", 800)
			for _, name := range []string{"a", "b"} {
				c.do("BEGIN", "transaction", name)
				c.send("/topic/a", body, "transaction", name, "receipt", name)
				c.receipt(name)
			}
			c.send("/topic/a", body, "transaction", "a")
			c.refused("limits.transaction_bytes is 2048")
		}},
		{"unacked", nil, func(g *rig, c *client) { pauses(g, c, "/queue/unacked", "x", 3, 3) }},
		// A pull asks for 64 KiB at least, so one message may be more than the limit.
		{"unacked_bytes", func(l *connector.Limits) { l.Body, l.Unacked, l.UnackedBytes = 64<<10, 0, 256<<10 }, func(g *rig, c *client) {
			pauses(g, c, "/queue/a", strings.Repeat("x", 60_000), 4, 5)
		}},
		{"rpc_pending", nil, func(g *rig, c *client) {
			quiet := g.login() // Is asked, and does not answer.
			quiet.subscribe("1", "/query/q", "ack", "client")
			c.subscribe("1", "/reply/a")
			for range 2 {
				c.send("/query/q", "x", "reply-to", "/reply/a")
			}
			c.send("/query/q", "x", "reply-to", "/reply/a")
			if f := c.next("MESSAGE"); f.Get("x-error") != "overload" {
				g.t.Errorf("got %s", f)
			}
			c.alive() // The third one was refused, and that is all.
		}},
		{"queues", func(l *connector.Limits) { l.Queues = 2 }, func(g *rig, c *client) {
			for _, name := range []string{"a", "b", "a"} {
				c.send("/queue/"+name, "x", "receipt", name)
				c.receipt(name)
			}
			c.send("/queue/c", "x")
			c.refused("limits.queues")
		}},
		{"durables", func(l *connector.Limits) { l.Durables = 1 }, func(g *rig, c *client) {
			c.subscribe("1", "/topic-store/a", "durable-subscription-name", "one")
			c.do("SUBSCRIBE", "id", "2", "destination", "/topic-store/a", "durable-subscription-name", "two")
			c.refused("limits.durables")
		}},
		{"publish_window", func(l *connector.Limits) { l.PublishWindow = 2 }, func(g *rig, c *client) {
			for i := range 100 {
				c.send("/queue/a", "x", "receipt", fmt.Sprint(i))
			}
			most := 0
			for i := range 100 {
				for _, shown := range g.Connections() {
					most = max(most, shown.PendingReceipts)
				}
				c.receipt(fmt.Sprint(i))
			}
			if most > 2 {
				g.t.Errorf("%d frames waited for NATS", most)
			}
		}},
	}
}

// pauses stores messages and wants a consumer that acknowledges nothing to get some and then no more; the next one goes to
// somebody else, and an ACK lets it go on.
func pauses(g *rig, c *client, queue, body string, least, most int) {
	g.t.Helper()
	for range most + 2 {
		c.send(queue, body)
	}
	c.send(queue, body, "receipt", "stored")
	c.receipt("stored")
	c.subscribe("1", queue, "ack", "client-individual")
	var first string
	for i := range least {
		if m := c.next("MESSAGE"); i == 0 {
			first = m.Get("ack")
		}
	}
	other := g.login()
	other.subscribe("1", queue, "ack", "client-individual", "prefetch-count", "1")
	other.next("MESSAGE") // What c did not ask for.
	c.do("BEGIN", "transaction", "t", "receipt", "t")
	got := least
	for {
		m, err := c.Read(patience)
		if err != nil || m.Command == "RECEIPT" {
			break
		}
		got++
	}
	if got > most {
		g.t.Errorf("got %d messages, want at most %d", got, most)
	}
	c.do("ACK", "id", first)
	c.next("MESSAGE")
}

// timeLimits are about time, and about sockets that do not take what is sent.
func timeLimits() []limit {
	stuck := func(l *connector.Limits) {
		l.Body, l.PendingBytes, l.WriteStall = 64<<10, 256<<10, time.Minute
	}
	flood := func(g *rig, c *client) *client {
		c.subscribe("1", "/topic/flood")
		from := g.login()
		for range 400 {
			from.send("/topic/flood", strings.Repeat("x", 60_000))
		}
		from.send("/topic/flood", "last", "receipt", "all")
		from.receipt("all")
		return from
	}
	return []limit{
		{"connect_timeout", func(l *connector.Limits) { l.ConnectTimeout = 300 * time.Millisecond }, func(g *rig, c *client) {
			slow := g.first("CONNECT\naccept-version:1.2\n")
			begun := time.Now()
			slow.refused("limits.connect_timeout (300ms)")
			if took := time.Since(begun); took < 250*time.Millisecond || took > 2*time.Second {
				g.t.Errorf("closed after %v", took)
			}
			c.alive() // It was there for longer.
		}},
		{"heartbeat", func(l *connector.Limits) { l.Heartbeat = 150 * time.Millisecond }, func(g *rig, c *client) {
			beats := g.come(visit{over: "tcp"})
			if got := beats.connect("heart-beat", "1,1").Get("heart-beat"); got != "150,150" {
				g.t.Errorf("offers %q", got)
			}
			if err := beats.ReadBeat(patience); err != nil {
				g.t.Error(err)
			}
			until(g.t, "end of the silent one", func() bool { return len(g.audit("client.timeout")) == 1 })
			c.alive() // It has asked for none.
		}},
		{"frames_per_second", func(l *connector.Limits) { l.FramesPerSecond = 10 }, func(g *rig, c *client) {
			for range 8 { // Those of a second, with what alive sends.
				c.send("/topic/a", "x")
			}
			c.alive()
			<-time.After(time.Second)
			for range 21 { // More than two seconds may have.
				_ = c.Write([]byte("SEND\ndestination:/topic/a\n\n\x00"))
			}
			c.refused("limits.frames_per_second is 10")
		}},
		{"pending_bytes", stuck, func(g *rig, c *client) {
			flood(g, c).alive()
			for {
				if f, err := c.Read(patience); err != nil || f.Command == "ERROR" {
					if f.Get("message") != "slow consumer" { // The text that the design fixes.
						g.t.Errorf("got %s, %v", f, err)
					}
					break
				}
			}
			if all := g.audit("client.slow"); len(all) != 1 || all[0]["reason"] != "limits.pending_bytes" {
				g.t.Errorf("got the audit lines %v", all)
			}
		}},
		{"slow_consumer", func(l *connector.Limits) { stuck(l); l.SlowConsumer = "drop" }, func(g *rig, c *client) {
			from := flood(g, c)
			got := 0
			c.do("UNSUBSCRIBE", "id", "1", "receipt", "u")
			for {
				f, err := c.Read(patience)
				if err != nil || f.Command != "MESSAGE" {
					if f.Get("receipt-id") != "u" {
						g.t.Errorf("got %s, %v", f, err)
					}
					break
				}
				got++
			}
			if got == 0 || got > 400 {
				g.t.Errorf("got %d of 401 messages", got)
			}
			c.alive()
			from.alive()
		}},
		{"write_stall", func(l *connector.Limits) { stuck(l); l.PendingBytes, l.WriteStall = 64<<20, 300*time.Millisecond }, func(g *rig, c *client) {
			flood(g, c).alive()
			until(g.t, "end of the one that does not read", func() bool { return len(g.Connections()) == 1 })
			if all := g.audit("client.slow"); len(all) != 1 || all[0]["reason"] != "limits.write_stall" {
				g.t.Errorf("got the audit lines %v", all)
			}
		}},
	}
}
