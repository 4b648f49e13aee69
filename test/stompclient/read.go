package stompclient

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrWire is wrapped by the errors about octets that a STOMP server must not send.
var ErrWire = errors.New("wire rule broken")

func wiref(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrWire}, args...)...)
}

// readFrame reads one frame whose first octet is next in r. The version is that of the connection, "" before CONNECTED.
// A connection that ends inside the frame is a broken rule, never io.EOF.
func readFrame(r *bufio.Reader, version string) (Frame, error) {
	f, err := readParts(r, version)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = wiref("the connection ended inside %s", f)
	}
	return f, err
}

func readParts(r *bufio.Reader, version string) (Frame, error) {
	var f Frame
	var err error
	if f.Command, err = readLine(r); err != nil {
		return f, err
	}
	switch f.Command {
	case "CONNECTED", "MESSAGE", "RECEIPT", "ERROR":
	default:
		return f, wiref("unknown server command %q", f.Command)
	}
	if plain(f.Command) {
		version = ""
	}
	for {
		line, err := readLine(r)
		if err != nil {
			return f, err
		}
		if line == "" {
			break
		}
		h, err := parseHeader(version, line)
		if err != nil {
			return f, wiref("%s: %v", f.Command, err)
		}
		if _, found := f.Lookup(h.Name); found {
			return f, wiref("%s: header %q twice", f.Command, h.Name)
		}
		f.Headers = append(f.Headers, h)
	}
	if f.Body, err = readBody(r, f); err != nil {
		return f, err
	}
	return f, readEnd(r, f.Command)
}

// readLine reads up to an LF. A CR anywhere in it is an error: no version lets a server send one unescaped, except as
// a line end of 1.2, which this server has no reason to use.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("inside a frame, after %q: %w", line, err)
	}
	if strings.ContainsAny(line, "\r\x00") {
		return "", wiref("CR or NUL in the line %q", line)
	}
	return line[:len(line)-1], nil
}

func parseHeader(version, line string) (Header, error) {
	name, value, found := strings.Cut(line, ":")
	if !found || name == "" {
		return Header{}, fmt.Errorf("header line %q without colon or without name", line)
	}
	name, err := unescape(version, name)
	if err != nil {
		return Header{}, err
	}
	if version == "1.1" || version == "1.2" {
		if strings.Contains(value, ":") {
			return Header{}, fmt.Errorf("header %q: unescaped colon in %q", name, value)
		}
	}
	value, err = unescape(version, value)
	return Header{name, value}, err
}

// readBody reads the body and its NUL. MESSAGE and ERROR must state their length.
func readBody(r *bufio.Reader, f Frame) ([]byte, error) {
	stated, found := f.Lookup("content-length")
	if !found {
		if f.Command == "MESSAGE" || f.Command == "ERROR" {
			return nil, wiref("%s without content-length", f.Command)
		}
		body, err := r.ReadBytes(0)
		if err != nil {
			return nil, fmt.Errorf("in the body of a %s: %w", f.Command, err)
		}
		return body[:len(body)-1], nil
	}
	n, err := strconv.ParseUint(stated, 10, 31)
	if err != nil {
		return nil, wiref("content-length %q", stated)
	}
	body := make([]byte, n+1)
	if got, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("in the body of a %s, %d of %d octets: %w", f.Command, got, n, err)
	}
	if body[n] != 0 {
		return nil, wiref("octet %#x instead of NUL behind the %d octets of a body", body[n], n)
	}
	return body[:n], nil
}

// readEnd reads the one LF that follows the NUL of each frame (DESIGN section 3).
func readEnd(r *bufio.Reader, command string) error {
	b, err := r.ReadByte()
	if err != nil {
		return fmt.Errorf("after the NUL of a %s: %w", command, err)
	}
	if b != '\n' {
		return wiref("octet %#x instead of LF behind the NUL of a %s", b, command)
	}
	return nil
}
