package bench_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// A natsScanner counts what a NATS server sends, without allocating.
type natsScanner struct {
	buf        []byte
	start, end int

	line []byte // the last MSG line: the next is likely to be the same
	body int
}

func newNATSScanner() *natsScanner { return &natsScanner{buf: make([]byte, readSize)} }

// natsCount is what came in one read.
type natsCount struct{ messages, pings, pongs int }

// fill reads once and counts what is whole then. An error of the server is an error.
func (s *natsScanner) fill(r io.Reader) (natsCount, error) {
	var c natsCount
	s.end = copy(s.buf, s.buf[s.start:s.end])
	s.start = 0
	if s.end == len(s.buf) {
		return c, errors.New("a message is larger than the buffer")
	}
	n, err := r.Read(s.buf[s.end:])
	s.end += n
	if err != nil {
		return c, err
	}
	for {
		b := s.buf[s.start:s.end]
		size := s.guess(b)
		if size == 0 {
			if size, err = s.measure(b); size == 0 || err != nil {
				return c, err
			}
		}
		switch {
		case b[0] == 'M':
			c.messages++
		case b[0] == 'P' && b[1] == 'I':
			c.pings++
		case b[0] == 'P':
			c.pongs++
		}
		s.start += size
	}
}

// guess returns the size of the message that b begins with if its line is the last one again, else 0.
func (s *natsScanner) guess(b []byte) int {
	size := len(s.line) + s.body + len("\r\n")
	if len(s.line) > 0 && len(b) >= size && string(b[:len(s.line)]) == string(s.line) {
		return size
	}
	return 0
}

// measure returns the size of what b begins with, 0 if it is not whole.
func (s *natsScanner) measure(b []byte) (int, error) {
	end := bytes.IndexByte(b, '\n') + 1
	if end == 0 {
		return 0, nil
	}
	line := b[:end]
	switch {
	case bytes.HasPrefix(line, []byte("MSG ")):
	case bytes.HasPrefix(line, []byte("INFO ")), bytes.HasPrefix(line, []byte("PING")), bytes.HasPrefix(line, []byte("PONG")):
		return end, nil
	default:
		return 0, fmt.Errorf("unexpected line: %q", line)
	}
	size, err := strconv.Atoi(string(bytes.TrimSpace(line[bytes.LastIndexByte(line, ' '):])))
	if err != nil {
		return 0, fmt.Errorf("MSG line without size: %q", line)
	}
	if len(b) < end+size+len("\r\n") {
		return 0, nil
	}
	s.line, s.body = append(s.line[:0], line...), size
	return end + size + len("\r\n"), nil
}

// dialNATS opens a connection that speaks the NATS protocol, subscribed to subject unless that is empty.
func dialNATS(url, subject string) (net.Conn, error) {
	nc, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "nats://"), grace)
	if err != nil {
		return nil, err
	}
	if err := greet(nc, subject); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return nc, nil
}

func greet(nc net.Conn, subject string) error {
	hello := `CONNECT {"verbose":false,"pedantic":false,"lang":"raw","version":"0","protocol":1}` + "\r\n"
	if subject != "" {
		hello += "SUB " + subject + " 1\r\n"
	}
	if err := nc.SetDeadline(time.Now().Add(grace)); err != nil {
		return err
	}
	if _, err := io.WriteString(nc, hello+"PING\r\n"); err != nil {
		return err
	}
	scan := newNATSScanner()
	for {
		c, err := scan.fill(nc)
		if err != nil {
			return err
		}
		if c.pongs > 0 {
			return nc.SetDeadline(time.Time{})
		}
	}
}

// rawTopic is a subject through lines of the NATS protocol.
func rawTopic(url, subject string, w work) (*peer, error) {
	p := newPeer("NATS raw")
	for range w.subscribers {
		nc, err := dialNATS(url, subject)
		if err != nil {
			return p, err
		}
		p.onClose(func() { _ = nc.Close() })
		s := p.sink()
		p.read(func() error { return countLines(nc, s) })
	}
	var publishers []net.Conn
	for range w.publishers {
		nc, err := dialNATS(url, "")
		if err != nil {
			return p, err
		}
		p.onClose(func() { _ = nc.Close() })
		p.read(func() error { return countLines(nc, newSink()) })
		publishers = append(publishers, nc)
	}
	line := fmt.Appendf(nil, "PUB %s %d\r\n%s\r\n", subject, bodySize, body)
	p.batch = w.batch(len(line))
	p.send = inTurn(publishers, bytes.Repeat(line, p.batch), p.batch)
	return p, nil
}

// countLines adds the messages of a connection to s and answers the server's PINGs.
func countLines(nc net.Conn, s *sink) error {
	scan := newNATSScanner()
	for {
		c, err := scan.fill(nc)
		if err != nil {
			return err
		}
		s.add(c.messages)
		for range c.pings {
			if _, err := io.WriteString(nc, "PONG\r\n"); err != nil {
				return err
			}
		}
	}
}
