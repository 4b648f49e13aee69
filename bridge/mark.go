package bridge

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// mark says up to which sequence a message of a stream may have been delivered before, whatever the server's count says
// (DESIGN section 4.3, redelivered).
type mark struct {
	upTo       atomic.Uint64
	replicas   atomic.Int32  // of the stream, on an external NATS
	generation atomic.Uint64 // of the control link for which it holds, plus 1; 0: it must be read anew
}

func (m *mark) sequence() uint64 { return m.upTo.Load() }

// set raises the mark.
func (m *mark) set(sequence uint64) { m.upTo.Store(max(m.upTo.Load(), sequence)) }

// markGeneration is what a mark read now holds for.
func (b *Bridge) markGeneration() uint64 { return b.controlGeneration() + 1 }

// marked says that the mark holds, so that messages may be pulled. A stream of one replica keeps delivery counts late:
// after an interruption its last sequence is the mark. With more replicas the server's own count suffices.
func (p *place) marked() bool {
	if p.b.cfg.External == nil || p.mark.replicas.Load() > 1 {
		return true
	}
	return p.mark.generation.Load() == p.b.markGeneration()
}

// interrupted says that the stream's server may be another one from now on, or another run of it.
func (p *place) interrupted() {
	p.mark.generation.Store(0)
	p.b.unseen.forget(p.stream)
}

// remark reads the mark anew, in the background; then the subscriptions pull again.
func (p *place) remark() {
	if !p.checking.CompareAndSwap(false, true) {
		return
	}
	p.b.launch(func() {
		defer p.wake()
		defer p.checking.Store(false)
		generation := p.b.markGeneration()
		ctx, cancel := p.b.within(checkTimeout)
		defer cancel()
		confirmed := p.lane.confirmed()
		info, err := p.b.info(ctx, p.stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = p.verify()
		}
		switch {
		case err != nil:
			p.b.log.Debug("the mark of a stream could not be read", "stream", p.stream, "err", err)
			p.b.pause(pullRetry)
		case info != nil && p.intact(ctx, info, confirmed) == nil:
			p.mark.set(info.State.LastSeq)
			p.mark.replicas.Store(int32(info.Config.Replicas))
			p.mark.generation.Store(generation)
		}
	})
}

// pause waits, or less if the Bridge ends.
func (b *Bridge) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.life.Done():
	}
}
