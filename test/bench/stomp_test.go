package bench_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/natstomp/natstomp/test/stompclient"
)

// readSize is the size of every raw reader's buffer, batchSize the most octets of one write.
const readSize, batchSize = 64 << 10, 64 << 10

// A stompScanner counts the frames that a server sends, without allocating.
type stompScanner struct {
	// onMessage, unless nil, gets the octets of a MESSAGE up to its body, valid during the call.
	onMessage func(head []byte)

	buf        []byte
	start, end int

	// The last MESSAGE: the next is likely to be as long, and a look at its fixed parts shows whether it is.
	head, body int
	tail       []byte // its last header and the blank line
}

func newSTOMPScanner() *stompScanner { return &stompScanner{buf: make([]byte, readSize)} }

const (
	message       = "MESSAGE\n"
	receipt       = "RECEIPT\n"
	contentLength = "\ncontent-length:"
)

// fill reads once and counts the frames that are whole then. Any other frame than MESSAGE and RECEIPT is an error.
func (s *stompScanner) fill(r io.Reader) (messages, receipts int, err error) {
	s.end = copy(s.buf, s.buf[s.start:s.end])
	s.start = 0
	if s.end == len(s.buf) {
		return 0, 0, errors.New("a frame is larger than the buffer")
	}
	n, err := r.Read(s.buf[s.end:])
	s.end += n
	if err != nil {
		return 0, 0, err
	}
	for {
		b := s.buf[s.start:s.end]
		if len(b) == 0 {
			return messages, receipts, nil
		}
		if b[0] == '\n' {
			s.start++ // An EOL between frames.
			continue
		}
		size := s.guess(b)
		if size == 0 {
			if size, err = s.measure(b); size == 0 || err != nil {
				return messages, receipts, err
			}
		}
		if b[0] == receipt[0] {
			receipts++
		} else {
			messages++
			if s.onMessage != nil {
				s.onMessage(b[:s.head])
			}
		}
		s.start += size
	}
}

// guess returns the size of the frame that b begins with if it is a MESSAGE as long as the last, else 0.
func (s *stompScanner) guess(b []byte) int {
	size := s.head + s.body + 1
	if s.head > 0 && len(b) >= size && b[size-1] == 0 && string(b[:len(message)]) == message &&
		string(b[s.head-len(s.tail):s.head]) == string(s.tail) {
		return size
	}
	return 0
}

// measure returns the size of the frame that b begins with, 0 if it is not whole.
func (s *stompScanner) measure(b []byte) (int, error) {
	head := bytes.Index(b, []byte("\n\n")) + 2
	if head < 2 {
		return 0, nil
	}
	switch {
	case bytes.HasPrefix(b, []byte(message)):
	case bytes.HasPrefix(b, []byte(receipt)):
		if nul := bytes.IndexByte(b[head:], 0); nul >= 0 {
			return head + nul + 1, nil
		}
		return 0, nil
	default:
		return 0, fmt.Errorf("unexpected frame: %q", b[:min(len(b), 512)])
	}
	at := bytes.LastIndex(b[:head], []byte(contentLength))
	if at < 0 {
		return 0, fmt.Errorf("MESSAGE without content-length: %q", b[:head])
	}
	value := b[at+len(contentLength):]
	body, err := strconv.Atoi(string(value[:bytes.IndexByte(value, '\n')]))
	if err != nil {
		return 0, fmt.Errorf("MESSAGE with a wrong content-length: %q", b[:head])
	}
	size := head + body + 1
	if len(b) < size {
		return 0, nil
	}
	if b[size-1] != 0 {
		return 0, fmt.Errorf("MESSAGE whose content-length is not that of its body: %q", b[:head])
	}
	s.head, s.body = head, body
	s.tail = append(s.tail[:0], b[at:head]...)
	return size, nil
}

// headerValue returns what follows a name, given with the LF before and the colon behind it, nil if it is not there.
func headerValue(head []byte, name string) []byte {
	at := bytes.Index(head, []byte(name))
	if at < 0 {
		return nil
	}
	value := head[at+len(name):]
	return value[:bytes.IndexByte(value, '\n')]
}

// sendFrames returns n SEND frames, with further header lines, each ended by LF, that may be empty.
func sendFrames(n int, destination, headers string) []byte {
	frame := fmt.Sprintf("SEND\ndestination:%s\n%scontent-length:%d\n\n%s\x00", destination, headers, bodySize, body)
	return bytes.Repeat([]byte(frame), n)
}

// body is the body of every message.
var body = bytes.Repeat([]byte("x"), bodySize)

// dialSTOMP opens a STOMP 1.2 connection, subscribed if header names and values of a SUBSCRIBE are given.
func dialSTOMP(addr string, subscribe ...string) (net.Conn, error) {
	c, err := stompclient.Dial(addr)
	if err != nil {
		return nil, err
	}
	if err := handshake(c, subscribe); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c.NetConn(), c.NetConn().SetDeadline(time.Time{})
}

func handshake(c *stompclient.Conn, subscribe []string) error {
	if _, err := c.Connect("1.2", "heart-beat", "0,0"); err != nil || len(subscribe) == 0 {
		return err
	}
	if err := c.Send(stompclient.New("SUBSCRIBE", append(subscribe, "receipt", "subscribed")...)); err != nil {
		return err
	}
	f, err := c.Read(grace)
	if err == nil && f.Command != "RECEIPT" {
		err = fmt.Errorf("SUBSCRIBE was answered by %s", f)
	}
	return err
}

// stompTopic is a topic through natstomp.
func stompTopic(addr, channel string, w work) (*peer, error) {
	p := newPeer("natstomp")
	destination := "/topic/" + channel
	for range w.subscribers {
		nc, err := dialSTOMP(addr, "id", "0", "destination", destination)
		if err != nil {
			return p, err
		}
		p.onClose(func() { _ = nc.Close() })
		s := p.sink()
		p.read(func() error { return countMessages(nc, newSTOMPScanner(), s) })
	}
	var publishers []net.Conn
	for range w.publishers {
		nc, err := dialSTOMP(addr)
		if err != nil {
			return p, err
		}
		p.onClose(func() { _ = nc.Close() })
		p.read(func() error { return countMessages(nc, newSTOMPScanner(), nil) })
		publishers = append(publishers, nc)
	}
	p.batch = w.batch(len(sendFrames(1, destination, "")))
	p.send = inTurn(publishers, sendFrames(p.batch, destination, ""), p.batch)
	return p, nil
}

// countMessages adds the MESSAGEs of a connection to s. A connection without sink must get none.
func countMessages(nc net.Conn, scan *stompScanner, s *sink) error {
	for {
		messages, receipts, err := scan.fill(nc)
		if err != nil {
			return err
		}
		if receipts > 0 || s == nil && messages > 0 {
			return errors.New("a frame came that nobody asked for")
		}
		if s != nil {
			s.add(messages)
		}
	}
}

// inTurn writes n of the messages in octets, which holds most of equal size, to one connection after the other.
func inTurn(conns []net.Conn, octets []byte, most int) func(n int) error {
	next, size := 0, len(octets)/most
	return func(n int) error {
		nc := conns[next]
		next = (next + 1) % len(conns)
		_, err := nc.Write(octets[:n*size])
		return err
	}
}
