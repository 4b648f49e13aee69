package connector

import (
	"github.com/natstomp/natstomp/bridge"
)

const (
	// chunkSize is from what size on a chunk is not extended.
	chunkSize = 64 << 10
	// burstSize bounds what is handed to the socket at once.
	burstSize = 256 << 10
	// idleChunk is the largest chunk that a quiet connection keeps.
	idleChunk = 4 << 10
)

// chunk is a run of octets to write. A chunk that is joined holds the continuation of a frame that began in the chunk
// before; one that is shared belongs to several connections and is never written into.
type chunk struct {
	data   []byte
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
	spare    [][]byte
	autos    []autoAck
	appended uint64 // octets ever accepted
	taken    uint64 // octets ever handed to the writer
	written  uint64 // octets ever written
	closed   bool   // nothing more is accepted; the writer ends when all is written
}

// pending is the octets that are not written yet.
func (o *outbox) pending() int { return int(o.appended - o.written) }

// tail returns the buffer to append a frame to; keep takes it back.
func (o *outbox) tail() []byte {
	if n := len(o.chunks); n > 0 {
		if last := &o.chunks[n-1]; !last.shared && len(last.data) < chunkSize {
			return last.data
		}
	}
	var buf []byte
	if n := len(o.spare); n > 0 {
		buf, o.spare = o.spare[n-1][:0], o.spare[:n-1]
	}
	o.chunks = append(o.chunks, chunk{data: buf})
	return buf
}

// keep puts back the buffer that tail returned, extended by whole frames.
func (o *outbox) keep(buf []byte) {
	last := &o.chunks[len(o.chunks)-1]
	o.appended += uint64(len(buf) - len(last.data))
	last.data = buf
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

// done counts a burst as written, keeps its buffers for the next and returns the deliveries that it settled.
func (o *outbox) done(burst []chunk) []autoAck {
	o.written = o.taken
	size := 0
	for _, c := range burst {
		size += len(c.data)
	}
	limit, most := idleChunk, 1
	if size >= chunkSize/2 {
		limit, most = 2*chunkSize, 2
	}
	kept := o.spare[:0]
	for _, b := range o.spare {
		if cap(b) <= limit && len(kept) < most {
			kept = append(kept, b)
		}
	}
	for _, c := range burst {
		if !c.shared && cap(c.data) <= limit && len(kept) < most {
			kept = append(kept, c.data[:0])
		}
	}
	o.spare = kept
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
	o.appended = o.taken
	n := 0
	for n < len(o.autos) && o.autos[n].end <= o.taken {
		n++
	}
	lost := append([]autoAck(nil), o.autos[n:]...)
	o.autos = o.autos[:n]
	return lost
}

// abandon returns all deliveries that are not known to be written. The writer has ended.
func (o *outbox) abandon() []autoAck {
	lost := o.autos
	o.autos, o.chunks, o.spare = nil, nil, nil
	o.closed = true
	return lost
}
