package identity_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// secured is a session over a listener with TLS whose client writes its own records.
func (g *server) secured(over string, version uint16) *records {
	g.t.Helper()
	r := g.records(over, version)
	if over == "wss" {
		r.say("GET /stomp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		if got := r.hear("\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 101 ") {
			g.t.Fatalf("got %s", got)
		}
	}
	r.say(message(over, "CONNECT\naccept-version:1.2\nclient-id:flood\n\n\x00"))
	if got := r.hear("\x00\n"); !strings.Contains(got, "CONNECTED") {
		g.t.Fatalf("got %q", got)
	}
	return r
}

// message is a short text as the transport carries it: in a WebSocket message with a mask of zeros.
func message(over, text string) string {
	if over != "wss" {
		return text
	}
	return string([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}) + text
}

// closed waits for the server to close, whatever it sends before.
func (r *records) closed() {
	r.t.Helper()
	if err := r.raw.SetReadDeadline(time.Now().Add(rig.Patience)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r.raw); errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Error("it is open")
	}
}

// TestT5RecordFloods: a TLS client that only makes work ends, whatever work it is: new keys, records without octets, another
// handshake. Its slot is free then. One that has octets between is served as slowly as it likes, beside others.
func TestT5RecordFloods(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *connector.Config) { small(&c.Limits) })
	for _, over := range []string{"tls", "wss"} {
		t.Run(over, func(t *testing.T) {
			g := g.of(t)
			for name, flood := range map[string]struct {
				version uint16
				octets  func(r *records) []byte
			}{
				"key updates": {tls.VersionTLS13, func(r *records) (b []byte) {
					for range 1_000 {
						b = r.update(b)
					}
					return b
				}},
				"empty records": {tls.VersionTLS13, func(r *records) (b []byte) {
					for range 1_000 {
						b = r.seal(b, kindData, nil)
					}
					return b
				}},
				"empty records of TLS 1.2": {tls.VersionTLS12, func(r *records) (b []byte) {
					for range 1_000 {
						b = r.seal(b, kindData, nil)
					}
					return b
				}},
				"another handshake": {tls.VersionTLS12, func(r *records) []byte { return r.seal(nil, kindHandshake, hello()) }},
				"a wish for one":    {tls.VersionTLS12, func(r *records) []byte { return r.seal(nil, kindHandshake, []byte{0, 0, 0, 0}) }},
			} {
				r := g.secured(over, flood.version)
				_ = r.put(flood.octets(r)) // It may be closed in the middle.
				r.closed()
				g.wantSlots()
				if t.Failed() {
					t.Fatal(name)
				}
			}
		})
	}
}

// hello is a ClientHello, as it would begin another handshake.
func hello() []byte {
	body := append([]byte{3, 3}, make([]byte, 32)...)        // version and random
	body = append(body, 0, 0, 2, 0xc0, 0x2b, 1, 0)           // no session, one suite, no compression
	return append([]byte{1, 0, 0, byte(len(body))}, body...) // the head of the message
}

// TestT5KeyUpdates: a client may change its keys now and then, also when the server has written nothing for longer than
// limits.write_stall, and its octets may come in as many records as there are.
func TestT5KeyUpdates(t *testing.T) {
	t.Parallel()
	const stall = 200 * time.Millisecond
	g := start(t, func(c *connector.Config) { c.Limits.WriteStall = stall })
	for _, over := range []string{"tls", "wss"} {
		r := g.secured(over, tls.VersionTLS13)
		for i := range 5 {
			<-time.After(stall + stall/4)
			id := string(rune('a' + i))
			octets := r.update(nil)
			for j, b := range []byte(message(over, "BEGIN\ntransaction:"+id+"\nreceipt:"+id+"\n\n\x00")) {
				octets = r.seal(octets, kindData, []byte{b})
				if j%8 < i/2 { // The answers come in a row, and a client takes no more than 16 so.
					octets = r.update(octets)
				}
			}
			if err := r.put(octets); err != nil {
				t.Fatal(err)
			}
			if got := r.hear("\x00\n"); !strings.Contains(got, "receipt-id:"+id+"\n") {
				t.Fatalf("%s: got %q", over, got)
			}
		}
	}
}

