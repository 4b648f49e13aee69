package stompclient

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Conn is one connection. One goroutine may read while another writes.
type Conn struct {
	nc net.Conn
	br *bufio.Reader

	// Owned by the reading goroutine, except that version is set before the first frame of that version is sent.
	version string
	beats   int
}

// Dial opens a TCP connection to addr and sends nothing.
func Dial(addr string) (*Conn, error) {
	nc, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, err
	}
	return NewConn(nc), nil
}

// NewConn returns a Conn on an open connection, which it owns from then on.
func NewConn(nc net.Conn) *Conn {
	return &Conn{nc: nc, br: bufio.NewReader(nc)}
}

// NetConn returns the underlying connection, for socket options.
func (c *Conn) NetConn() net.Conn { return c.nc }

// Version returns the version of CONNECTED, or "" before it.
func (c *Conn) Version() string { return c.version }

// Connect sends CONNECT with the given accept-version (none if it is "") and headers, and reads CONNECTED. Any other
// answer within 10 s, or none, is an error.
func (c *Conn) Connect(acceptVersion string, nameValue ...string) (Frame, error) {
	f := New("CONNECT", nameValue...)
	if acceptVersion != "" {
		f.Headers = append(f.Headers, Header{"accept-version", acceptVersion})
	}
	if err := c.Send(f); err != nil {
		return Frame{}, err
	}
	return c.Expect("CONNECTED", 10*time.Second)
}

// Send writes the frame in the version of the connection, as Encode has it, in one write.
func (c *Conn) Send(f Frame) error { return c.Write(f.Encode(c.version)) }

// Write writes octets as they are, in one write that may last 10 s.
func (c *Conn) Write(p []byte) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	_, err := c.nc.Write(p)
	return err
}

// Confirm sends f with a receipt and waits for it. Anything else that comes on the connection before it is an error.
func (c *Conn) Confirm(f Frame, timeout time.Duration) error {
	f.Headers = append(f.Headers[:len(f.Headers):len(f.Headers)], Header{"receipt", "confirmed"})
	if err := c.Send(f); err != nil {
		return fmt.Errorf("sending %s: %w", f, err)
	}
	got, err := c.Expect("RECEIPT", timeout)
	if err == nil && got.Get("receipt-id") != "confirmed" {
		err = fmt.Errorf("got %s", got)
	}
	if err != nil {
		return fmt.Errorf("want the receipt of %s: %w", f, err)
	}
	return nil
}

// Expect is Read for a frame of that command. Another one is an error, and returned.
func (c *Conn) Expect(command string, timeout time.Duration) (Frame, error) {
	f, err := c.Read(timeout)
	switch {
	case err != nil:
		err = fmt.Errorf("want %s: %w", command, err)
	case f.Command != command:
		err = fmt.Errorf("got %s, want %s", f, command)
	}
	return f, err
}

// Read returns the next frame, which must be complete within the timeout, and counts the heart-beats before it. The
// error wraps os.ErrDeadlineExceeded on a timeout, ErrWire on octets that no server may send, and is io.EOF exactly
// when the peer closed between frames.
func (c *Conn) Read(timeout time.Duration) (Frame, error) {
	if err := c.nc.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return Frame{}, err
	}
	for {
		b, err := c.br.ReadByte()
		if err != nil {
			return Frame{}, err
		}
		if b == '\n' {
			c.beats++
			continue
		}
		if err := c.br.UnreadByte(); err != nil {
			return Frame{}, err
		}
		f, err := readFrame(c.br, c.version)
		if err == nil && f.Command == "CONNECTED" {
			c.version = f.Get("version")
		}
		return f, err
	}
}

// ReadBeat waits for one heart-beat. A frame, the end of the connection or silence beyond the timeout is an error.
func (c *Conn) ReadBeat(timeout time.Duration) error {
	if err := c.nc.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	b, err := c.br.ReadByte()
	if err != nil {
		return err
	}
	if b != '\n' {
		return fmt.Errorf("octet %q instead of a heart-beat", b)
	}
	c.beats++
	return nil
}

// Beats returns how many heart-beats were read so far: EOLs between frames beyond the one that ends each frame.
func (c *Conn) Beats() int { return c.beats }

// ExpectClose waits until the peer closes. A frame or a timeout is an error; a reset of the connection is not.
func (c *Conn) ExpectClose(timeout time.Duration) error {
	f, err := c.Read(timeout)
	var ne net.Error
	switch {
	case err == nil:
		return fmt.Errorf("%s instead of the end of the connection", f)
	case errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &ne) && ne.Timeout(), errors.Is(err, ErrWire):
		return fmt.Errorf("instead of the end of the connection: %w", err)
	default:
		return nil
	}
}

// Close closes the socket without DISCONNECT.
func (c *Conn) Close() error { return c.nc.Close() }

// Reset closes the socket such that the peer sees a reset instead of an orderly end.
func (c *Conn) Reset() error {
	if tcp, ok := c.nc.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			return err
		}
	}
	return c.nc.Close()
}
