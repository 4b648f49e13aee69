package identity_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
)

// slots is limits.connections of each server of TestLimits; each row leaves all of them free.
const slots = 3

// limit is one key of limits: what is allowed by it works, what is more does what section 7 of the design says.
type limit struct {
	key  string
	set  func(*connector.Limits)        // what this row needs beside small; it then has a server of its own
	test func(g *server, c *rig.Client) // c is connected
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
	shared := start(t, func(c *connector.Config) {
		small(&c.Limits)
		c.RPC.StompResponders = true
	})
	seen := map[string]bool{}
	for _, row := range append(append(frameLimits(), sessionLimits()...), timeLimits()...) {
		seen[row.key] = true
		t.Run(row.key, func(t *testing.T) {
			g := &server{Server: shared.Server, t: t}
			if row.set != nil {
				g = start(t, func(c *connector.Config) {
					small(&c.Limits)
					row.set(&c.Limits)
				})
			}
			c := g.login("client-id", row.key)
			row.test(g, c)
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
func (g *server) wantSlots() {
	g.t.Helper()
	rig.Holds(g.t, "free slots", func() bool {
		var open []*rig.Client
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		for range slots {
			c := g.come(rig.Visit{})
			open = append(open, c)
			if _, err := c.Connect("1.2"); err != nil {
				return false
			}
		}
		return true
	})
	rig.Holds(g.t, "end of them", func() bool { return len(g.Connections()) == 0 })
}

// first is a client that has not sent its CONNECT.
func (g *server) first(connect string) *rig.Client {
	g.t.Helper()
	c := g.come(rig.Visit{})
	c.Octets(connect)
	return c
}

// frameLimits are about the octets of a frame.
func frameLimits() []limit {
	x := func(n int) string { return strings.Repeat("x", n) }
	return []limit{
		{"headers", nil, func(g *server, c *rig.Client) {
			c.Octets("SEND\ndestination:/topic/a\nreceipt:r\n" + strings.Repeat("a:b\n", 6) + "\n\x00")
			c.Receipt("r")
			c.Octets("SEND\ndestination:/topic/a\nreceipt:r\n" + strings.Repeat("a:b\n", 7) + "\n\x00")
			c.Refused("limits.headers is 8")
		}},
		{"header_line", nil, func(g *server, c *rig.Client) {
			c.Octets("SEND\ndestination:/topic/a\nreceipt:r\na:" + x(254) + "\n\n\x00")
			c.Receipt("r")
			c.Octets("SEND\ndestination:/topic/a\nreceipt:r\na:" + x(255) + "\n\n\x00")
			c.Refused("limits.header_line is 256")
		}},
		{"passcode", nil, func(g *server, c *rig.Client) {
			g.first("CONNECT\naccept-version:1.2\npasscode:" + x(503) + "\n\n\x00").Next("CONNECTED")
			g.first("CONNECT\naccept-version:1.2\npasscode:" + x(504) + "\n\n\x00").Refused("limits.passcode is 512")
		}},
		{"frame_before_connect", nil, func(g *server, c *rig.Client) {
			begin := "CONNECT\naccept-version:1.2\n" + strings.Repeat("a:"+x(249)+"\n", 6) + "passcode:"
			rest := 2<<10 - len(begin) - len("\n\n\x00")
			g.first(begin + x(rest) + "\n\n\x00").Next("CONNECTED")
			g.first(begin + x(rest+1) + "\n\n\x00").Refused("limits.frame_before_connect is 2048")
		}},
		{"body", nil, func(g *server, c *rig.Client) {
			c.Publish("/topic/a", x(1024), "receipt", "r")
			c.Receipt("r")
			c.Octets("SEND\ndestination:/topic/a\ncontent-length:1024\nreceipt:s\n\n" + x(1024) + "\x00")
			c.Receipt("s")
			c.Publish("/topic/a", x(1025))
			c.Refused("limits.body is 1024")
		}},
		{"destination", nil, func(g *server, c *rig.Client) {
			c.Publish("/topic/"+x(57), "", "receipt", "r")
			c.Receipt("r")
			c.Publish("/topic/"+x(58), "")
			c.Refused("limits.destination is 64 (got 65)")
		}},
		{"id", nil, func(g *server, c *rig.Client) {
			c.Subscribe(x(32), "/topic/a")
			c.Do("UNSUBSCRIBE", "id", x(33))
			c.Refused("limits.id is 32 (got 33)")
		}},
	}
}

// sessionLimits are about what a session, or all of them, may have.
func sessionLimits() []limit {
	return []limit{
		{"connections", nil, func(g *server, c *rig.Client) {
			b, d := g.login(), g.login()
			e := g.come(rig.Visit{Over: "ws"})
			e.Do("CONNECT", "accept-version", "1.2")
			e.Refused("connection limit reached") // The text that the design fixes.
			for _, in := range []*rig.Client{b, c, d} {
				in.Alive()
			}
		}},
		{"connections_per_user", func(l *connector.Limits) { l.ConnectionsPerUser = 1 }, func(g *server, c *rig.Client) {
			a := g.login("client-id", "a")
			for range 3 {
				b := g.come(rig.Visit{Over: "wss"})
				b.Do("CONNECT", "accept-version", "1.2", "client-id", "a")
				b.Refused("connection limit reached for this user: limits.connections_per_user is 1")
			}
			_ = a.Close()
			rig.Holds(g.t, "the user's slot", func() bool { return len(g.Connections()) == 1 })
			g.login("client-id", "a")
			g.login() // Who has no name is nobody's second.
			c.Alive()
		}},
		{"subscriptions", nil, func(g *server, c *rig.Client) {
			c.Subscribe("1", "/topic/a")
			c.Subscribe("2", "/queue/a")
			c.Do("UNSUBSCRIBE", "id", "1", "receipt", "u")
			c.Receipt("u")
			c.Subscribe("3", "/topic/a")
			c.Do("SUBSCRIBE", "id", "4", "destination", "/topic/a")
			c.Refused("limits.subscriptions is 2")
		}},
		{"transactions", nil, func(g *server, c *rig.Client) {
			for _, name := range []string{"a", "b"} {
				c.Do("BEGIN", "transaction", name, "receipt", name)
				c.Receipt(name)
			}
			c.Do("BEGIN", "transaction", "c")
			c.Refused("limits.transactions is 2")
		}},
		{"transaction_frames", nil, func(g *server, c *rig.Client) {
			c.Do("BEGIN", "transaction", "t")
			for range 3 {
				c.Publish("/topic/a", "x", "transaction", "t", "receipt", "r")
				c.Receipt("r")
			}
			c.Publish("/topic/a", "x", "transaction", "t")
			c.Refused("limits.transaction_frames is 3")
		}},
		{"transaction_bytes", nil, func(g *server, c *rig.Client) {
			body := strings.Repeat("x", 800)
			for _, name := range []string{"a", "b"} {
				c.Do("BEGIN", "transaction", name)
				c.Publish("/topic/a", body, "transaction", name, "receipt", name)
				c.Receipt(name)
			}
			c.Publish("/topic/a", body, "transaction", "a")
			c.Refused("limits.transaction_bytes is 2048")
		}},
		{"unacked", nil, func(g *server, c *rig.Client) { pauses(g, c, "/queue/unacked", "x", 3, 3) }},
		{"unacked_bytes", func(l *connector.Limits) { l.Body, l.Unacked, l.UnackedBytes = 64<<10, 0, 256<<10 }, func(g *server, c *rig.Client) {
			pauses(g, c, "/queue/a", strings.Repeat("x", 60_000), 4, 4)
		}},
		{"rpc_pending", nil, func(g *server, c *rig.Client) {
			quiet := g.login() // Is asked, and does not answer.
			quiet.Subscribe("1", "/query/q", "ack", "client")
			c.Subscribe("1", "/reply/a")
			for range 2 {
				c.Publish("/query/q", "x", "reply-to", "/reply/a")
			}
			c.Publish("/query/q", "x", "reply-to", "/reply/a")
			if f := c.Next("MESSAGE"); f.Get("x-error") != "overload" {
				g.t.Errorf("got %s", f)
			}
			c.Alive() // The third one was refused, and that is all.
		}},
		{"queues", func(l *connector.Limits) { l.Queues = 2 }, func(g *server, c *rig.Client) {
			for _, name := range []string{"a", "b", "a"} {
				c.Publish("/queue/"+name, "x", "receipt", name)
				c.Receipt(name)
			}
			c.Publish("/queue/c", "x")
			c.Refused("limits.queues")
		}},
		{"durables", func(l *connector.Limits) { l.Durables = 1 }, func(g *server, c *rig.Client) {
			c.Subscribe("1", "/topic-store/a", "durable-subscription-name", "one")
			c.Do("SUBSCRIBE", "id", "2", "destination", "/topic-store/a", "durable-subscription-name", "two")
			c.Refused("limits.durables")
		}},
		{"publish_window", func(l *connector.Limits) { l.PublishWindow = 2 }, func(g *server, c *rig.Client) {
			for i := range 100 {
				c.Publish("/queue/a", "x", "receipt", fmt.Sprint(i))
			}
			most := 0
			for i := range 100 {
				for _, shown := range g.Connections() {
					most = max(most, shown.PendingReceipts)
				}
				c.Receipt(fmt.Sprint(i))
			}
			if most > 2 {
				g.t.Errorf("%d frames waited for NATS", most)
			}
		}},
	}
}

// pauses stores messages and wants a consumer that acknowledges nothing to get some and then no more; the next one goes to
// somebody else, and an ACK lets it go on.
func pauses(g *server, c *rig.Client, queue, body string, least, most int) {
	g.t.Helper()
	for range most + 2 {
		c.Publish(queue, body)
	}
	c.Publish(queue, body, "receipt", "stored")
	c.Receipt("stored")
	c.Subscribe("1", queue, "ack", "client-individual")
	var first string
	for i := range least {
		if m := c.Next("MESSAGE"); i == 0 {
			first = m.Get("ack")
		}
	}
	other := g.login()
	other.Subscribe("1", queue, "ack", "client-individual", "prefetch-count", "1")
	other.Next("MESSAGE") // What c did not ask for.
	c.Do("BEGIN", "transaction", "t", "receipt", "t")
	got := least
	for {
		m, err := c.Read(rig.Patience)
		if err != nil || m.Command == "RECEIPT" {
			break
		}
		got++
	}
	if got > most {
		g.t.Errorf("got %d messages, want at most %d", got, most)
	}
	c.Do("ACK", "id", first)
	c.Next("MESSAGE")
}

// timeLimits are about time, and about sockets that do not take what is sent.
func timeLimits() []limit {
	stuck := func(l *connector.Limits) {
		l.Body, l.PendingBytes, l.WriteStall = 64<<10, 256<<10, time.Minute
	}
	flood := func(g *server, c *rig.Client) *rig.Client {
		c.Subscribe("1", "/topic/flood")
		from := g.login()
		for range 400 {
			from.Publish("/topic/flood", strings.Repeat("x", 60_000))
		}
		from.Publish("/topic/flood", "last", "receipt", "all")
		from.Receipt("all")
		return from
	}
	return []limit{
		{"connect_timeout", func(l *connector.Limits) { l.ConnectTimeout = 3 * time.Second }, func(g *server, c *rig.Client) {
			begun := time.Now()
			slow := g.first("CONNECT\naccept-version:1.2\n")
			slow.Refused("limits.connect_timeout (3s)")
			if took := time.Since(begun); took < 3*time.Second || took > 15*time.Second {
				g.t.Errorf("closed after %v", took)
			}
			c.Alive() // It was there for longer.
		}},
		{"heartbeat", func(l *connector.Limits) { l.Heartbeat = 150 * time.Millisecond }, func(g *server, c *rig.Client) {
			beats := g.come(rig.Visit{})
			if got := beats.Login("heart-beat", "1,1").Get("heart-beat"); got != "150,150" {
				g.t.Errorf("offers %q", got)
			}
			if err := beats.ReadBeat(rig.Patience); err != nil {
				g.t.Error(err)
			}
			rig.Holds(g.t, "end of the silent one", func() bool { return len(g.audit("client.timeout")) == 1 })
			c.Alive() // It has asked for none.
		}},
		{"frames_per_second", func(l *connector.Limits) { l.FramesPerSecond = 10 }, func(g *server, c *rig.Client) {
			for range 8 { // Those of a second, with what alive sends.
				c.Publish("/topic/a", "x")
			}
			c.Alive()
			<-time.After(time.Second)
			// In one write, and more than several seconds may have.
			_ = c.Write(bytes.Repeat([]byte("SEND\ndestination:/topic/a\n\n\x00"), 100))
			c.Refused("limits.frames_per_second is 10")
		}},
		{"pending_bytes", stuck, func(g *server, c *rig.Client) {
			flood(g, c).Alive()
			for {
				if f, err := c.Read(rig.Patience); err != nil || f.Command == "ERROR" {
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
		{"slow_consumer", func(l *connector.Limits) { stuck(l); l.SlowConsumer = "drop" }, func(g *server, c *rig.Client) {
			from := flood(g, c)
			got := 0
			c.Do("UNSUBSCRIBE", "id", "1", "receipt", "u")
			for {
				f, err := c.Read(rig.Patience)
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
			c.Alive()
			from.Alive()
		}},
		{"write_stall", func(l *connector.Limits) { stuck(l); l.PendingBytes, l.WriteStall = 64<<20, 300*time.Millisecond }, func(g *server, c *rig.Client) {
			flood(g, c).Alive()
			rig.Holds(g.t, "end of the one that does not read", func() bool { return len(g.Connections()) == 1 })
			if all := g.audit("client.slow"); len(all) != 1 || all[0]["reason"] != "limits.write_stall" {
				g.t.Errorf("got the audit lines %v", all)
			}
		}},
	}
}
