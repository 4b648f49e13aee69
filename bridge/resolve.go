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
	// stillSure is for how long the subject of a node that seems dead is left away on an external NATS, where its last
	// request, to delete the stream, may still be under way.
	stillSure = 2 * closeTime
)

// park keeps a parcel that met a queue without subject until it is known what became of the queue. False: the parcel
// has no time left, or nobody ever takes this queue's subject away.
func (b *Bridge) park(to *place, p *parcel) bool {
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
	if begin && !b.launch(func() { b.resolve(q) }) {
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
func (b *Bridge) resolve(q *queue) {
	if q.window.hold() {
		q.window.drain(b.cfg.PublishTimeout)
	}
	err := q.verify()
	for _, p := range q.unpark() {
		switch {
		case err == nil:
			b.dispatch(q.place, p)
		case errors.Is(err, errReplaced):
			b.redirect(q, p)
		default:
			p.finish(q.place, err)
		}
	}
	q.window.open()
}

// forward sends on, in order, what waits for an external NATS and a queue that natstomp has deleted.
func (b *Bridge) forward(q *queue) {
	for _, p := range q.lane.take() {
		if len(p.msgs) > 1 {
			<-q.batches
		}
		b.redirect(q, p)
	}
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
	w := waiting{qs: qs, q: q}
	for {
		if q.window.gone() {
			return false, nil
		}
		info, err := qs.b.info(ctx, q.stream)
		switch {
		case err == nil:
			here, err = w.found(ctx, info.Config)
			if here || err != nil {
				return here, err
			}
		case errors.Is(err, jetstream.ErrStreamNotFound):
			deleted, err := w.missing(ctx)
			if deleted || err != nil {
				return false, err
			}
		case ctx.Err() != nil:
			return false, ErrTimeout
		}
		qs.b.pause(lookInterval)
		if qs.b.ending() {
			return false, ErrStopped
		}
	}
}

// waiting is one await.
type waiting struct {
	qs        *queues
	q         *queue
	away      time.Time // since when the subject is, at least
	goneSince time.Time // the same for the stream
}

// found looks at the stream, which is there. Here: with its subject.
func (w *waiting) found(ctx context.Context, have jetstream.StreamConfig) (here bool, err error) {
	w.goneSince = time.Time{}
	w.qs.presence.found(w.q.stream)
	closer, closing := have.Metadata[closingKey]
	channel, known := have.Metadata[channelKey]
	switch {
	case channel != w.q.channel && (known || w.qs.b.cfg.External == nil):
		return false, fmt.Errorf("%w: %s belongs to %q", ErrQueueName, w.q.stream, channel)
	case slices.Contains(have.Subjects, w.q.subject):
		return true, nil
	case !closing:
		return false, fmt.Errorf("%w: %s has the subjects %q", ErrQueueName, w.q.stream, have.Subjects)
	}
	if w.away.IsZero() {
		w.away = time.Now()
	}
	since := time.Since(w.away)
	sure := w.qs.b.cfg.External == nil || since > stillSure
	if since > takeover || sure && !w.qs.alive(closer) {
		return false, w.qs.giveBack(ctx, w.q, have)
	}
	return false, nil
}

// missing looks for who has deleted the stream, which is not there.
func (w *waiting) missing(ctx context.Context) (deleted bool, err error) {
	if w.goneSince.IsZero() {
		w.goneSince = w.qs.presence.missingSince(w.q.stream)
	}
	since := time.Since(w.goneSince)
	closers := w.qs.presence.closers(w.q.stream)
	switch {
	case len(closers) > 0 && (since > goneLate || since > goneGrace && !slices.ContainsFunc(closers, w.qs.alive)):
		w.qs.presence.settled(w.q.stream)
		return true, nil
	case len(closers) == 0 && since > goneGrace && w.qs.b.cfg.External == nil:
		return false, ErrNoStream
	case len(closers) == 0 && since > certainty:
		if deleted, err = w.qs.graves.has(ctx, w.q); err == nil && !deleted {
			err = ErrNoStream
		}
		if err != nil && !errors.Is(err, ErrNoStream) && ctx.Err() == nil {
			err = nil // Asked again.
		}
		return deleted, err
	}
	return false, nil
}

// forget takes a queue that natstomp deleted off the list, so that its next use makes it anew. Whatever waits for it
// goes on with the new one.
func (qs *queues) forget(q *queue) {
	qs.mu.Lock()
	if qs.known[q.channel] == q {
		delete(qs.known, q.channel)
	}
	qs.mu.Unlock()
	qs.b.places.dropIf(q.place)
	q.window.goAway()
	q.relink()
	if qs.b.cfg.External != nil {
		qs.b.launch(func() { qs.b.forward(q) })
	}
}

func (q *queue) route() router.Route {
	return router.Route{Pattern: router.Queues, Channel: q.channel, Subject: q.subject}
}
