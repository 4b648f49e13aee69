package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/natstomp/natstomp/connector/frame"
)

// ErrStopped says that the Server does not run: before Start, and from Shutdown on.
var ErrStopped = errors.New("the server does not run")

// errCut says that a session ended without a word.
var errCut = errors.New("the session was cut")

// why is ErrStopped where that is behind the end of a session.
func (s *Server) why(err error) error {
	if s.stopping.Load() && (errors.Is(err, errCut) || errors.Is(err, errShutdown)) {
		return ErrStopped
	}
	return err
}

// localEnd is the server's end of a session without a socket, which the host program has. It gets what any client gets,
// by the same way: destinations, headers, acknowledgement and faults mean the same for both. A pipe has no room: so that
// the two ends never wait for each other, each direction has its own, and the session closes the one that it reads no
// more.
type localEnd struct {
	net.Conn          // to write to
	in       net.Conn // to read from
}

// Read implements net.Conn.
func (l *localEnd) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
	}
	return n, err
}

// SetReadDeadline implements net.Conn.
func (l *localEnd) SetReadDeadline(t time.Time) error { return l.in.SetReadDeadline(t) }

// SetWriteDeadline heeds a time that has passed only, which ends a write: limits.write_stall finds sockets that nobody
// reads, but a listener may take its time.
func (l *localEnd) SetWriteDeadline(t time.Time) error {
	if t.After(time.Now()) {
		return nil
	}
	return l.Conn.SetWriteDeadline(t)
}

// Close implements net.Conn.
func (l *localEnd) Close() error { return errors.Join(l.in.Close(), l.Conn.Close()) }

// deafen ends every write of the program, which then reads why.
func (l *localEnd) deafen() { _ = l.in.Close() } // A pipe's close does not fail.

// programEnd is the other one. Reading and writing are for one goroutine each.
type programEnd struct {
	out, in net.Conn
	dec     *frame.Decoder
	frame   frame.Frame
	buf     []byte
}

// openLocal makes a session and connects it.
func (s *Server) openLocal() (*programEnd, error) {
	if !s.running() {
		return nil, ErrStopped
	}
	requests, requested := net.Pipe()
	answered, answers := net.Pipe()
	s.admit(&localEnd{Conn: answers, in: requested}, "")
	l := &programEnd{out: requests, in: answered, dec: frame.NewDecoder(answered, frame.Limits{})}
	connect := frame.Frame{Command: frame.Connect, Headers: []frame.Header{header("accept-version", "1.2")}}
	if err := l.exchange(&connect, frame.Connected); err != nil {
		l.close()
		return nil, s.why(err)
	}
	l.dec.SetVersion(frame.V12)
	return l, nil
}

func header(name, value string) frame.Header {
	return frame.Header{Name: []byte(name), Value: []byte(value)}
}

// programFrame is a frame with the headers that the program gave; those that belong to the session are refused.
func programFrame(c frame.Command, own []frame.Header, given map[string]string, body []byte) (*frame.Frame, error) {
	f := &frame.Frame{Command: c, Headers: own, Body: body}
	for name, value := range given {
		switch name {
		case "destination", "id", "receipt", "transaction", "ack", "content-length":
			return nil, fmt.Errorf("header %s cannot be given", name)
		}
		if !frame.Representable(frame.V12, name, value) {
			return nil, fmt.Errorf("header %q cannot be written: it has no name, or a NUL", name)
		}
		f.Headers = append(f.Headers, header(name, value))
	}
	return f, nil
}

// send writes a frame.
func (l *programEnd) send(f *frame.Frame) error {
	l.buf = frame.Append(l.buf[:0], frame.V12, f)
	_, err := l.out.Write(l.buf)
	if cap(l.buf) > localBuffer {
		l.buf = nil
	}
	return ended(err)
}

// receive returns the next frame, which must be of a command; the ERROR of a session is an error. It is valid until the
// next call.
func (l *programEnd) receive(want ...frame.Command) (*frame.Frame, error) {
	f := &l.frame
	if err := l.dec.Decode(f); err != nil {
		return nil, ended(err)
	}
	for _, c := range want {
		if f.Command == c {
			return f, nil
		}
	}
	if f.Command == frame.Error {
		if text := f.Get("message"); text != errShutdown.Text {
			return nil, &ClientError{Text: text}
		}
		return nil, errShutdown
	}
	return nil, fmt.Errorf("got %s instead of %v", f.Command, want)
}

// exchange sends a frame and waits for its answer. What keeps a frame from being read is told in the answer.
func (l *programEnd) exchange(f *frame.Frame, want frame.Command) error {
	unsent := l.send(f)
	_, err := l.receive(want)
	if err == nil {
		err = unsent
	}
	return err
}

// ended turns the end of a pipe into errCut.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
		return errCut
	}
	return err
}

func (l *programEnd) close() {
	_ = l.out.Close() // A pipe's close does not fail.
	_ = l.in.Close()
}

// localBuffer is the largest buffer that an idle session keeps.
const localBuffer = 64 << 10

// maxIdle is how many sessions Publish keeps for later.
const maxIdle = 16

// Publish sends a message as a SEND with a receipt does and returns when the receipt would come: when the NATS server has
// the message of a topic, when that of a queue is stored. Headers mean what they mean on a SEND; nil for none. Those
// that belong to the frame (destination, receipt, transaction, content-length) cannot be given. A *ClientError says what
// a client would be told. When ctx ends first the message may have been sent. Headers and body may be used again after
// the call. Rights are not checked: the program is not a client.
func (s *Server) Publish(ctx context.Context, destination string, headers map[string]string, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := programFrame(frame.Send, []frame.Header{header("destination", destination), header("receipt", "1")}, headers, body)
	if err != nil {
		return fmt.Errorf("publishing to %s: %w", destination, err)
	}
	l, err := s.takeLocal()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, l.close)
	err = l.exchange(f, frame.Receipt)
	switch {
	case !stop():
		l.close()
		if err != nil {
			err = ctx.Err()
		}
	case err != nil:
		l.close()
	default:
		s.keepLocal(l)
	}
	if err != nil {
		return fmt.Errorf("publishing to %s: %w", destination, s.why(err))
	}
	return nil
}

// takeLocal returns an idle session, or a new one.
func (s *Server) takeLocal() (*programEnd, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		l := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return l, nil
	}
	s.mu.Unlock()
	return s.openLocal()
}

func (s *Server) keepLocal(l *programEnd) {
	s.mu.Lock()
	keep := len(s.idle) < maxIdle && !s.stopping.Load()
	if keep {
		s.idle = append(s.idle, l)
	}
	s.mu.Unlock()
	if !keep {
		l.close()
	}
}

// closeLocal ends the sessions of Publish that are idle and those of Subscribe, after the messages that they handle. It
// does not wait.
func (s *Server) closeLocal() []*Subscription {
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	list := make([]*Subscription, 0, len(s.subscribed))
	for l := range s.subscribed {
		list = append(list, l)
	}
	s.mu.Unlock()
	for _, l := range idle {
		l.close()
	}
	for _, l := range list {
		go l.stop()
	}
	return list
}
