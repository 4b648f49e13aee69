package identity_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
)

const (
	final      = 0x80 // the last fragment of a message
	compressed = 0x40 // RSV1, permessage-deflate (RFC 7692, 6)
	text       = 0x1
	closing    = 0x8
)

// socket is a WebSocket whose frames a test writes itself.
type socket struct {
	net.Conn
	t  *testing.T
	br *bufio.Reader
}

// socket shakes hands with these further headers, and returns those of the answer.
func (g *server) socket(headers ...string) (*socket, http.Header) {
	g.t.Helper()
	nc, err := net.Dial("tcp", g.At("ws"))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(rig.Patience)); err != nil {
		g.t.Fatal(err)
	}
	lines := append([]string{
		"GET /stomp HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
	}, headers...)
	if _, err := io.WriteString(nc, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		g.t.Fatal(err)
	}
	s := &socket{nc, g.t, bufio.NewReader(nc)}
	resp, err := http.ReadResponse(s.br, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		g.t.Fatalf("got %v, %v", resp, err)
	}
	_ = resp.Body.Close() // It has none.
	return s, resp.Header
}

// appendFrame appends a frame whose mask changes nothing.
func appendFrame(b []byte, first byte, payload []byte) []byte {
	b = append(b, first)
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

// frame reads one frame.
func (s *socket) frame() (first byte, payload []byte) {
	s.t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(s.br, head); err != nil {
		s.t.Fatal(err)
	}
	n := int(head[1])
	if n == 126 {
		long := make([]byte, 2)
		if _, err := io.ReadFull(s.br, long); err != nil {
			s.t.Fatal(err)
		}
		n = int(binary.BigEndian.Uint16(long))
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(s.br, payload); err != nil {
		s.t.Fatal(err)
	}
	return head[0], payload
}

// ended wants no frames but the close of the connection, or one, with a code.
func (s *socket) ended(code uint16) {
	s.t.Helper()
	first, payload := s.frame()
	if first != final|closing || len(payload) < 2 || binary.BigEndian.Uint16(payload) != code {
		s.t.Errorf("got the frame %x %q, want a close with %d", first, payload, code)
	}
}

// heap is what the process holds, and what it has ever allocated.
func heap() (held, ever uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.TotalAlloc
}

// zeros are 256 MiB of them, compressed to 261 KB.
func zeros(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	one, ends := make([]byte, 1<<20), []int{}
	for range 2 { // The second MiB refers to the one before, and so can all others.
		_, err := w.Write(one)
		if err = errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, packed.Len())
	}
	all := packed.Bytes()
	all = append(all[:ends[0]:ends[0]], bytes.Repeat(all[ends[0]:], 255)...)
	if n, err := io.Copy(io.Discard, io.LimitReader(flate.NewReader(bytes.NewReader(all)), 3<<20)); n != 3<<20 {
		t.Fatalf("unpacked %d octets, %v", n, err)
	}
	return all
}

// TestDeflateBomb (W3): compression is not agreed on, whatever is offered, and 256 MiB that come as 261 KB all the same end
// the connection before anything is unpacked.
func TestDeflateBomb(t *testing.T) {
	g := start(t, nil)
	bomb := zeros(t)
	for _, offer := range []string{"permessage-deflate", "permessage-deflate; client_max_window_bits; server_no_context_takeover", "x-webkit-deflate-frame", ""} {
		var headers []string
		if offer != "" {
			headers = []string{"Sec-WebSocket-Extensions: " + offer}
		}
		s, answer := g.socket(headers...)
		if got := answer.Get("Sec-WebSocket-Extensions"); got != "" {
			t.Errorf("%q was offered, %q agreed on", offer, got)
		}
		message := appendFrame(nil, final|compressed|text, bomb)
		_, before := heap()
		_, _ = s.Write(message) // The server need not take all of it.
		s.ended(1002)
		if _, after := heap(); after-before > 2<<20 {
			t.Errorf("%q: the bomb had %d octets allocated", offer, after-before)
		}
	}
}

// TestOneByteFragments (W4): a message of 131,000 fragments of one octet, without an end, pins no more than what it says; a
// limit ends it as it ends what comes in one piece.
func TestOneByteFragments(t *testing.T) {
	const fragments = 131_000
	g := start(t, func(c *connector.Config) { c.Limits.Body = fragments + 1_000 })
	crumbs := func(begin string, n int) []byte {
		b := appendFrame(nil, text, []byte(begin))
		for range n {
			b = appendFrame(b, 0, []byte("x"))
		}
		return b
	}
	const connect = "CONNECT\naccept-version:1.2\n\n\x00"
	open, _ := g.socket()
	before, _ := heap()
	if _, err := open.Write(crumbs(connect+"SEND\ndestination:/topic/a\n\n", fragments)); err != nil {
		t.Fatal(err)
	}
	if _, payload := open.frame(); !bytes.HasPrefix(payload, []byte("CONNECTED\n")) {
		t.Fatalf("got %q", payload)
	}
	rig.Holds(t, "all fragments", func() bool {
		all := g.Connections()
		return len(all) == 1 && all[0].OctetsIn >= fragments
	})
	if after, _ := heap(); after > before+1<<20 {
		t.Errorf("%d fragments hold %d octets", fragments, after-before)
	}
	for begin, want := range map[string]string{
		"CONNECT\nlogin:":  "limits.header_line is 8192",
		"CONNECT\na:b\n\n": "limits.header_line",
		"":                 "no command",
		connect + "SEND\ndestination:/topic/a\n\n": "limits.body is 132000",
	} {
		s, _ := g.socket()
		if strings.HasPrefix(begin, connect) {
			go func() { _, _ = s.Write(crumbs(begin, fragments+2_000)) }() // Until the server has enough.
			s.frame()
		} else {
			go func() { _, _ = s.Write(crumbs(begin, 20_000)) }()
		}
		if _, payload := s.frame(); !bytes.HasPrefix(payload, []byte("ERROR\n")) || !bytes.Contains(payload, []byte(want)) {
			t.Errorf("%q: got %q, want the ERROR %s", begin, payload, want)
		}
	}
	if _, err := open.Write(appendFrame(nil, final, []byte("\x00"))); err != nil { // The end comes after all.
		t.Fatal(err)
	}
	if _, err := open.Write(appendFrame(nil, final|text, []byte("DISCONNECT\nreceipt:r\n\n\x00"))); err != nil {
		t.Fatal(err)
	}
	if _, payload := open.frame(); !bytes.HasPrefix(payload, []byte("RECEIPT\n")) {
		t.Errorf("got %q", payload)
	}
}

// TestFragmentsBeforeConnectEnd: a message that is never finished does not outlive limits.connect_timeout.
func TestFragmentsBeforeConnectEnd(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *connector.Config) { c.Limits.ConnectTimeout = 3 * time.Second })
	s, _ := g.socket()
	begun := time.Now()
	dripping := make(chan struct{})
	go func() {
		defer close(dripping)
		next := appendFrame(nil, text, []byte("C"))
		for _, octet := range []byte("ONNECT\nlogin:" + strings.Repeat("x", 1_000)) {
			if _, err := s.Write(next); err != nil {
				return
			}
			next = appendFrame(nil, 0, []byte{octet})
			<-time.After(10 * time.Millisecond)
		}
	}()
	if _, payload := s.frame(); !bytes.Contains(payload, []byte("limits.connect_timeout")) {
		t.Errorf("got %q", payload)
	}
	if took := time.Since(begun); took > 9*time.Second { // Octets come for longer.
		t.Errorf("ended after %v", took)
	}
	_ = s.Close()
	<-dripping
}
