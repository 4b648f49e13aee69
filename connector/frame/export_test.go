package frame

// BufferSize returns the octets of memory that the decoder holds for input.
func (d *Decoder) BufferSize() int { return len(d.in.data) }

// HeaderRoom returns for how many headers the decoder holds memory.
func (d *Decoder) HeaderRoom() int { return cap(d.spans) }
