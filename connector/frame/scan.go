package frame

import (
	"bytes"
	"errors"
	"io"
)

// maxCommandLine is the longest command line that is waited for. No command is half as long.
const maxCommandLine = 32

// The functions of this file find the parts of a frame while its octets arrive. What they
// find, faults included, depends on the octets alone and never on how reads cut them.

// findFrame moves in.start to the first octet of the next frame.
func (d *Decoder) findFrame() error {
	for {
		d.in.skipLineEnds()
		rest := d.in.data[d.in.start:d.in.end]
		if len(rest) > 0 && rest[0] != '\r' {
			return nil
		}
		if len(rest) > 1 {
			return syntaxErrorf("carriage return without line feed between frames")
		}
		if err := d.in.fill(len(rest) + 1); err != nil {
			if len(rest) > 0 && errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
}

// seen returns the octets of the frame that are read, none above the limit of the frame.
func (d *Decoder) seen() []byte {
	b := d.in.data[d.in.start:d.in.end]
	if len(b) > d.limits.Frame {
		b = b[:d.limits.Frame]
	}
	return b
}

// more reads on after seen was not enough. No more than bound octets can belong to the
// frame by what is known of it.
func (d *Decoder) more(bound int) error {
	if d.in.end-d.in.start >= d.limits.Frame {
		return &LimitError{Name: limitFrame, Max: d.limits.Frame}
	}
	err := d.in.fill(min(bound, d.limits.Frame+1))
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// decodeCommand reads the command line.
func (d *Decoder) decodeCommand() error {
	for {
		b := d.seen()
		line := b[:min(len(b), maxCommandLine+1)]
		end := bytes.IndexByte(line, '\n')
		if end >= 0 {
			line = line[:end]
			if d.command = parseCommand(d.trimCR(line)); d.command != Unknown {
				d.pos = end + 1
				return nil
			}
		}
		if nul := bytes.IndexByte(line, 0); nul >= 0 || end >= 0 || len(line) > maxCommandLine {
			return d.commandError(line, nul, end >= 0)
		}
		if err := d.more(maxCommandLine + 2); err != nil {
			return err
		}
	}
}

// commandError is the fault of a command line: a NUL at index nul, if not negative, or else a whole
// line that is no command, or the start of one that is too long.
func (d *Decoder) commandError(line []byte, nul int, whole bool) error {
	switch {
	case nul == 0:
		return syntaxErrorf("NUL where a command should begin: an empty frame, or a PROXY protocol header, which is not expected here")
	case nul > 0:
		return syntaxErrorf("frame ended inside its command line %s%s", show(line[:nul]), foreignHint(line[:nul]))
	case whole:
		return syntaxErrorf("unknown command %s%s%s", show(d.trimCR(line)), foreignHint(line), d.lineEndHint(line))
	default:
		return syntaxErrorf("no command: the line %s is longer than %d octets%s", show(line), maxCommandLine, foreignHint(line))
	}
}

// headerLine reads one line of the headers and returns where it is, without its end; an empty one
// is the blank line behind them.
func (d *Decoder) headerLine() (from, to int, err error) {
	for scanned := d.pos; ; {
		b := d.seen()
		end := bytes.IndexByte(b[scanned:], '\n')
		whole := end >= 0
		if whole {
			end += scanned
		} else {
			end = len(b)
		}
		line := b[d.pos:end]
		limit, name := d.limits.HeaderLine, limitHeaderLine
		if len(line) > limit {
			limit, name = d.lineLimit(line)
		}
		if bytes.IndexByte(b[min(scanned, d.pos+limit):min(end, d.pos+limit)], 0) >= 0 {
			return 0, 0, syntaxErrorf("%s frame ended inside its headers, before a blank line", d.command)
		}
		if whole {
			line = d.trimCR(line)
		}
		switch {
		case len(line) > limit && (whole || len(line) > limit+1 || line[limit] != '\r' || !d.acceptsCR()):
			return 0, 0, &LimitError{Name: name, Max: limit}
		case whole:
			from, d.pos = d.pos, end+1
			return from, from + len(line), nil
		}
		scanned = end
		// A quarter of the decoded lines on top lets the buffer grow by a factor, not line by line.
		if err := d.more(d.pos + d.pos/4 + limit + len("\r\n")); err != nil {
			return 0, 0, err
		}
	}
}

// lineLimit returns the limit of a header line that is longer than HeaderLine.
func (d *Decoder) lineLimit(line []byte) (limit int, name string) {
	const passcode = "passcode:"
	n := min(len(line), len(passcode))
	if (d.command == Connect || d.command == Stomp) && d.limits.Passcode > d.limits.HeaderLine &&
		string(line[:n]) == passcode[:n] {
		return d.limits.Passcode, limitPasscode
	}
	return d.limits.HeaderLine, limitHeaderLine
}

// acceptsCR reports whether a CR before an LF is part of the line end.
// STOMP 1.2, Augmented BNF; 1.0 and 1.1 know no CRLF.
func (d *Decoder) acceptsCR() bool { return d.version == V12 || d.version == 0 }

// trimCR removes the CR that is part of the line end.
func (d *Decoder) trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' && d.acceptsCR() {
		return line[:n-1]
	}
	return line
}

// lineEndHint explains a fault of a line where a CRLF outside 1.2 may be the cause.
func (d *Decoder) lineEndHint(line []byte) string {
	if n := len(line); n > 0 && line[n-1] == '\r' && !d.acceptsCR() {
		return carriageReturnHint
	}
	return ""
}

// readTo reads until the frame has n octets.
func (d *Decoder) readTo(n int) error {
	for len(d.seen()) < n {
		if err := d.more(n); err != nil {
			return err
		}
	}
	return nil
}

// findNUL returns where the NUL is that ends the frame, and -1 if more than limit octets
// stand before it.
func (d *Decoder) findNUL(limit int) (int, error) {
	for scanned := d.pos; ; {
		b := d.seen()
		last := min(len(b), d.pos+limit+1)
		if i := bytes.IndexByte(b[scanned:last], 0); i >= 0 {
			return scanned + i, nil
		}
		if len(b)-d.pos > limit {
			return -1, nil
		}
		scanned = len(b)
		if err := d.more(d.pos + limit + 1); err != nil {
			return -1, err
		}
	}
}
