package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// collectInterval is how often queues are looked at that may be deleted.
	collectInterval = time.Second
	// firstPatience and lastPatience bound the pause before a queue that could not be deleted is looked at again.
	firstPatience = 100 * time.Millisecond
	lastPatience  = 30 * time.Second
	// maxClosing is how many queues are being deleted at once.
	maxClosing = 16
	// handOver is how long the server may take to hand the stream a message that it had accepted for it when the
	// subject went: some instructions of a thread that may not run just then.
	handOver = 100 * time.Millisecond
	// closeTime is how long a subject may be away before the queue is deleted. It is well below takeover: another node
	// that gives the subject back must not do so just before the deletion.
	closeTime = 2 * time.Second
)

var (
	// errNotIdle says that a queue is not to be deleted now.
	errNotIdle = errors.New("not idle")
	// errKept says that a queue is not to be deleted before a subscription has come and gone.
	errKept = errors.New("kept")
)

// collect deletes queues whose last subscription has gone, where they are auto-delete, and idle ones. It never loses a
// stored message: the subject is taken away, then the queue must be empty, or it gets its subject back (DESIGN 4.3).
func (qs *queues) collect() {
	closing := make(chan struct{}, maxClosing)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		wait := collectInterval
		for _, q := range qs.list() {
			wait = min(wait, qs.dueIn(q))
			if !qs.begin(q) {
				continue
			}
			select {
			case closing <- struct{}{}:
			case <-qs.life.Done():
				return
			}
			wg.Go(func() {
				qs.visit(q)
				<-closing
			})
		}
		timer := time.NewTimer(max(wait, 0))
		select {
		case <-qs.wake:
		case <-timer.C:
		case <-qs.life.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// dueIn is when a queue is to be looked at.
func (qs *queues) dueIn(q *queue) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.due.IsZero() || q.visited {
		return collectInterval
	}
	return time.Until(q.due)
}

// begin says whether it is time to look at a queue; the visit must follow.
func (qs *queues) begin(q *queue) bool {
	select {
	case <-q.ready:
	default:
		return false // In the making.
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil || q.settings.Keep || q.visited || q.due.IsZero() || time.Until(q.due) > 0 {
		return false
	}
	q.visited, q.due = true, time.Time{}
	return true
}

// visit deletes a queue if that may be.
func (qs *queues) visit(q *queue) {
	ctx, cancel := context.WithTimeout(qs.life, apiTimeout)
	defer cancel()
	err := qs.tryDelete(ctx, q)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errKept) && !errors.Is(err, errNotIdle) {
		qs.b.log.Warn("idle queue could not be deleted", "stream", q.stream, "err", err)
	}
	q.mu.Lock()
	q.visited = false
	if err != nil && !errors.Is(err, errKept) && q.due.IsZero() {
		q.patience = min(max(2*q.patience, firstPatience), lastPatience)
		q.due = time.Now().Add(q.patience)
	}
	again := !q.due.IsZero()
	q.mu.Unlock()
	if again {
		qs.nudge()
	}
}

// watch makes the collector look at a queue at once.
func (qs *queues) watch(q *queue) {
	q.mu.Lock()
	q.due, q.patience = time.Now(), 0
	q.mu.Unlock()
	qs.nudge()
}

func (qs *queues) nudge() {
	select {
	case qs.wake <- struct{}{}:
	default:
	}
}

// tryDelete deletes a queue that is empty and not used by anybody.
func (qs *queues) tryDelete(ctx context.Context, q *queue) error {
	if err := qs.mayDelete(ctx, q); err != nil {
		return err
	}
	if !q.window.holdUnused() {
		return errNotIdle
	}
	defer q.window.open()
	if !q.window.drain(closeTime) {
		return errNotIdle
	}
	return qs.closeQueue(ctx, q)
}

// mayDelete returns nil if a queue looks as if it could be deleted.
func (qs *queues) mayDelete(ctx context.Context, q *queue) error {
	unused, hadUsers := q.window.free()
	if !unused {
		return errNotIdle
	}
	info, err := qs.b.info(ctx, q.stream)
	if err != nil {
		return notNow(err)
	}
	if !qs.made(q, info.Config) {
		return errKept
	}
	q.mu.Lock()
	q.autoDelete = q.autoDelete || info.Config.Metadata[autoDeleteKey] != ""
	auto := q.autoDelete && hadUsers
	q.mu.Unlock()
	if !auto && qs.b.cfg.Queues.IdleDelete == 0 {
		return errKept
	}
	consumer, err := qs.idle(ctx, q, info)
	if err != nil {
		return err
	}
	if !auto && !qs.longIdle(info, consumer) {
		return errNotIdle
	}
	if _, closing := info.Config.Metadata[closingKey]; closing || qs.used(q) {
		return errNotIdle
	}
	return nil
}

// idle returns the state of the durable of a queue in which nothing is stored and for which nobody waits.
func (qs *queues) idle(ctx context.Context, q *queue, info *jetstream.StreamInfo) (*jetstream.ConsumerInfo, error) {
	if info.State.Msgs > 0 {
		return nil, errNotIdle
	}
	c, err := qs.b.cfg.JS.Consumer(ctx, q.stream, durableName)
	if err != nil {
		return nil, notNow(err)
	}
	if state := c.CachedInfo(); state.NumWaiting == 0 && state.NumAckPending == 0 {
		return state, nil
	}
	return nil, errNotIdle
}

// made says whether a stream is as natstomp makes it for the queue. Somebody else's is not natstomp's to delete.
func (qs *queues) made(q *queue, have jetstream.StreamConfig) bool {
	return have.Metadata[channelKey] == q.channel && slices.Equal(have.Subjects, qs.streamConfig(q).Subjects)
}

// notNow is errNotIdle for what a NATS that is away says, and for what is missing: whoever uses it next reports that.
func notNow(err error) error {
	if awayFor(err) || errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("%w: %s", errNotIdle, err.Error())
	}
	return err
}

