package stompclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// DialWebSocket opens a WebSocket to a ws: URL, offering the three STOMP subprotocols, and sends nothing. Each Write
// becomes one text message where it is valid UTF-8, else one binary message. Reading checks that each message holds one
// frame, or one heart-beat, and has the kind that its octets ask for.
func DialWebSocket(url string) (*Conn, error) { return DialWebSocketBy(nil, url, nil) }

// DialWebSocketBy is DialWebSocket through an HTTP client, such as one that trusts the server of a wss: URL, and with
// further headers in the handshake. nil is the default client.
func DialWebSocketBy(client *http.Client, url string, header http.Header) (*Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{ //nolint:bodyclose // There is none to close after the handshake.
		HTTPClient: client, HTTPHeader: header,
		Subprotocols: []string{"v10.stomp", "v11.stomp", "v12.stomp"},
	})
	if err != nil {
		return nil, err
	}
	if got := ws.Subprotocol(); got != "v12.stomp" {
		_ = ws.CloseNow()
		return nil, fmt.Errorf("subprotocol %q was chosen, want the highest", got)
	}
	ws.SetReadLimit(-1)
	return NewConn(newSocket(ws)), nil
}

// socket is a WebSocket as a net.Conn.
type socket struct {
	net.Conn // the reading end of a pipe
	feed     net.Conn
	ws       *websocket.Conn
	pump     sync.WaitGroup

	mu    sync.Mutex
	fault error // guarded by mu: a message that no server may send
}

func newSocket(ws *websocket.Conn) *socket {
	s := &socket{ws: ws}
	s.Conn, s.feed = net.Pipe()
	s.pump.Go(s.receive)
	return s
}

func (s *socket) receive() {
	defer s.feed.Close()
	for {
		kind, message, err := s.ws.Read(context.Background())
		if err != nil {
			return
		}
		if err := checkMessage(kind, message); err != nil {
			s.mu.Lock()
			s.fault = err
			s.mu.Unlock()
			return
		}
		if _, err := s.feed.Write(message); err != nil {
			return
		}
	}
}

func checkMessage(kind websocket.MessageType, message []byte) error {
	if !bytes.Equal(message, []byte("\n")) && !bytes.HasSuffix(message, []byte("\x00\n")) {
		return wiref("a message is neither a frame nor a heart-beat: %q", message)
	}
	if text := kind == websocket.MessageText; text != utf8.Valid(message) {
		return wiref("message %q came as %v", message, kind)
	}
	return nil
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.fault != nil {
			return n, s.fault
		}
	}
	return n, err
}

// Write implements net.Conn.
func (s *socket) Write(p []byte) (int, error) {
	kind := websocket.MessageBinary
	if utf8.Valid(p) {
		kind = websocket.MessageText
	}
	if err := s.send(kind, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *socket) send(kind websocket.MessageType, p []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.ws.Write(ctx, kind, p)
}

// SetReadDeadline implements net.Conn. Behind the end of the connection it does nothing: Read says what it is.
func (s *socket) SetReadDeadline(t time.Time) error {
	if err := s.Conn.SetReadDeadline(t); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

// SetWriteDeadline implements net.Conn; Write has a time limit of its own.
func (s *socket) SetWriteDeadline(time.Time) error { return nil }

// Close implements net.Conn, without a closing handshake.
func (s *socket) Close() error {
	err := s.ws.CloseNow()
	_ = s.Conn.Close()
	s.pump.Wait()
	return err
}

// WriteKind writes octets as they are: on a WebSocket as one message, binary or text, whatever they hold.
func (c *Conn) WriteKind(binary bool, p []byte) error {
	s, ok := c.nc.(*socket)
	if !ok {
		return c.Write(p)
	}
	kind := websocket.MessageText
	if binary {
		kind = websocket.MessageBinary
	}
	return s.send(kind, p)
}
