package frame

// Header is one header of a frame, without escapes.
type Header struct{ Name, Value []byte }

// Frame is one STOMP frame. A frame filled by [Decoder.Decode] points into the decoder's memory
// and is valid until the next call; whoever keeps it longer takes a [Frame.Clone].
type Frame struct {
	Command Command
	Headers []Header // Headers has all headers in order, repeated ones included.
	Body    []byte
}

// Lookup returns the value of the first header with that name, as STOMP 1.2, Repeated Header
// Entries, demands, and whether there is one. Names are case-sensitive. It does not allocate;
// the value belongs to the frame.
func (f *Frame) Lookup(name string) ([]byte, bool) {
	for i := range f.Headers {
		if string(f.Headers[i].Name) == name {
			return f.Headers[i].Value, true
		}
	}
	return nil, false
}

// Get returns the value of the first header with that name as a string of its own, and "" if
// there is none.
func (f *Frame) Get(name string) string {
	value, _ := f.Lookup(name)
	return string(value)
}

// Clone returns a copy of the frame that shares no memory with it.
func (f *Frame) Clone() Frame {
	size := len(f.Body)
	for _, h := range f.Headers {
		size += len(h.Name) + len(h.Value)
	}
	octets := make([]byte, 0, size)
	keep := func(b []byte) []byte {
		from := len(octets)
		octets = append(octets, b...)
		return octets[from:len(octets):len(octets)]
	}
	c := Frame{Command: f.Command, Headers: make([]Header, len(f.Headers))}
	for i, h := range f.Headers {
		c.Headers[i] = Header{Name: keep(h.Name), Value: keep(h.Value)}
	}
	c.Body = keep(f.Body)
	return c
}