// longIdle says whether nothing has happened in a queue for queues.idle_delete.
func (qs *queues) longIdle(info *jetstream.StreamInfo, consumer *jetstream.ConsumerInfo) bool {
	last := info.Created
	for _, at := range []*time.Time{&info.State.LastTime, consumer.Delivered.Last, consumer.AckFloor.Last} {
		if at != nil && at.After(last) {
			last = *at
		}
	}
	return time.Since(last) >= qs.b.cfg.Queues.IdleDelete
}

// closeQueue takes the subject away, and deletes the queue or gives the subject back. The gate is shut.
func (qs *queues) closeQueue(ctx context.Context, q *queue) error {
	qs.closing.Add(1)
	defer qs.closing.Add(-1)
	info, err := qs.b.info(ctx, q.stream)
	if err != nil {
		return notNow(err)
	}
	if !qs.made(q, info.Config) {
		return errNotIdle
	}
	if err := qs.graves.open(ctx); err != nil {
		return notNow(err)
	}
	began, config := time.Now(), info.Config
	// The others must not make the stream anew while it is being deleted: the server would lose the new one's files. Who
	// has not heard this when it makes it is done before the deletion.
	if err := qs.presence.announce(wordClosing, q); err != nil {
		return errors.Join(err, qs.presence.announce(wordOpen, q))
	}
	away := config
	away.Subjects = []string{closedRoot + q.stream}
	away.Metadata = maps.Clone(config.Metadata)
	away.Metadata[closingKey] = qs.presence.node
	if _, err = qs.b.cfg.JS.UpdateStream(ctx, away); err == nil {
		err = qs.deserted(ctx, q, began)
	}
	if errors.Is(err, errOthers) {
		return errors.Join(err, qs.presence.announce(wordOpen, q)) // Another node does the same, and ends it.
	}
	if err == nil {
		if err = qs.remove(ctx, info, began); err == nil {
			qs.forget(q)
			qs.b.deleted.Add(1)
			qs.b.log.Info("queue deleted", "stream", q.stream)
			return qs.presence.announce(wordGone, q)
		}
	}
	return errors.Join(err, qs.reopen(q, config)) // The update may have been done whatever was answered.
}

// errOthers says that another node deletes a queue.
var errOthers = fmt.Errorf("%w: another node deletes it", errNotIdle)

// deserted returns nil if nothing is in a queue whose subject is away, and nobody uses it.
func (qs *queues) deserted(ctx context.Context, q *queue, began time.Time) error {
	qs.b.pause(handOver)
	if time.Since(began) < handOver {
		return ErrStopped
	}
	if err := qs.passed(ctx, q); err != nil {
		return err
	}
	info, err := qs.b.info(ctx, q.stream)
	if err != nil {
		return err
	}
	if info.Config.Metadata[closingKey] != qs.presence.node {
		return errOthers
	}
	if _, err = qs.idle(ctx, q, info); err == nil && qs.used(q) {
		err = errNotIdle
	}
	return err
}

