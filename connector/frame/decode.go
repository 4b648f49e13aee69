package frame

import (
	"bytes"
	"math"
)

// decodeHeader takes apart the header line at from, unescapes it in place and adds its span.
func (d *Decoder) decodeHeader(from, to int) error {
	if len(d.spans) >= d.limits.Headers {
		return &LimitError{Name: limitHeaders, Max: d.limits.Headers, Got: len(d.spans) + 1}
	}
	line := d.in.data[d.in.start+from : d.in.start+to]
	// Many clients send raw colons in values, in all versions: the first one splits.
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return d.lineError(line, colon)
	}
	s := span{name: from, nameEnd: from + colon, value: from + colon + 1, valueEnd: to}
	if d.version >= V11 && !d.command.raw() {
		if err := d.unescapeHeader(line, &s); err != nil {
			return err
		}
	}
	if d.length < 0 && string(line[:colon]) == nameContentLength {
		d.length = len(d.spans)
	}
	d.spans = append(d.spans, s)
	return nil
}

// lineError is the fault of a header line whose first colon is at index colon, 0 or -1. What stands in
// CONNECT and STOMP is not shown: it may be a part of a passcode.
func (d *Decoder) lineError(line []byte, colon int) error {
	shown := "a header line"
	if d.command != Connect && d.command != Stomp {
		shown = "header line " + show(line)
	}
	if colon < 0 {
		return syntaxErrorf("%s of %s has no colon%s", shown, d.command, d.lineEndHint(line))
	}
	return syntaxErrorf("%s of %s has no name", shown, d.command)
}

// unescapeHeader undoes the escapes of a header line in place and moves the ends of its span.
func (d *Decoder) unescapeHeader(line []byte, s *span) error {
	colon := s.nameEnd - s.name
	// STOMP 1.2, Augmented BNF: a CR in a header is an escape or belongs to the line end.
	if d.version == V12 && bytes.IndexByte(line, '\r') >= 0 {
		return syntaxErrorf("raw carriage return in header %s of %s", show(line[:colon]), d.command)
	}
	if bytes.IndexByte(line, '\\') < 0 {
		return nil
	}
	if pair := undefinedEscape(line, d.version); pair != nil {
		// STOMP 1.2, Value Encoding: undefined escapes are a fatal protocol error.
		return syntaxErrorf("undefined escape %s in header %s of %s; STOMP %s was agreed on",
			show(pair), show(line[:colon]), d.command, d.version)
	}
	s.nameEnd = s.name + unescape(line[:colon])
	s.valueEnd = s.value + unescape(line[colon+1:])
	return nil
}

// decodeBody reads what follows the blank line, up to the NUL.
func (d *Decoder) decodeBody() error {
	switch {
	case !d.command.hasBody():
		return d.dropBody()
	case d.length >= 0:
		return d.sizedBody()
	}
	nul, err := d.findNUL(d.limits.Body)
	if err != nil {
		return err
	}
	if nul < 0 {
		return &LimitError{Name: limitBody, Max: d.limits.Body}
	}
	d.body.from, d.body.to, d.pos = d.pos, nul, nul+1
	return nil
}

// dropBody passes over what stands where a frame of this command has no body. Its content-length
// is not looked at: some clients copy the one of a MESSAGE into their ACK.
func (d *Decoder) dropBody() error {
	nul, err := d.findNUL(d.limits.HeaderLine)
	if err != nil {
		return err
	}
	if nul < 0 {
		return &LimitError{Name: limitHeaderLine, Max: d.limits.HeaderLine, Bodiless: d.command}
	}
	d.body.from, d.body.to, d.pos = d.pos, d.pos, nul+1
	return nil
}

// sizedBody reads a body of as many octets as content-length says.
func (d *Decoder) sizedBody() error {
	s := d.spans[d.length]
	value := d.in.data[d.in.start+s.value : d.in.start+s.valueEnd]
	length, ok := parseLength(value)
	if !ok {
		return syntaxErrorf("content-length %s of %s is not a number of octets%s",
			show(value), d.command, d.lineEndHint(value))
	}
	if length > maxLength {
		if d.limits.Body < unlimited {
			return &LimitError{Name: limitBody, Max: d.limits.Body}
		}
		return syntaxErrorf("content-length %s of %s is too large", show(value), d.command)
	}
	if length > d.limits.Body {
		return &LimitError{Name: limitBody, Max: d.limits.Body, Got: length}
	}
	end := d.pos + length
	if end >= d.limits.Frame {
		return &LimitError{Name: limitFrame, Max: d.limits.Frame, Got: end + 1}
	}
	if err := d.readTo(end + 1); err != nil {
		return err
	}
	if d.seen()[end] != 0 {
		return syntaxErrorf("%s frame has no NUL after its body: its content-length of %d is wrong", d.command, length)
	}
	d.body.from, d.body.to, d.pos = d.pos, end, end+1
	return nil
}

// maxLength is the largest content-length that is taken for a number where bodies have no limit.
const maxLength = unlimited / 2

// parseLength reads a content-length: digits only. One above maxLength comes back as math.MaxInt.
func parseLength(value []byte) (int, bool) {
	n := 0
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n > maxLength/10 {
			n = math.MaxInt
			continue
		}
		n = 10*n + int(c-'0')
	}
	return n, len(value) > 0
}
