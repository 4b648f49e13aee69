package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// checkTimeout bounds one look at a stream.
	checkTimeout = 5 * time.Second
	// certainty is the time between the two looks after which a stream of an external NATS counts as gone: a server that
	// has just started may not know all of them.
	certainty = 2 * time.Second
)

// losses are the streams of natstomp's own that this node knew and NATS has no more. They are never made again silently,
// until Forget.
type losses struct {
	any atomic.Bool // there is one

	mu      sync.Mutex
	streams map[string]string // guarded by mu; with what is wrong
}

func (l *losses) has(stream string) bool {
	if !l.any.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, lost := l.streams[stream]
	return lost
}

// hasQueue is has for the stream of a queue's channel. It is asked for each SEND, and the name of the stream is a hash.
func (l *losses) hasQueue(channel string) bool { return l.any.Load() && l.has(QueueStream(channel)) }

// put notes a loss. false: it was known.
func (l *losses) put(stream, why string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.streams[stream]; known {
		return false
	}
	if l.streams == nil {
		l.streams = make(map[string]string)
	}
	l.streams[stream] = why
	l.any.Store(true)
	return true
}

func (l *losses) take(stream string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.streams[stream]
	delete(l.streams, stream)
	l.any.Store(len(l.streams) > 0)
	return known
}

func (l *losses) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.streams))
}

func (l *losses) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, stream := range slices.Sorted(maps.Keys(l.streams)) {
		list = append(list, fmt.Sprintf("stream %s is gone (%s)", stream, l.streams[stream]))
	}
	return list
}

// Gone lists what this node knew and NATS has no more, with a text for the operator each. Such a queue answers with an
// ERROR, and is never made again silently, until Forget.
func (b *Bridge) Gone() []string { return b.gone.list() }

// Forget lets a stream that is gone be made anew at its next use. name is its name, or the channel of a queue in dot
// form. false: no such stream is gone.
func (b *Bridge) Forget(name string) (bool, error) {
	stream := name
	if !b.gone.has(stream) {
		stream = QueueStream(name)
	}
	if !b.gone.has(stream) {
		return false, nil
	}
	b.places.drop(stream)
	b.queues.drop(stream)
	b.store.drop(stream)
	b.delays.drop(stream)
	b.gone.take(stream) // Last: from now on it may be made.
	b.log.Warn("a stream that is gone was forgotten", "stream", stream)
	if b.cfg.Queues.ForgetMark != nil {
		return true, b.cfg.Queues.ForgetMark(stream)
	}
	return true, nil
}

// miss notes that a stream is gone and ends what waits for it.
func (b *Bridge) miss(stream, why string) {
	if b.gone.put(stream, why) {
		b.log.Error("a stream is gone: natstomp queues forget lets it be made anew", "stream", stream, "why", why)
	}
	if p := b.places.find(stream); p != nil {
		p.fail()
	}
}

// fail ends what waits for a stream that is gone.
func (p *place) fail() {
	p.lane.fail(p.gone())
	for _, f := range p.followers() {
		f.removed(p.gone())
	}
}

// places are the streams that this node knows, natstomp's own and those that destinations are bound to.
type places struct {
	mu       sync.Mutex
	byStream map[string]*place // guarded by mu
}

func (ps *places) put(p *place) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.byStream == nil {
		ps.byStream = make(map[string]*place)
	}
	ps.byStream[p.stream] = p
}

func (ps *places) find(stream string) *place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.byStream[stream]
}

func (ps *places) drop(stream string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.byStream, stream)
}

// dropIf is drop unless the stream has another place by now.
func (ps *places) dropIf(p *place) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.byStream[p.stream] == p {
		delete(ps.byStream, p.stream)
	}
}

func (ps *places) all() []*place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return slices.Collect(maps.Values(ps.byStream))
}

