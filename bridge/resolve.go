package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/router"
)

const (
	// lookInterval is how often a queue whose subject is away is looked at.
	lookInterval = 20 * time.Millisecond
	// takeover is after what time a node gives back a subject that another one took away and seems to have forgotten.
	takeover = 10 * time.Second
	// goneGrace is how long the word that a queue was deleted may take from the node that did it, and goneLate after what
	// time that word is no longer waited for.
	goneGrace = time.Second
	goneLate  = 5 * time.Second
)

// park keeps a parcel that met a queue without subject until it is known what became of the queue. False: the parcel
// has no time left, or nobody ever takes this queue's subject away.
func (b *Bridge) park(to *place, p *parcel, err error) bool {
	q := to.queue
	if q == nil || time.Now().After(p.until) {
		return false
	}
	q.mu.Lock()
	q.parked = append(q.parked, p)
	begin := !q.resolving
	q.resolving = true
	q.mu.Unlock()
	q.window.park(len(p.msgs))
	if begin && !b.launch(func() { b.resolve(q, err) }) {
		for _, p := range q.unpark() {
			p.finish(q.place, ErrStopped)
		}
	}
	return true
}

// unpark returns what is parked, for whoever sends it on.
func (q *queue) unpark() []*parcel {
	q.mu.Lock()
	defer q.mu.Unlock()
	parked := q.parked
	q.parked, q.resolving = nil, false
	n := 0
	for _, p := range parked {
		n += len(p.msgs)
	}
	q.window.park(-n)
	return parked
}

// resolve finds out what became of a queue and sends on what is parked, in its order, before anything new.
func (b *Bridge) resolve(q *queue, cause error) {
	here := q.window.hold()
	q.window.drain(b.cfg.PublishTimeout)
	err := error(nil)
	if here {
		ctx, cancel := context.WithTimeout(context.Background(), b.cfg.PublishTimeout)
		here, err = b.queues.await(ctx, q)
		cancel()
	}
	if !here && err == nil {
		b.queues.forget(q)
	}
	if errors.Is(err, ErrNoStream) {
		err = cause
	}
	for _, p := range q.unpark() {
		switch {
		case err != nil:
			p.finish(q.place, err)
		case here:
			b.dispatch(q.place, p)
		default:
			b.redirect(q, p)
		}
	}
	q.window.open()
}

// redirect sends a parcel to the queue that takes the place of one that was deleted.
func (b *Bridge) redirect(old *queue, p *parcel) {
	for {
		q, err := b.queues.get(old.route(), false)
		if err != nil {
			p.finish(old.place, err)
			return
		}
		if q.window.enter(len(p.msgs), p.size) {
			old.window.leave(len(p.msgs), p.size)
			b.dispatch(q.place, p)
			return
		}
	}
}

// await waits until a queue's stream has its subject (here), or natstomp has deleted it (not here). Whoever took the
// subject away does one of both within moments, unless it died: then the subject is given back from here.
func (qs *queues) await(ctx context.Context, q *queue) (here bool, err error) {
	var away, missing time.Time
	for {
		if q.window.gone() {
			return false, nil
		}
		info, err := qs.info(ctx, q.stream)
		now := time.Now()
		switch {
		case err == nil && info.Config.Metadata[channelKey] != q.channel:
			return false, fmt.Errorf("%w: it belongs to %q", ErrQueueName, info.Config.Metadata[channelKey])
		case err == nil && slices.Contains(info.Config.Subjects, q.subject):
			return true, nil
		case err == nil && info.Config.Metadata[closingKey] == "":
			return false, fmt.Errorf("%w: it has the subjects %q", ErrQueueName, info.Config.Subjects)
		case err == nil:
			missing = time.Time{}
			if away.IsZero() {
				away = now
			}
			if now.Sub(away) > takeover || !qs.alive(info.Config.Metadata[closingKey]) {
				if err := qs.giveBack(ctx, q, info.Config); err != nil {
					return false, err
				}
			}
		case errors.Is(err, jetstream.ErrStreamNotFound):
			if missing.IsZero() {
				missing = now
			}
			closer := qs.presence.closer(q.stream)
			since := now.Sub(missing)
			switch {
			case closer == "" && since > goneGrace:
				return false, ErrNoStream
			case closer != "" && (since > goneLate || since > goneGrace && !qs.alive(closer)):
				qs.presence.settled(q.stream)
				return false, nil
			}
		case ctx.Err() != nil:
			return false, ErrTimeout
		}
		qs.b.pause(lookInterval)
		select {
		case <-qs.b.quit:
			return false, ErrStopped
		default:
		}
	}
}

// info is the state of a stream.
func (qs *queues) info(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	s, err := qs.b.cfg.JS.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// forget takes a queue that natstomp deleted off the list, so that its next use makes it anew.
func (qs *queues) forget(q *queue) {
	qs.mu.Lock()
	if qs.known[q.channel] == q {
		delete(qs.known, q.channel)
	}
	qs.mu.Unlock()
	q.window.goAway()
}

func (q *queue) route() router.Route {
	return router.Route{Pattern: router.Queues, Channel: q.channel, Subject: q.subject}
}
