package bench_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// bodySize is the size of every message's body (DESIGN section 12).
const bodySize = 256

// grace is how long messages may be on the way after the last was sent.
const grace = 10 * time.Second

// A sink counts what one receiver has got, and lets one sender wait for a count.
type sink struct {
	got  atomic.Int64
	want atomic.Int64 // the count that the sender waits for, 0: it does not
	wake chan struct{}
	seen func(from, to int64) // told the numbers of the messages that have come; nil: nobody asks
}

func newSink() *sink { return &sink{wake: make(chan struct{}, 1)} }

// add counts n more. One goroutine at a time calls it.
func (s *sink) add(n int) {
	if n == 0 {
		return
	}
	if s.seen != nil {
		got := s.got.Load()
		s.seen(got, got+int64(n))
	}
	got := s.got.Add(int64(n))
	if want := s.want.Load(); want > 0 && got >= want && s.want.CompareAndSwap(want, 0) {
		s.wake <- struct{}{}
	}
}

// A peer is one way to do the work of a benchmark.
type peer struct {
	name  string
	send  func(n int) error // hands over n messages, batch at most
	batch int
	sinks []*sink

	sent    int64
	closing atomic.Bool
	broken  chan struct{} // closed by the first fault
	once    sync.Once
	fault   error
	readers sync.WaitGroup
	closers []func()
}

func newPeer(name string) *peer { return &peer{name: name, broken: make(chan struct{})} }

// sink adds a receiver.
func (p *peer) sink() *sink {
	s := newSink()
	p.sinks = append(p.sinks, s)
	return s
}

// fail records what ends the peer's work.
func (p *peer) fail(err error) {
	if p.closing.Load() {
		return
	}
	p.once.Do(func() {
		p.fault = fmt.Errorf("%s: %w", p.name, err)
		close(p.broken)
	})
}

// read runs a reader, which ends with an error, at the latest when its connection is closed.
func (p *peer) read(f func() error) { p.readers.Go(func() { p.fail(f()) }) }

// onClose adds what ends a connection.
func (p *peer) onClose(f func()) { p.closers = append(p.closers, f) }

func (p *peer) close() {
	p.closing.Store(true)
	for _, f := range p.closers {
		f()
	}
	p.readers.Wait()
}

// await waits until s has got count messages.
func (p *peer) await(ctx context.Context, s *sink, count int64) error {
	if s.got.Load() >= count {
		return nil
	}
	s.want.Store(count)
	if s.got.Load() >= count && s.want.CompareAndSwap(count, 0) {
		return nil
	}
	select {
	case <-s.wake:
		return nil
	case <-p.broken:
		return p.fault
	case <-ctx.Done():
		return fmt.Errorf("%s: %d of %d messages are missing", p.name, count-s.got.Load(), p.sent)
	}
}

// awaitAll waits until every receiver has got count messages.
func (p *peer) awaitAll(ctx context.Context, count int64) error {
	for _, s := range p.sinks {
		if err := p.await(ctx, s, count); err != nil {
			return err
		}
	}
	return nil
}

// flow sends for d, never with more than inFlight messages on the way to the slowest receiver, so that no server has a
// reason to drop any, and waits until all have come. It returns how many were sent and how long that took.
func (p *peer) flow(inFlight int, d time.Duration) (int64, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+grace)
	defer cancel()
	first, start := p.sent, time.Now()
	for time.Since(start) < d {
		if err := p.awaitAll(ctx, p.sent+int64(p.batch-inFlight)); err != nil {
			return 0, 0, err
		}
		if err := p.send(p.batch); err != nil {
			return 0, 0, err
		}
		p.sent += int64(p.batch)
	}
	if err := p.awaitAll(ctx, p.sent); err != nil {
		return 0, 0, err
	}
	took := time.Since(start)
	return p.sent - first, took, p.complete()
}

// complete checks that every receiver has got all messages, and none twice.
func (p *peer) complete() error {
	for _, s := range p.sinks {
		if lost := p.sent - s.got.Load(); lost != 0 {
			return fmt.Errorf("%s: lost=%d of %d messages, want 0", p.name, lost, p.sent)
		}
	}
	return nil
}
