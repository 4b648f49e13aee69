package field_test

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

// socket is a WebSocket of the test.
type socket struct {
	*websocket.Conn
	t *testing.T
}

func dialSocket(t *testing.T, srv *testserver.Server, subprotocols ...string) socket {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), srv.WebSocketURL, &websocket.DialOptions{Subprotocols: subprotocols})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() }) // It may be closed already.
	ws.SetReadLimit(-1)
	return socket{ws, t}
}

func (s socket) text(messages ...string) {
	s.t.Helper()
	for _, m := range messages {
		if err := s.Write(s.t.Context(), websocket.MessageText, []byte(m)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s socket) binary(messages ...string) {
	s.t.Helper()
	for _, m := range messages {
		if err := s.Write(s.t.Context(), websocket.MessageBinary, []byte(m)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// next reads one message, which must be one frame that begins so.
func (s socket) next(kind websocket.MessageType, begin string) string {
	s.t.Helper()
	got, message, err := s.Read(s.t.Context())
	if err != nil || got != kind || !strings.HasPrefix(string(message), begin) || !bytes.HasSuffix(message, []byte("\x00\n")) {
		s.t.Fatalf("got %s %.200q, %v, want one whole frame that begins with %q", got, message, err, begin)
	}
	return string(message)
}

// TestReportSubprotocols holds Q7, Q8, FR-125, FR-126 and FR-129: of the names that are offered, in whatever order and
// among whatever others, exactly the highest of ours is echoed, and none where none is ours; the session opens in all cases.
func TestReportSubprotocols(t *testing.T) {
	srv := testserver.Start(t)
	for _, tt := range []struct {
		report  string
		offered []string // header lines
		want    []string
	}{
		{"Q7", []string{"v10.stomp, v11.stomp, v12.stomp"}, []string{"v12.stomp"}},
		{"Q7", []string{"v12.stomp, v10.stomp"}, []string{"v12.stomp"}},
		{"FR-125", []string{"v10.stomp, v11.stomp"}, []string{"v11.stomp"}},
		{"FR-125", []string{"v10.stomp", "v11.stomp"}, []string{"v11.stomp"}},
		{"FR-126", []string{"v10.stomp"}, []string{"v10.stomp"}},
		{"FR-126", []string{"mqtt, v9.stomp, v11.stomp, v13.stomp"}, []string{"v11.stomp"}},
		{"FR-129", []string{"wss, ws, https, http"}, nil},
		{"Q8", nil, nil},
	} {
		conn, resp := upgrade(t, srv, tt.offered)
		if got := resp.Header.Values("Sec-WebSocket-Protocol"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: offered %q: got %q, want %q", tt.report, tt.offered, got, tt.want)
		}
		if got := resp.Header.Values("Sec-WebSocket-Extensions"); len(got) > 0 {
			t.Errorf("%s: got the extensions %q, want none", tt.report, got)
		}
		_ = conn.Close() // Its end is not part of the test.
	}
	// What was echoed does not bind the version (Q7): accept-version does.
	for offered, version := range map[string]string{"v10.stomp": "1.2", "v12.stomp": "1.0", "": "1.1"} {
		ws := dialSocket(t, srv, strings.Fields(offered)...)
		ws.text("CONNECT\naccept-version:" + version + "\n\n\x00")
		if got := ws.next(websocket.MessageText, "CONNECTED\n"); !strings.Contains(got, "\nversion:"+version+"\n") {
			t.Errorf("offered %q: got %q, want version %s", offered, got, version)
		}
	}
}

// upgrade makes a handshake with those Sec-WebSocket-Protocol lines.
func upgrade(t *testing.T, srv *testserver.Server, offered []string) (net.Conn, *http.Response) {
	t.Helper()
	at, err := url.Parse(srv.WebSocketURL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	text := "GET " + at.Path + " HTTP/1.1\r\nHost: " + at.Host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n"
	for _, line := range offered {
		text += "Sec-WebSocket-Protocol: " + line + "\r\n"
	}
	if _, err := conn.Write([]byte(text + "\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(rig.Patience)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close() // It has none.
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("offered %q: got %s, want an open WebSocket", offered, resp.Status)
	}
	return conn, resp
}

// TestReportMessages holds Q12, FR-130 and FR-131: text and binary messages may alternate on one connection; a frame may
// come in any number of messages and a message may hold any number of frames; what goes out is one frame per message,
// however large, as text where it is UTF-8 and as binary where it is not.
func TestReportMessages(t *testing.T) {
	srv := testserver.Start(t)
	ws := dialSocket(t, srv, "v12.stomp")
	// FR-130: who cannot end a text message with a NUL sends binary ones.
	ws.binary("CONNECT\naccept-version:1.2\n\n\x00")
	ws.next(websocket.MessageText, "CONNECTED\n")
	ws.text("SUBSCRIBE\nid:1\ndestination:/topic/ws\n\n\x00")
	ws.binary("SEND\ndestination:/topic/ws\ncontent-length:3\n\n\xff\x00\xfe\x00")
	if got := ws.next(websocket.MessageBinary, "MESSAGE\n"); !strings.HasSuffix(got, "\n\n\xff\x00\xfe\x00\n") {
		t.Errorf("got %q", got)
	}
	ws.text("SEND\ndestination:/topic/ws\n\nü\x00")
	if got := ws.next(websocket.MessageText, "MESSAGE\n"); !strings.HasSuffix(got, "\n\nü\x00\n") {
		t.Errorf("got %q", got)
	}
	// FR-131: a large frame in pieces, kinds mixed, cut within a character, with empty messages between.
	large := strings.Repeat("1 MiB of \u4e16\u754c\n", 1<<20/16)
	frame := "SEND\ndestination:/topic/ws\n\n" + large + "\x00\n"
	ws.text(frame[:10])
	ws.binary(frame[10:100_001], "")
	ws.binary(frame[100_001:700_002], frame[700_002:])
	if got := ws.next(websocket.MessageText, "MESSAGE\n"); !strings.HasSuffix(got, "\n\n"+large+"\x00\n") {
		t.Errorf("got %d octets, want the body of %d in one message", len(got), len(large))
	}
	ws.text(strings.Repeat("SEND\ndestination:/topic/ws\n\nx\x00", 50) + "\nSEND\ndestination:/topic/ws\n\nl")
	ws.text("ast\x00")
	for range 50 {
		ws.next(websocket.MessageText, "MESSAGE\n")
	}
	if got := ws.next(websocket.MessageText, "MESSAGE\n"); !strings.HasSuffix(got, "\n\nlast\x00\n") {
		t.Errorf("got %q", got)
	}
}

// TestReportCloseReason holds FR-066 over WebSocket: an ACK that is refused is answered by an ERROR that says why, and
// the WebSocket closes with a status and a reason, not as if all were well.
func TestReportCloseReason(t *testing.T) {
	srv := testserver.Start(t)
	ws := dialSocket(t, srv, "v12.stomp")
	ws.text("CONNECT\naccept-version:1.2\n\n\x00", "ACK\nid:no-such\n\n\x00")
	ws.next(websocket.MessageText, "CONNECTED\n")
	if got := ws.next(websocket.MessageText, "ERROR\n"); !strings.Contains(got, "no-such") {
		t.Errorf("got %q, want the id named", got)
	}
	_, _, err := ws.Read(t.Context())
	if got := websocket.CloseStatus(err); got != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "ERROR") {
		t.Errorf("got %v, want a policy violation with a reason", err)
	}
}