// remove deletes a stream, unless its subject has been away for too long, and sees to it that it is not missed later.
func (qs *queues) remove(ctx context.Context, info *jetstream.StreamInfo, began time.Time) error {
	stream, err := info.Config.Name, error(nil)
	if qs.b.cfg.External != nil {
		err = qs.graves.dig(ctx, info)
	} else if forget := qs.b.cfg.Queues.ForgetMark; forget != nil {
		err = forget(stream)
	}
	if err == nil && time.Since(began) > closeTime {
		err = errNotIdle
	}
	if err == nil {
		err = qs.b.cfg.JS.DeleteStream(ctx, stream)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = nil
	}
	return err // The deletion may have been done all the same: reopen finds out.
}

// passed returns when the stream has handled everything that the server handed it before: what it is handed waits in a
// queue, and the question, which it refuses, waits behind it. Where a stream has several replicas it keeps what it has
// agreed on with them: so on an external NATS the question is stored, and taken out again.
func (qs *queues) passed(ctx context.Context, q *queue) error {
	ask := &nats.Msg{Subject: closedRoot + q.stream, Header: nats.Header{rollupHeader: {"none"}}}
	if qs.b.cfg.External != nil {
		ask.Header = nats.Header{ttlHeader: {"60"}, nats.ExpectedStreamHdr: {q.stream}}
	}
	answer, err := qs.b.cfg.Data.RequestMsg(ask, presenceTimeout)
	if err != nil {
		return notNow(err)
	}
	err = pubAck(answer)
	switch {
	case qs.b.cfg.External == nil && !refused(err, codeNoRollup), qs.b.cfg.External != nil && err != nil:
		return errors.Join(errNotIdle, err)
	case qs.b.cfg.External == nil:
		return nil
	}
	s, err := qs.b.cfg.JS.Stream(ctx, q.stream)
	if err == nil {
		err = s.DeleteMsg(ctx, ackSequence(answer.Data))
	}
	return err
}

// reopen gives the subject back. SENDs wait for it, though no longer than for anything else; whoever uses the queue
// after that tries again (await).
func (qs *queues) reopen(q *queue, config jetstream.StreamConfig) error {
	for until := time.Now().Add(qs.b.cfg.PublishTimeout); ; {
		ctx, cancel := qs.b.within(apiTimeout)
		_, err := qs.b.cfg.JS.UpdateStream(ctx, config)
		if err == nil {
			err = qs.graves.fill(ctx, q.stream)
		}
		cancel()
		switch {
		case err == nil:
			return qs.presence.announce(wordOpen, q)
		case errors.Is(err, jetstream.ErrStreamNotFound):
			qs.forget(q) // The deletion had been done after all.
			return qs.presence.announce(wordGone, q)
		}
		if qs.b.givenUp() || time.Now().After(until) {
			return err
		}
		qs.b.log.Debug("queue could not be opened again yet", "stream", q.stream, "err", err)
		qs.b.pause(lookInterval)
	}
}

// giveBack gives a subject back that another node took away and left so.
func (qs *queues) giveBack(ctx context.Context, q *queue, have jetstream.StreamConfig) error {
	have.Subjects = qs.streamConfig(q).Subjects
	have.Metadata = maps.Clone(have.Metadata)
	delete(have.Metadata, closingKey)
	_, err := qs.b.cfg.JS.UpdateStream(ctx, have)
	return err
}

// onGone forgets a queue that another node deletes.
func (qs *queues) onGone(stream string) {
	for _, q := range qs.list() {
		if q.stream == stream {
			qs.forget(q)
		}
	}
}

// markAutoDelete makes a queue vanish with its last subscription, on whatever node that is. The caller has joined it.
func (qs *queues) markAutoDelete(q *queue) error {
	q.mu.Lock()
	marked := q.autoDelete
	q.autoDelete = true
	q.mu.Unlock()
	if marked {
		return nil
	}
	if err := qs.b.control.wait(leaveTimeout); err != nil { // The others see that this node uses the queue.
		return err
	}
	ctx, cancel := qs.b.within(apiTimeout)
	defer cancel()
	for {
		here, err := qs.await(ctx, q)
		if err != nil || !here {
			return err
		}
		info, err := qs.b.info(ctx, q.stream)
		if err != nil {
			return err
		}
		if _, closing := info.Config.Metadata[closingKey]; closing {
			continue
		}
		config := info.Config
		config.Metadata = maps.Clone(config.Metadata)
		config.Metadata[autoDeleteKey] = "true"
		_, err = qs.b.cfg.JS.UpdateStream(ctx, config)
		return err
	}
}
