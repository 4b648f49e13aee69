package listen

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// subprotocols are the names that are echoed, the highest version first.
var subprotocols = []string{"v12.stomp", "v11.stomp", "v10.stomp"}

const (
	// closeTime bounds the closing handshake.
	closeTime = time.Second
	// maxReason is the octets of a close frame's reason (RFC 6455, 5.5).
	maxReason = 123
)

// Upgrade answers a WebSocket handshake and returns the connection as a net.Conn: Read gives the octets of all messages
// one after the other, Write sends each STOMP frame as one message, as text where its octets are valid UTF-8, else as
// binary. origins is as in OriginAllowed. On an error the request has been answered. The caller closes the connection.
func Upgrade(w http.ResponseWriter, r *http.Request, origins []string) (net.Conn, error) {
	if !OriginAllowed(r, origins) {
		http.Error(w, "origin not allowed: see listeners.ws.origins", http.StatusForbidden)
		return nil, errors.New("origin not allowed")
	}
	raw := &hijacker{ResponseWriter: w}
	ws, err := websocket.Accept(raw, r, &websocket.AcceptOptions{
		Subprotocols:       subprotocols,
		InsecureSkipVerify: true, // Checked above, by our own rule.
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1) // The frames in a message have limits, the message has none.
	return newWebSocket(ws, raw.conn), nil
}

// hijacker keeps the connection that the handshake takes over.
type hijacker struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}

// webSocket is a net.Conn on a WebSocket. A goroutine of its own reads, so that a read deadline ends the read and not
// the connection.
type webSocket struct {
	ws            *websocket.Conn
	raw           net.Conn // what the WebSocket runs on
	local, remote net.Conn // octets of incoming messages: the reader writes into local, Read reads from remote
	reader        sync.WaitGroup
	closeOnce     sync.Once

	mu       sync.Mutex
	deadline time.Time // guarded by mu; of writes
	partial  []byte    // owned by the writer: a frame whose end is not written yet
}

var _ net.Conn = (*webSocket)(nil)

func newWebSocket(ws *websocket.Conn, raw net.Conn) *webSocket {
	c := &webSocket{ws: ws, raw: raw}
	c.local, c.remote = net.Pipe()
	c.reader.Go(c.pump)
	return c
}

// pump passes incoming messages on until the peer or Close ends it.
func (c *webSocket) pump() {
	defer c.local.Close() // A pipe's close does not fail.
	buf := make([]byte, 4<<10)
	for {
		_, message, err := c.ws.Reader(context.Background())
		if err != nil {
			return
		}
		if _, err := io.CopyBuffer(onlyWriter{c.local}, onlyReader{message}, buf); err != nil {
			return
		}
	}
}

// onlyReader and onlyWriter hide everything else, so that CopyBuffer uses the buffer.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// Read implements net.Conn. The end of the connection, however it came, is io.EOF.
func (c *webSocket) Read(p []byte) (int, error) {
	n, err := c.remote.Read(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn. It is for one goroutine at a time. A frame that p does not end is kept until it ends.
func (c *webSocket) Write(p []byte) (int, error) {
	c.partial = append(c.partial, p...)
	rest := c.partial
	for len(rest) > 0 {
		n := frameEnd(rest)
		if n == 0 {
			break
		}
		if err := c.send(rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	c.partial = append(c.partial[:0], rest...)
	if len(c.partial) == 0 && cap(c.partial) > 64<<10 {
		c.partial = nil
	}
	return len(p), nil
}

func (c *webSocket) send(frame []byte) error {
	kind := websocket.MessageBinary
	if utf8.Valid(frame) {
		kind = websocket.MessageText
	}
	ctx, cancel := c.writeContext()
	defer cancel()
	err := c.ws.Write(ctx, kind, frame)
	if err != nil && ctx.Err() != nil {
		return os.ErrDeadlineExceeded
	}
	return err
}

func (c *webSocket) writeContext() (context.Context, context.CancelFunc) {
	c.mu.Lock()
	deadline := c.deadline
	c.mu.Unlock()
	if deadline.IsZero() {
		return context.WithCancel(context.Background())
	}
	return context.WithDeadline(context.Background(), deadline)
}

// CloseReason sends a close frame with a policy violation and the text, as much of it as fits, and lets Read go on.
func (c *webSocket) CloseReason(text string) {
	for len(text) > maxReason || !utf8.ValidString(text) {
		text = text[:min(len(text), maxReason+1)-1]
	}
	c.shake(websocket.StatusPolicyViolation, text)
}

// shake starts the closing handshake once; it does not wait for the peer.
func (c *webSocket) shake(code websocket.StatusCode, text string) {
	c.closeOnce.Do(func() {
		c.reader.Go(func() {
			_ = c.ws.Close(code, text) // Ends with the peer, with Close, or after its own time-out.
		})
	})
}

// Close implements net.Conn: it closes with the handshake if the peer takes part within a second.
func (c *webSocket) Close() error {
	c.shake(websocket.StatusNormalClosure, "")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.reader.Wait()
	}()
	drained := make(chan struct{})
	go func() { // The reader must not wait for a session that reads no more.
		defer close(drained)
		_ = c.remote.SetReadDeadline(time.Time{})
		_, _ = io.Copy(io.Discard, c.remote) // Ends with the pipe.
	}()
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	err := c.Abort()
	<-ended
	_ = c.remote.Close() // A pipe's close does not fail.
	<-drained
	return err
}

// Abort closes the connection at once, without the handshake. Close must follow all the same.
func (c *webSocket) Abort() error {
	err := Abort(c.raw)
	_ = c.local.Close() // A pipe's close does not fail.
	return err
}

// Secure says whether TLS carries the WebSocket.
func (c *webSocket) Secure() bool {
	_, ok := c.raw.(*tls.Conn)
	return ok
}

// LocalAddr implements net.Conn.
func (c *webSocket) LocalAddr() net.Addr { return c.raw.LocalAddr() }

// RemoteAddr implements net.Conn.
func (c *webSocket) RemoteAddr() net.Addr { return c.raw.RemoteAddr() }

// NetConn returns what the WebSocket runs on, for socket options only.
func (c *webSocket) NetConn() net.Conn { return c.raw }

// SetDeadline implements net.Conn.
func (c *webSocket) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn. A read that ends by it leaves the connection usable.
func (c *webSocket) SetReadDeadline(t time.Time) error { return c.remote.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn. A write that ends by it ends the connection.
func (c *webSocket) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline = t
	c.mu.Unlock()
	return nil
}
