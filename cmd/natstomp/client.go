package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/connector/listen"
)

// dialTimeout bounds connecting up to CONNECTED.
const dialTimeout = 10 * time.Second

// errLost says that the server ended the connection without an ERROR.
var errLost = errors.New("the server closed the connection")

// refusal is the text of an ERROR.
type refusal struct{ text string }

func (e *refusal) Error() string { return "refused: " + e.text }

// client is a STOMP connection of a client command. A goroutine reads; another one sends heart-beats.
type client struct {
	nc      net.Conn
	in      *watched
	dec     *frame.Decoder
	version frame.Version
	frames  chan incoming
	closed  chan struct{}
	wg      sync.WaitGroup

	mu  sync.Mutex
	buf []byte // guarded by mu
}

// incoming is a frame, or why there are no more.
type incoming struct {
	frame.Frame
	err error
}

// dial connects to t and logs in.
func dial(ctx context.Context, t target, heartbeat time.Duration) (*client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	nc, err := t.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", t.url, err)
	}
	in := &watched{nc: nc}
	c := &client{
		nc: nc, in: in, dec: frame.NewDecoder(in, frame.Limits{}), version: frame.V10,
		frames: make(chan incoming), closed: make(chan struct{}),
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() }) // The error shows below.
	beats, err := c.connect(t, heartbeat)
	if !stop() {
		err = fmt.Errorf("no CONNECTED within %v", dialTimeout)
	}
	if err != nil {
		_ = nc.Close() // It may be closed already.
		return nil, fmt.Errorf("connecting to %s: %w", t.url, err)
	}
	c.wg.Go(c.read)
	if beats > 0 {
		c.wg.Go(func() { c.beat(beats) })
	}
	return c, nil
}

// open makes the connection.
func (t *target) open(ctx context.Context) (net.Conn, error) {
	dialer := &net.Dialer{}
	switch t.url.Scheme {
	case "tcp":
		return dialer.DialContext(ctx, "tcp", t.url.Host)
	case "tls":
		return (&tls.Dialer{NetDialer: dialer, Config: t.tls}).DialContext(ctx, "tcp", t.url.Host)
	}
	return listen.DialWebSocket(ctx, t.url.String(), t.tls)
}

// connect is the handshake. It returns the interval of heart-beats to send, 0 for none.
func (c *client) connect(t target, heartbeat time.Duration) (time.Duration, error) {
	ms := heartbeat.Milliseconds()
	headers := []frame.Header{
		header("accept-version", "1.0,1.1,1.2"), header("host", t.url.Hostname()), header("heart-beat", fmt.Sprintf("%d,%d", ms, ms)),
	}
	if t.login != "" {
		headers = append(headers, header("login", t.login))
	}
	if t.passcode != "" {
		headers = append(headers, header("passcode", t.passcode))
	}
	for _, h := range headers {
		if !frame.Representable(frame.V10, h.Name, h.Value) {
			return 0, fmt.Errorf("%s holds a line end or a NUL", h.Name)
		}
	}
	if err := c.send(frame.Frame{Command: frame.Connect, Headers: headers}); err != nil {
		return 0, err
	}
	var f frame.Frame
	if err := c.dec.Decode(&f); err != nil {
		return 0, lost(err)
	}
	if f.Command != frame.Connected {
		return 0, unexpected(&f)
	}
	if version, ok := frame.Negotiate(f.Get("version")); ok {
		c.version = version
	}
	c.dec.SetVersion(c.version)
	offered := frame.ParseHeartbeat(f.Get("heart-beat"))
	c.in.silence = 2 * interval(offered.Out, heartbeat)
	return interval(offered.In, heartbeat) / 2, nil
}

// interval is the effective one of one direction (STOMP 1.2, Heart-beating).
func interval(theirs int, ours time.Duration) time.Duration {
	if theirs == 0 || ours == 0 {
		return 0
	}
	return max(time.Duration(theirs)*time.Millisecond, ours)
}

// watched ends a read when the server is silent for too long.
type watched struct {
	nc      net.Conn
	silence time.Duration // 0: no limit
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	if w.silence > 0 {
		if err := w.nc.SetReadDeadline(time.Now().Add(w.silence)); err != nil {
			return 0, err
		}
	}
	n, err := w.nc.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("the server was silent for %v", w.silence)
	}
	return n, err
}

// read hands frames over until the connection or the command ends.
func (c *client) read() {
	for {
		var in incoming
		var f frame.Frame
		if in.err = c.dec.Decode(&f); in.err != nil {
			in.err = lost(in.err)
		} else {
			in.Frame = f.Clone()
		}
		select {
		case c.frames <- in:
		case <-c.closed:
			return
		}
		if in.err != nil {
			return
		}
	}
}

// beat sends an EOL at each interval.
func (c *client) beat(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.mu.Lock()
			_, err := c.nc.Write([]byte{'\n'})
			c.mu.Unlock()
			if err != nil {
				return // The reader sees it too.
			}
		case <-c.closed:
			return
		}
	}
}

// send writes a frame.
func (c *client) send(f frame.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = frame.Append(c.buf[:0], c.version, &f)
	_, err := c.nc.Write(c.buf)
	return err
}

// receive returns the next frame. An ERROR is an error; so is the end of ctx.
func (c *client) receive(ctx context.Context) (*frame.Frame, error) {
	select {
	case in := <-c.frames:
		switch {
		case in.err != nil:
			return nil, in.err
		case in.Command == frame.Error:
			return nil, unexpected(&in.Frame)
		}
		return &in.Frame, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// exchange sends a frame with a receipt and waits for that; what comes before it goes to other, if that is not nil. What
// keeps a frame from being sent is told by what the server sends.
func (c *client) exchange(ctx context.Context, f frame.Frame, receipt string, other func(*frame.Frame)) error {
	f.Headers = append(f.Headers, header("receipt", receipt))
	unsent := c.send(f)
	for {
		got, err := c.receive(ctx)
		switch {
		case err != nil && unsent != nil && errors.Is(err, errLost):
			return unsent
		case err != nil:
			return err
		case got.Command == frame.Receipt && got.Get("receipt-id") == receipt:
			return nil
		case other != nil:
			other(got)
		}
	}
}

// leave disconnects and waits until the server has done all that it was sent.
func (c *client) leave(ctx context.Context) error {
	err := c.exchange(ctx, frame.Frame{Command: frame.Disconnect}, "bye", nil)
	if err != nil {
		return fmt.Errorf("disconnecting: %w", err)
	}
	return nil
}

// close ends the connection and its goroutines.
func (c *client) close() {
	close(c.closed)
	_ = c.nc.Close() // It may be closed already.
	c.wg.Wait()
}

// lost says in the words of a user that a connection ended.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return errLost
	}
	return err
}

// unexpected is the error of a frame that is no answer.
func unexpected(f *frame.Frame) error {
	if f.Command == frame.Error {
		return &refusal{f.Get("message")}
	}
	return fmt.Errorf("the server sent %s", f.Command)
}