// TestT5KeyUpdatesThatNobodyReads: a client that has the server answer, by octets between its wishes for new keys, and reads no
// answer, ends after limits.write_stall. Others are served meanwhile.
func TestT5KeyUpdatesThatNobodyReads(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *connector.Config) {
		small(&c.Limits)
		c.Limits.WriteStall = time.Second
	})
	for _, over := range []string{"tls", "wss"} {
		r, other := g.secured(over, tls.VersionTLS13), g.login()
		if err := r.raw.SetDeadline(time.Now().Add(6 * rig.Patience)); err != nil { // To make the records takes its time.
			t.Fatal(err)
		}
		beat := message(over, "\n")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				var b []byte
				for range 50 {
					for range 16 { // As many in a row as are allowed.
						b = r.update(b)
					}
					b = r.seal(b, kindData, []byte(beat))
				}
				if r.put(b) != nil {
					return
				}
			}
		}()
		slowest := time.Duration(0)
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			default:
			}
			begun := time.Now()
			other.Alive()
			slowest = max(slowest, time.Since(begun))
		}
		if slowest > 10*time.Second {
			t.Errorf("over %s: somebody else was answered after %v", over, slowest)
		}
		rig.Holds(t, "end of the session", func() bool { return len(g.Connections()) == 1 })
		_ = other.Close()
		g.wantSlots()
	}
}

// TestSlowReadersOfLargeMessages: limits.write_stall is about sockets that accept nothing. One that takes a large message at its
// own speed gets all of it, over every transport.
func TestSlowReadersOfLargeMessages(t *testing.T) {
	t.Parallel()
	const (
		stall = 5 * time.Second // A busy machine may stop this process for a while.
		body  = 8 << 20
		step  = 128 << 10
		pause = 110 * time.Millisecond // So all of it takes about 7 s.
	)
	g := start(t, func(c *connector.Config) {
		c.Limits.WriteStall, c.Limits.Body = stall, body
	})
	for _, over := range []string{"tcp", "tls", "ws", "wss"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			g := g.of(t)
			c := g.slow(over, step, pause)
			c.Login()
			c.Subscribe("1", "/topic/"+over)
			from := g.login()
			begun := time.Now()
			from.Publish("/topic/"+over, strings.Repeat("x", body))
			if got := len(c.Next("MESSAGE").Body); got != body {
				t.Errorf("got %d octets", got)
			}
			if took := time.Since(begun); took < stall {
				t.Errorf("it took %v, which is no test", took)
			}
			c.Alive()
		})
	}
}

// slow is a client that takes a pause after each so many octets.
func (g *server) slow(over string, step int, pause time.Duration) *rig.Client {
	g.t.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) {
		nc, err := (&net.Dialer{LocalAddr: elsewhere(), Timeout: rig.Patience, Control: short}).Dial("tcp", g.At(over))
		if err != nil {
			return nil, err
		}
		return &slowReader{Conn: nc, step: step, pause: pause}, nil
	}
	trust := rig.Authority().Trust()
	trust.ServerName = "127.0.0.1"
	var conn *stompclient.Conn
	var err error
	switch over {
	case "tcp", "tls":
		var nc net.Conn
		if nc, err = dial(g.t.Context(), "", ""); err == nil && over == "tls" {
			nc = tls.Client(nc, trust)
		}
		conn = stompclient.NewConn(nc)
	default:
		client := &http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: trust, DisableKeepAlives: true}}
		conn, err = stompclient.DialWebSocketBy(client, over+"://"+g.At(over)+"/stomp", nil)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return rig.NewClient(g.t, conn)
}

// slowReader takes a pause after each step octets.
type slowReader struct {
	net.Conn
	step, read int
	pause      time.Duration
}

func (s *slowReader) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p[:min(len(p), s.step)])
	if s.read += n; s.read >= s.step {
		s.read = 0
		<-time.After(s.pause)
	}
	return n, err
}
