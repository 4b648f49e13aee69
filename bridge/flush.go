package bridge

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// flushTimeout bounds one round trip to the server; after it the next is tried.
	flushTimeout = 2 * time.Second
	// flushPause is the time between two round trips of which the first failed.
	flushPause = 50 * time.Millisecond
)

// flusher answers "the server has everything sent so far on this connection" to any number of askers with one round
// trip at a time: who asks during a round trip is answered by the next. Where the link breaks it waits for the next
// one: whether what was sent before went over the same link is for the asker to know.
type flusher struct {
	nc      *nats.Conn
	timeout time.Duration
	wake    chan struct{}

	mu      sync.Mutex
	waiting []asker // guarded by mu
}

type asker struct {
	until time.Time
	done  func(error)
}

func newFlusher(nc *nats.Conn, timeout time.Duration) *flusher {
	return &flusher{nc: nc, timeout: timeout, wake: make(chan struct{}, 1)}
}

// after calls done when the server has processed all that was sent on the connection before this call, or with the
// error that prevented it: ErrTimeout when the link was down for too long. done must not block.
func (f *flusher) after(done func(error)) {
	f.mu.Lock()
	f.waiting = append(f.waiting, asker{time.Now().Add(f.timeout), done})
	f.mu.Unlock()
	f.kick()
}

func (f *flusher) kick() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// wait is after for a caller that may block, no longer than the limit.
func (f *flusher) wait(limit time.Duration) error {
	result := make(chan error, 1)
	f.after(func(err error) { result <- err })
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C:
		return ErrTimeout
	}
}

func (f *flusher) run(b *Bridge) {
	for {
		select {
		case <-f.wake:
			f.round(b)
		case <-b.stop:
			f.round(b)
			return
		}
	}
}

func (f *flusher) round(b *Bridge) {
	f.mu.Lock()
	waiting := f.waiting
	f.waiting = nil
	f.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	err := ErrTimeout
	if !f.nc.IsReconnecting() {
		err = f.nc.FlushTimeout(flushTimeout)
	}
	switch {
	case err == nil || f.nc.IsClosed():
	case b.ending():
		err = ErrStopped
	default:
		f.again(b, waiting)
		return
	}
	for _, a := range waiting {
		a.done(err)
	}
}

// again puts askers back whose round trip failed, except those who have waited for too long.
func (f *flusher) again(b *Bridge, waiting []asker) {
	now := time.Now()
	var late, left []asker
	for _, a := range waiting {
		if now.After(a.until) {
			late = append(late, a)
		} else {
			left = append(left, a)
		}
	}
	f.mu.Lock()
	f.waiting = append(left, f.waiting...)
	f.mu.Unlock()
	for _, a := range late {
		a.done(ErrTimeout)
	}
	if len(left) == 0 {
		return
	}
	pause := time.NewTimer(flushPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-b.life.Done():
	}
	f.kick()
}
