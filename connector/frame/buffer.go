package frame

import "io"

const (
	minBuffer  = 4 << 10  // minBuffer is the size at the start and of an idle connection.
	maxBuffer  = 64 << 10 // maxBuffer is the size up to which many small frames let it grow.
	small      = 2 << 10  // small is the most octets of a read or a frame that counts as small.
	smallReads = 8        // smallReads is the length of a run after which a buffer shrinks.
	overRead   = 2 << 10  // overRead is the room behind the largest frame that may come.

	// maxEmptyReads is how often a reader may return neither octets nor an error.
	maxEmptyReads = 100
)

// buffer holds the octets that were read and are not decoded yet. It grows by doubling in two
// cases: up to maxBuffer when a read filled it and frames came out of it, so that the next
// read brings more of them; and without that bound when one frame fills it whole. It shrinks to
// maxBuffer at the first read after a frame larger than that, and to minBuffer after a run of
// small reads into an empty buffer, heart-beats for one, without a frame that is not small.
type buffer struct {
	r    io.Reader
	data []byte

	start, end int // data[start:end] is not decoded yet.

	filled bool  // The last read left no room.
	frames int   // Frames decoded since the last read.
	run    int   // Small reads into an empty buffer in a row.
	err    error // What the reader returned with its last octets.
}

// fill reads once and appends to data[start:end]; it may move that to other memory. No more than
// bound octets, counted from start, can belong to the frame at start, as far as is known.
func (b *buffer) fill(bound int) error {
	if b.err != nil {
		return b.err
	}
	b.makeRoom(bound)
	for range maxEmptyReads {
		n, err := b.r.Read(b.data[b.end:])
		if n == 0 && err == nil {
			continue
		}
		if n > small {
			b.run = 0
		} else if b.end == 0 {
			b.run++
		}
		b.end += n
		b.filled = b.end == len(b.data)
		b.frames = 0
		if n == 0 {
			return err
		}
		b.err = err // The octets come first.
		return nil
	}
	return io.ErrNoProgress
}

// makeRoom leaves at least one octet free behind end.
func (b *buffer) makeRoom(bound int) {
	size := b.size(bound)
	if size == len(b.data) {
		if b.start > 0 {
			b.end = copy(b.data, b.data[b.start:b.end])
			b.start = 0
		}
		return
	}
	data := make([]byte, size)
	b.end = copy(data, b.data[b.start:b.end])
	b.data, b.start = data, 0
}

// size returns the length that data should have for the next read.
func (b *buffer) size(bound int) int {
	size, rest := len(b.data), b.end-b.start
	switch {
	case rest == size:
		// A frame gets as much memory as octets of it came, not as it says will come.
		return max(min(2*size, bound+overRead), size+1)
	case size > maxBuffer && rest < maxBuffer:
		return maxBuffer
	case size < maxBuffer && b.filled && b.frames > 0:
		return min(2*size, maxBuffer)
	case size > minBuffer && size <= maxBuffer && b.run >= smallReads && rest <= small:
		return minBuffer
	default:
		return size
	}
}

// decoded moves start over a frame of n octets.
func (b *buffer) decoded(n int) {
	b.start += n
	b.frames++
	if n > small {
		b.run = 0
	}
}

// skipLineEnds moves start over the LF and CRLF at it, as far as they are read.
// STOMP 1.2, Augmented BNF: any number of EOLs may follow a frame; a heart-beat is one of them.
func (b *buffer) skipLineEnds() {
	for b.start < b.end {
		switch {
		case b.data[b.start] == '\n':
			b.start++
		case b.data[b.start] == '\r' && b.start+1 < b.end && b.data[b.start+1] == '\n':
			b.start += 2
		default:
			return
		}
	}
}