// found notes that the stream is there.
func (p *place) found(info *jetstream.StreamInfo) {
	p.created.Store(info.Created.UnixNano())
	if p.b.cfg.External == nil {
		if p.bound {
			p.mark.set(p.b.unclean(info))
		}
	} else {
		p.mark.replicas.Store(int32(info.Config.Replicas))
		if p.b.controlGeneration() == p.b.joined.Load() {
			p.mark.generation.Store(p.b.markGeneration()) // No interruption so far.
		}
	}
	p.b.places.put(p)
}

// suspect looks, in the background, whether the stream is there. It does not block.
func (p *place) suspect() {
	if p.stream == "" || !p.checking.CompareAndSwap(false, true) {
		return
	}
	p.b.launch(func() {
		defer p.wake()
		defer p.checking.Store(false)
		if err := p.verify(); err != nil && !errors.Is(err, p.gone()) && !errors.Is(err, errReplaced) {
			p.b.log.Debug("a stream could not be looked at", "stream", p.stream, "err", err)
			p.b.pause(pullRetry)
		}
		p.b.care.hurry()
	})
}

// errReplaced says that natstomp has deleted a queue: its next use makes it anew.
var errReplaced = errors.New("the queue was deleted for not being used")

// verify returns nil if the stream is there, gone's error if it is gone for good, errReplaced if natstomp has deleted it,
// and any other if that is not known.
func (p *place) verify() error {
	ctx, cancel := p.b.within(max(2*checkTimeout, p.b.cfg.PublishTimeout))
	defer cancel()
	if p.queue != nil {
		here, err := p.b.queues.await(ctx, p.queue)
		switch {
		case errors.Is(err, ErrNoStream):
			return p.lose("NATS has no such stream")
		case err != nil:
			return err
		case !here:
			p.b.queues.forget(p.queue)
			return errReplaced
		}
	}
	confirmed := p.lane.confirmed()
	info, err := p.b.info(ctx, p.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) && p.b.cfg.External != nil {
		p.b.pause(certainty)
		if p.b.ending() {
			return ErrStopped
		}
		info, err = p.b.info(ctx, p.stream)
	}
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound) && p.queue != nil:
		return ErrTimeout // It went just now.
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return p.lose("NATS has no such stream")
	case err != nil:
		return err
	}
	return p.intact(ctx, info, confirmed)
}

// lose says that the stream is gone. One that is not natstomp's own is no matter of readiness: it was never natstomp's to
// make.
func (p *place) lose(why string) error {
	if p.bound {
		p.fail()
	} else {
		p.b.miss(p.stream, why)
	}
	return p.gone()
}

// intact returns gone's error if the stream has gone back behind what it had confirmed when it was asked for, or is
// another one, and errReplaced if that took the place of one that natstomp has deleted.
func (p *place) intact(ctx context.Context, info *jetstream.StreamInfo, confirmed uint64) error {
	created := p.created.Load()
	if p.queue != nil && p.b.cfg.External != nil && created != 0 && created != info.Created.UnixNano() {
		switch replaced, err := p.b.queues.graves.has(ctx, p.queue); {
		case err != nil:
			return err
		case !replaced:
			return p.lose("it was deleted and made anew by somebody else")
		}
		p.b.queues.forget(p.queue)
		return errReplaced
	}
	if info.State.LastSeq >= confirmed {
		return nil
	}
	return p.lose(fmt.Sprintf("it ends at sequence %d, but %d was confirmed", info.State.LastSeq, confirmed))
}

func (b *Bridge) info(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	s, err := b.cfg.JS.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// audit looks whether all streams that this node knows are there, and the durable subscriptions it reads from, after a
// link has come back.
func (b *Bridge) audit() {
	ctx, cancel := b.within(2 * checkTimeout)
	defer cancel()
	names := b.cfg.JS.StreamNames(ctx)
	there := make(map[string]bool)
	for name := range names.Name() {
		there[name] = true
	}
	if err := names.Err(); err != nil {
		b.log.Debug("the streams could not be listed", "err", err)
		return
	}
	for _, p := range b.places.all() {
		if !there[p.stream] || p.mark.replicas.Load() == 1 && p.lane.confirmed() > 0 {
			p.suspect()
		}
	}
	b.attached.audit()
}
