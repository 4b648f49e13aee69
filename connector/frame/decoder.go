package frame

import "io"

// Decoder reads frames from a stream. It is not safe for concurrent use.
//
// Between two calls of Decode it keeps 4 KiB, up to 64 KiB while the peer sends in bulk, and more
// only until the frame after a larger one.
type Decoder struct {
	in      buffer
	version Version
	limits  Limits // As given by Limits.bounded.

	// The frame at in.start as far as it is decoded; all positions are counted from there.
	command Command
	pos     int // The first octet not decoded yet; after a frame the one behind its NUL.
	spans   []span
	length  int // The index in spans of the first content-length, or -1.
	body    struct{ from, to int }

	headers []Header // What spans stand for, as handed out.
	err     error    // The fault that ended decoding.
}

// span is where one header's name and value are.
type span struct{ name, nameEnd, value, valueEnd int }

// NewDecoder returns a decoder of the frames in r. It reads nothing yet.
func NewDecoder(r io.Reader, l Limits) *Decoder {
	return &Decoder{in: buffer{r: r, data: make([]byte, minBuffer)}, limits: l.bounded()}
}

// SetVersion makes the frames from the next Decode on follow the rules of v: its escapes, and
// CRLF line ends in 1.2 only. Before the first call nothing is unescaped and CRLF is accepted.
func (d *Decoder) SetVersion(v Version) { d.version = v }

// SetLimits sets the limits of the frames from the next Decode on.
func (d *Decoder) SetLimits(l Limits) { d.limits = l.bounded() }

// Decode reads the next frame into f. What f points to belongs to the decoder and is valid until
// the next call.
//
// It returns io.EOF if the stream ends between frames, io.ErrUnexpectedEOF if it ends inside one,
// a *[SyntaxError], a *[LimitError], or the error of the reader. On an error f holds the command
// and the headers decoded so far, without a body; every later call gives the same again.
func (d *Decoder) Decode(f *Frame) error {
	if d.err == nil {
		d.reset()
		f.Headers, f.Body = nil, nil // They must not keep the memory that the frame to come replaces.
		d.err = d.decode()
	}
	f.Command = d.command
	f.Headers = d.takeHeaders()
	f.Body = nil
	if d.err != nil {
		return d.err
	}
	b := d.in.data[d.in.start:d.in.end]
	f.Body = b[d.body.from:d.body.to:d.body.to]
	d.in.decoded(d.pos)
	d.in.skipLineEnds()
	return nil
}

// keepHeaders is the number of headers that a decoder keeps room for.
const keepHeaders = 64

// reset forgets the last frame.
func (d *Decoder) reset() {
	if cap(d.spans) > keepHeaders {
		d.spans, d.headers = nil, nil
	}
	clear(d.headers)
	d.command, d.pos, d.spans, d.length = Unknown, 0, d.spans[:0], -1
}

// takeHeaders turns the spans into names and values without room to append over what stands
// behind them.
func (d *Decoder) takeHeaders() []Header {
	h := d.headers[:0]
	b := d.in.data[d.in.start:]
	for i := range d.spans {
		s := &d.spans[i]
		h = append(h, Header{Name: b[s.name:s.nameEnd:s.nameEnd], Value: b[s.value:s.valueEnd:s.valueEnd]})
	}
	d.headers = h
	return h
}

// decode takes the frame at in.start apart.
func (d *Decoder) decode() error {
	if err := d.findFrame(); err != nil {
		return err
	}
	if err := d.decodeCommand(); err != nil {
		return err
	}
	for {
		from, to, err := d.headerLine()
		if err != nil {
			return err
		}
		if from == to {
			return d.decodeBody()
		}
		if err := d.decodeHeader(from, to); err != nil {
			return err
		}
	}
}
