package listen

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Stall returns a listener whose connections are closed when a write finds that the peer has accepted nothing for so long,
// and owns l. It goes below TLS and WebSocket, where a deadline cannot do that: what ends a write there ends the connection,
// however much of it the peer has accepted by then, and TLS writes of its own accord besides.
func Stall(l net.Listener, stall time.Duration) net.Listener { return &stallListener{l, stall} }

type stallListener struct {
	net.Listener
	stall time.Duration
}

// Accept implements net.Listener.
func (l *stallListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stallConn{Conn: nc, stall: l.stall}, nil
}

// stallConn is a connection of a stallListener.
type stallConn struct {
	net.Conn
	stall time.Duration

	mu    sync.Mutex
	until time.Time // guarded by mu; the deadline of writes, if there is one
}

// Stalls reports whether a connection, or what it runs on, comes from a listener of Stall.
func Stalls(nc net.Conn) bool {
	for {
		switch c := nc.(type) {
		case *stallConn:
			return true
		case *webSocket:
			nc = c.raw
		case *tls.Conn:
			nc = c.NetConn()
		default:
			return false
		}
	}
}

// Write implements net.Conn. The error of a stall is os.ErrDeadlineExceeded.
func (c *stallConn) Write(p []byte) (written int, err error) {
	for {
		if err := c.arm(); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[written:])
		written += n
		switch {
		case err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || c.late():
			return written, err
		case n == 0:
			_ = c.Close() // It is of no use any more.
			return written, err
		}
	}
}

func (c *stallConn) arm() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	deadline := time.Now().Add(c.stall)
	if !c.until.IsZero() && c.until.Before(deadline) {
		deadline = c.until
	}
	return c.Conn.SetWriteDeadline(deadline)
}

// late reports whether the deadline of writes has passed.
func (c *stallConn) late() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.until.IsZero() && !time.Now().Before(c.until)
}

// SetDeadline implements net.Conn.
func (c *stallConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetWriteDeadline implements net.Conn.
func (c *stallConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	if t.IsZero() {
		return nil // The next write has its own.
	}
	return c.Conn.SetWriteDeadline(t)
}

// CloseWrite ends what is written, where the connection below can do that.
func (c *stallConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NetConn returns the connection below, for socket options only.
func (c *stallConn) NetConn() net.Conn { return c.Conn }
