package connector

import (
	"sync"

	"github.com/natstomp/natstomp/bridge"
)

const (
	// firstChunk is the size of the only chunk of a connection that has little to write, nextChunk that of all others.
	firstChunk, nextChunk = 2 << 10, 16 << 10
	// burstSize bounds what is handed to the socket at once.
	burstSize = 256 << 10
)

// Chunks that no connection uses. A connection keeps none while it has nothing to write.
var (
	firstChunks = sync.Pool{New: func() any { return new([firstChunk]byte) }}
	nextChunks  = sync.Pool{New: func() any { return new([nextChunk]byte) }}
)

// newChunk returns an empty buffer for at least room octets.
func newChunk(first bool, room int) []byte {
	switch {
	case first && room <= firstChunk:
		return firstChunks.Get().(*[firstChunk]byte)[:0]
	case room <= nextChunk:
		return nextChunks.Get().(*[nextChunk]byte)[:0]
	}
	return make([]byte, 0, room)
}

// freeChunk takes a buffer of newChunk back, or one that an append has put in its place, which is dropped.
func freeChunk(buf []byte) {
	switch cap(buf) {
	case firstChunk:
		firstChunks.Put((*[firstChunk]byte)(buf[:firstChunk]))
	case nextChunk:
		nextChunks.Put((*[nextChunk]byte)(buf[:nextChunk]))
	}
}

// chunk is a run of octets to write. A chunk that is joined holds the continuation of a frame that began in the chunk
// before; one that is shared belongs to several connections and is never written into.
type chunk struct {
	data   []byte
	frames sentFrames // those that begin in it
	joined bool
	shared bool
}

// autoAck is a delivery that is settled once everything up to end is written (ack:auto).
type autoAck struct {
	end uint64
	sub *subscription
	d   bridge.Delivery
}

// outbox is what waits to be written to one connection. All of it is guarded by conn.mu.
type outbox struct {
	chunks   []chunk
	autos    []autoAck
	appended uint64     // octets ever accepted
	taken    uint64     // octets ever handed to the writer
	written  uint64     // octets ever written
	cut      uint64     // octets that the writer had when the rest was dropped; 0: nothing was
	closed   bool       // nothing more is accepted; the writer ends when all is written
	fresh    sentFrames // what the next keep brings
}

// pending is the octets that are not written yet.
func (o *outbox) pending() int { return int(o.appended - o.written) }

// tail returns the buffer to append a frame of about room octets to; keep takes it back.
func (o *outbox) tail(room int) []byte {
	n := len(o.chunks)
	if n > 0 {
		if last := &o.chunks[n-1]; !last.shared && cap(last.data)-len(last.data) >= room {
			return last.data
		}
	}
	buf := newChunk(n == 0, room)
	o.chunks = append(o.chunks, chunk{data: buf})
	return buf
}

// keep puts back the buffer that tail returned, extended by whole frames.
func (o *outbox) keep(buf []byte) {
	last := &o.chunks[len(o.chunks)-1]
	o.appended += uint64(len(buf) - len(last.data))
	last.data = buf
	last.frames.add(o.fresh)
	o.fresh = sentFrames{}
}

// join appends octets that belong to the frame just begun and that other connections write too.
func (o *outbox) join(shared []byte) {
	o.chunks = append(o.chunks, chunk{data: shared, joined: true, shared: true})
	o.appended += uint64(len(shared))
}

// take hands over the chunks of the next burst, always whole frames. The caller returns them with done.
func (o *outbox) take(into []chunk) []chunk {
	size, n := 0, 0
	for n < len(o.chunks) && (size < burstSize || o.chunks[n].joined) {
		size += len(o.chunks[n].data)
		n++
	}
	into = append(into, o.chunks[:n]...)
	rest := copy(o.chunks, o.chunks[n:])
	clear(o.chunks[rest:])
	o.chunks = o.chunks[:rest]
	o.taken += uint64(size)
	return into
}

// done counts a burst as written, frees its buffers and returns the deliveries that it settled.
func (o *outbox) done(burst []chunk) []autoAck {
	o.written = o.taken
	for _, c := range burst {
		if !c.shared {
			freeChunk(c.data)
		}
	}
	n := 0
	for n < len(o.autos) && o.autos[n].end <= o.written {
		n++
	}
	if n == 0 {
		return nil
	}
	settled := append([]autoAck(nil), o.autos[:n]...)
	rest := copy(o.autos, o.autos[n:])
	clear(o.autos[rest:])
	o.autos = o.autos[:rest]
	return settled
}

// discard drops everything that the writer does not have yet and returns the deliveries that are thereby not written.
func (o *outbox) discard() []autoAck {
	o.chunks = nil
	if o.cut == 0 {
		o.cut = o.taken
	}
	o.appended = o.taken
	n := 0
	for n < len(o.autos) && o.autos[n].end <= o.taken {
		n++
	}
	lost := append([]autoAck(nil), o.autos[n:]...)
	o.autos = o.autos[:n]
	for i := range lost {
		lost[i].d.Unseen = true
	}
	return lost
}

// dropped says whether a frame that ended so many octets after the start was dropped before any of it was written.
func (o *outbox) dropped(end uint64) bool { return o.cut > 0 && end > o.cut }

// abandon returns all deliveries that are not known to be written. The writer has ended.
func (o *outbox) abandon() []autoAck {
	lost := o.autos
	o.autos, o.chunks = nil, nil
	o.closed = true
	return lost
}
