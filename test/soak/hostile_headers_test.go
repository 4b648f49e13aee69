package soak_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestForgedHeaders sends, on a topic and on a queue, every header that belongs to the broker (H1) or to NATS (H3):
// what arrives says what the broker says, NATS acts on none, and those that are nobody's arrive as they were.
func TestForgedHeaders(t *testing.T) {
	srv := testserver.Start(t)
	nc, js := rig.Native(t, srv.NATSURL)
	seen, err := nc.SubscribeSync("forged")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	owned := []string{
		"message-id", "subscription", "ack", "redelivered", "session", "server", "heart-beat", "login", "passcode",
		"x-delivery-count", "x-seq", "x-dead-letter-reason", "x-error", "x-error-code", "x-executed", "x-deadline",
	}
	acting := []string{
		"Nats-Rollup", "nats-rollup", "Nats-Msg-Id", "NATS-MSG-ID", "Nats-Expected-Stream", "Nats-Expected-Last-Sequence",
		"Nats-Expected-Last-Msg-Id", "Nats-TTL", "Nats-Schedule", "Nats-Batch-Id", "Nats-Trace-Dest", "Nats-Marker-Reason",
		"Nats-Stomp-Origin", "Stomp-Headers", "stomp-headers",
	}
	var headers []string
	for _, name := range owned {
		headers = append(headers, name, "forged")
	}
	for _, name := range acting {
		headers = append(headers, name, "all")
	}
	c := rig.Connect(t, srv.TCPAddr)
	c.AskFrame(rig.Subscribe("t", "/topic/forged"))
	c.AskFrame(rig.Subscribe("q", "/queue/forged", "ack", "client"))
	const count = 5
	for n := range count {
		for _, destination := range []string{"/topic/forged", "/queue/forged"} {
			f := rig.Send(destination, fmt.Append(nil, n), headers...)
			c.DoFrame(f)
		}
	}
	for range 2 * count {
		f := c.Next("MESSAGE")
		wantHeaders(t, f, acting)
	}
	for range count {
		m, err := seen.NextMsg(rig.Patience)
		if err != nil {
			t.Fatal(err)
		}
		for name := range m.Header {
			if strings.HasPrefix(strings.ToLower(name), "nats-") {
				t.Errorf("a client's SEND has the NATS header %s:%q", name, m.Header[name])
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	s, err := js.Stream(ctx, rig.QueueStream("forged"))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().State; got.Msgs != count || got.LastSeq != count {
		t.Errorf("the queue holds %d messages of %d, want %d of %d: NATS acted on a client's header", got.Msgs, got.LastSeq, count, count)
	}
}

// wantHeaders checks a message of TestForgedHeaders.
func wantHeaders(t *testing.T, f stompclient.Frame, acting []string) {
	t.Helper()
	for _, h := range f.Headers {
		if h.Value == "forged" {
			t.Errorf("the broker's header %s came from a client: %s", h.Name, f)
		}
	}
	for _, name := range acting {
		if got := f.Get(name); got != "all" {
			t.Errorf("header %s is %q, want all: %s", name, got, f)
		}
	}
}

// TestUnfitHeaders sends header values that not every version can carry (H4): each version gets those that it can
// represent, as they were, and the others not at all.
func TestUnfitHeaders(t *testing.T) {
	srv := testserver.Start(t)
	sender := rig.Connect(t, srv.TCPAddr)
	values := map[string]string{
		"plain": "a", "blanks": " a ", "colon": "a:b", "backslash": `a\nb\c`, "lf": "a\nb:c", "cr": "a\rb", "crlf": "a\r\nx-injected:1\r\n\r\nbody",
		"utf8": "Grüße", "co:lon": "v", "empty": "", "tab": "\ta",
	}
	absent := map[string][]string{"1.0": {"lf", "cr", "crlf", "co:lon"}, "1.1": {"cr", "crlf"}, "1.2": nil}
	var headers []string
	for name, value := range values {
		headers = append(headers, name, value)
	}
	for _, destination := range []string{"/topic/unfit", "/queue/unfit"} {
		for version, left := range absent {
			c := rig.ConnectVersion(t, srv.TCPAddr, version)
			c.AskFrame(rig.Subscribe("u", destination))
			sender.AskFrame(rig.Send(destination, []byte("body"), headers...))
			f := c.Next("MESSAGE")
			for _, name := range left {
				if got, found := f.Lookup(name); found {
					t.Errorf("%s, %s: header %q arrived as %q", destination, version, name, got)
				}
			}
			for name, want := range values {
				if got, found := f.Lookup(name); found && got != want || !found && !slices.Contains(left, name) {
					t.Errorf("%s, %s: header %q is %q (%t), want %q", destination, version, name, got, found, want)
				}
			}
			if got, found := f.Lookup("x-injected"); found || string(f.Body) != "body" {
				t.Errorf("%s, %s: a header was injected, %q: %s", destination, version, got, f)
			}
			_ = c.Close()
		}
	}
}

// TestNativeOctets publishes from the NATS side what STOMP has no way to write (H2): in subjects and headers. What
// can be shown is, the rest is left out, and no subscriber of any version loses its place in the stream.
func TestNativeOctets(t *testing.T) {
	srv := testserver.Start(t)
	versions := []string{"1.0", "1.1", "1.2"}
	conns := map[string]*rig.Client{}
	for _, version := range versions {
		c := rig.ConnectVersion(t, srv.TCPAddr, version)
		c.AskFrame(rig.Subscribe("tail", "/topic/octets/>"))
		c.AskFrame(rig.Subscribe("wide", "/topic/>"))
		c.AskFrame(rig.Subscribe("queue", "/queue/octets-"+strings.ReplaceAll(version, ".", "-")))
		conns[version] = c
	}
	wire := dialNATS(t, srv)
	subjects := []string{
		"octets.plain", "octets.a:b", `octets.a\b`, "octets.\x01", "octets.\x7f", "octets.\xff\xfe", "octets.a/b", "octets.\u2028",
		"octets." + strings.Repeat("x", 600), "octets.a*b", "octets.\x00", "stomp.queue.octets-1-0", "stomp.queue.octets-1-1", "stomp.queue.octets-1-2",
	}
	blocks := []string{
		"", "X: a\r\n", "X: a\x00b\r\n", "X: a\rb\r\n", "X: a\nx-second: 1\r\n", "X:a:b\r\n", "a:b: c\r\n", "X\x00: a\r\n", ": a\r\n", "X: \xff\r\n",
		"Stomp-Headers: a%00b=c&x%0d%0ax-injected=1&%zz&=1&destination=forged\r\n", "content-length: 0\r\n", "destination: forged\r\n",
		"X: " + strings.Repeat("y", 50_000) + "\r\n", strings.Repeat("X: a\r\n", 1_000),
	}
	for _, subject := range subjects {
		for _, block := range blocks {
			wire.publish(t, subject, block, "body\x00of\n\nit")
		}
	}
	wire.publish(t, "octets.end", "", "end")
	for version, c := range conns {
		if err := readOctets(c.Conn); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// readOctets reads up to the end in both topics and in the queue.
func readOctets(c *stompclient.Conn) error {
	got := map[string]int{}
	for ends := 0; ends < 2 || got["queue"] < 15; {
		f, err := c.Expect("MESSAGE", rig.Patience) // Strict about what it reads.
		if err != nil {
			return fmt.Errorf("after %v: %w", got, err)
		}
		got[f.Get("subscription")]++
		switch body := string(f.Body); {
		case body == "end":
			ends++
		case body != "body\x00of\n\nit":
			return fmt.Errorf("a body changed: %s", f)
		}
		if _, found := f.Lookup("x-injected"); found || strings.Contains(f.Get("destination"), "forged") {
			return fmt.Errorf("a native publisher wrote a header: %s", f)
		}
	}
	if plain := 15; got["tail"] < plain || got["wide"] < plain {
		return fmt.Errorf("got %v, want at least the %d of a plain subject on each topic", got, plain)
	}
	return nil
}

// natsWire is a NATS connection that writes what it is told to.
type natsWire struct{ conn net.Conn }

func dialNATS(t *testing.T, srv *testserver.Server) natsWire {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(srv.NATSURL, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	w := natsWire{conn}
	w.write(t, "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":false}\r\n")
	return w
}

func (w natsWire) write(t *testing.T, text string) {
	t.Helper()
	if _, err := w.conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// publish sends one message, with a header block as it is unless that is empty.
func (w natsWire) publish(t *testing.T, subject, block, body string) {
	t.Helper()
	if block == "" {
		w.write(t, fmt.Sprintf("PUB %s %d\r\n%s\r\n", subject, len(body), body))
		return
	}
	block = "NATS/1.0\r\n" + block + "\r\n"
	w.write(t, fmt.Sprintf("HPUB %s %d %d\r\n%s%s\r\n", subject, len(block), len(block)+len(body), block, body))
}
