package connector

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/connector/internal/pressure"
)

// largeFrame is the size from which a frame, whatever it is, waits for memory: only a SEND has a body.
const largeFrame = 64 << 10

// reader reads from the socket under the deadline that the session's state asks for. While memory is short it stops at a
// SEND, and within a large frame (DESIGN section 7, memory_limit).
type reader struct {
	conn   net.Conn
	octets *atomic.Uint64
	memory *pressure.Guard
	over   chan struct{} // closed when nothing more will be read

	// Owned by the reader goroutine.
	until   time.Time     // an absolute deadline, until CONNECT
	silence time.Duration // the longest silence, 0: none
	unread  int           // octets read since the last whole frame

	mu      sync.Mutex
	stopped bool // guarded by mu
	ended   bool // guarded by mu; over is closed
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.unread > largeFrame && !r.memory.Wait(r.over) {
		return 0, os.ErrDeadlineExceeded
	}
	if err := r.arm(); err != nil {
		return 0, err
	}
	n, err := r.conn.Read(p)
	r.octets.Add(uint64(n))
	r.unread += n
	return n, err
}

// frame notes a whole frame. A SEND may have to wait; false: the session is over.
func (r *reader) frame(command frame.Command) bool {
	r.unread = 0
	return command != frame.Send || r.memory.Wait(r.over)
}

func (r *reader) arm() error {
	deadline := r.until
	if deadline.IsZero() && r.silence > 0 {
		deadline = time.Now().Add(r.silence)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return os.ErrDeadlineExceeded
	}
	return r.conn.SetReadDeadline(deadline)
}

// interrupt ends the read that is under way and all further ones.
func (r *reader) interrupt() {
	r.end()
	r.mu.Lock()
	r.stopped = true
	_ = r.conn.SetReadDeadline(time.Unix(1, 0)) // Fails only on a closed socket.
	r.mu.Unlock()
}

// end lets a read that waits for memory go on.
func (r *reader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.ended = true
		close(r.over)
	}
}

func (r *reader) interrupted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}
