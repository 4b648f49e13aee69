package bridge

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

var (
	// ErrTimeout says that NATS did not answer in time; whether it has the message is not known.
	ErrTimeout = errors.New("NATS did not answer in time")
	// ErrStopped says that the bridge ended before the answer came.
	ErrStopped = errors.New("stopped")
)

// sweepInterval is how often overdue replies are looked for.
const sweepInterval = 250 * time.Millisecond

// replies is one inbox for the answers to many requests: the last token of the reply subject tells which one.
type replies struct {
	nc      *nats.Conn
	timeout time.Duration
	prefix  string
	sub     *nats.Subscription

	mu      sync.Mutex
	next    uint64                            // guarded by mu
	pending map[uint64]func(*nats.Msg, error) // guarded by mu
	order   []expiry                          // guarded by mu; by deadline, since all wait equally long
	stopped bool                              // guarded by mu; nothing is waited for any more
}

type expiry struct {
	token    uint64
	deadline time.Time
}

func newReplies(nc *nats.Conn, timeout time.Duration) *replies {
	return &replies{
		nc:      nc,
		timeout: timeout,
		prefix:  nc.NewInbox() + ".",
		pending: make(map[uint64]func(*nats.Msg, error)),
	}
}

func (r *replies) start() error {
	sub, err := r.nc.Subscribe(r.prefix+"*", r.receive)
	if err != nil {
		return err
	}
	r.sub = sub
	return sub.SetPendingLimits(-1, -1) // Bounded by what is asked for.
}

// expect returns the reply subject of a request whose answer, or fault, done is called with exactly once. done must not
// block and must not keep the message.
func (r *replies) expect(done func(*nats.Msg, error)) string {
	r.mu.Lock()
	r.next++
	token, stopped := r.next, r.stopped
	if !stopped {
		r.pending[token] = done
		r.order = append(r.order, expiry{token, time.Now().Add(r.timeout)})
	}
	r.mu.Unlock()
	if stopped {
		done(nil, ErrStopped)
	}
	var room [64]byte
	return string(strconv.AppendUint(append(room[:0], r.prefix...), token, 36))
}

// cancel answers a request that could not be sent.
func (r *replies) cancel(reply string, err error) {
	if done := r.take(reply); done != nil {
		done(nil, err)
	}
}

func (r *replies) receive(m *nats.Msg) {
	if done := r.take(m.Subject); done != nil {
		done(m, nil)
	}
}

func (r *replies) take(subject string) func(*nats.Msg, error) {
	token, err := strconv.ParseUint(subject[len(r.prefix):], 36, 64)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	done := r.pending[token]
	delete(r.pending, token)
	return done
}

func (r *replies) sweep(stop <-chan struct{}) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			r.expire(func(e expiry) bool { return !e.deadline.After(now) }, ErrTimeout)
		case <-stop:
			r.mu.Lock()
			r.stopped = true
			r.mu.Unlock()
			r.expire(func(expiry) bool { return true }, ErrStopped)
			return
		}
	}
}

func (r *replies) expire(due func(expiry) bool, err error) {
	var late []func(*nats.Msg, error)
	r.mu.Lock()
	n := 0
	for ; n < len(r.order); n++ {
		e := r.order[n]
		done, open := r.pending[e.token]
		if !open {
			continue
		}
		if !due(e) {
			break
		}
		delete(r.pending, e.token)
		late = append(late, done)
	}
	r.order = append(r.order[:0], r.order[n:]...)
	r.mu.Unlock()
	for _, done := range late {
		done(nil, err)
	}
}

func (r *replies) stop() {
	if r.sub != nil {
		_ = r.sub.Unsubscribe() // Fails only when the connection is gone, and then it is done.
	}
}
