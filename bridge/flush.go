package bridge

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// flushTimeout bounds one round trip to the server.
const flushTimeout = 10 * time.Second

// flusher answers "the server has everything sent so far on this connection" to any number of askers with one round
// trip at a time: who asks during a round trip is answered by the next.
type flusher struct {
	nc   *nats.Conn
	wake chan struct{}

	mu      sync.Mutex
	waiting []func(error) // guarded by mu
}

func newFlusher(nc *nats.Conn) *flusher {
	return &flusher{nc: nc, wake: make(chan struct{}, 1)}
}

// after calls done when the server has processed all that was sent on the connection before this call, or with the
// error that prevented it. done must not block.
func (f *flusher) after(done func(error)) {
	f.mu.Lock()
	f.waiting = append(f.waiting, done)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// wait is after for a caller that may block.
func (f *flusher) wait() error {
	result := make(chan error, 1)
	f.after(func(err error) { result <- err })
	return <-result
}

func (f *flusher) run(stop <-chan struct{}) {
	for {
		select {
		case <-f.wake:
			f.round()
		case <-stop:
			f.round()
			return
		}
	}
}

func (f *flusher) round() {
	f.mu.Lock()
	waiting := f.waiting
	f.waiting = nil
	f.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	err := f.nc.FlushTimeout(flushTimeout)
	for _, done := range waiting {
		done(err)
	}
}
