package bridge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/router"
)

const (
	// moverSearch is how often a node that has sent nothing delayed looks whether others have.
	moverSearch = 5 * time.Second
	// moverBatch and moverBytes bound what is moved at once.
	moverBatch = 16
	moverBytes = 8 << 20
	// moverWait is how long one pull waits; on an external NATS it may be lost with the server that has it.
	moverWait         = 20 * time.Second
	moverWaitExternal = 2 * time.Second
	// moverEnd is what a stop waits for what is being moved.
	moverEnd         = 2 * time.Second
	moverEndExternal = 500 * time.Millisecond
	// moverAgain is the pause after a fault, such as a stream whose leader is being elected.
	moverAgain = 500 * time.Millisecond
	// moverRetry and moverRetryMax bound the pause before a message that could not be moved is tried again.
	moverRetry    = time.Second
	moverRetryMax = 30 * time.Second
	// fullRetryMax bounds it where the queue is full: somebody is at work on that.
	fullRetryMax = 5 * time.Second
	// onceTTL is how long a marker is kept that could not be removed, in seconds: a week.
	onceTTL = "604800"
)

// begin launches the mover.
func (d *delays) begin() {
	ended := make(chan struct{})
	run := func() {
		defer close(ended)
		d.run()
	}
	if d.b.launch(run) {
		d.ended = ended
	}
}

// stop ends the mover when it has done with what it has in hand, or soon: the next mover gets the rest.
func (d *delays) stop(ctx context.Context) {
	close(d.halt)
	if d.ended == nil {
		return
	}
	limit := moverEnd
	if d.b.cfg.External != nil { // It may be away.
		limit = moverEndExternal
	}
	brief, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-d.ended:
	case <-brief.Done():
	}
}

// run moves what is due until it is stopped. All nodes do so at once, through one durable.
func (d *delays) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer d.marked.Wait()
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		select {
		case <-d.halt:
			cancel()
		case <-ctx.Done():
		}
	})
	var c jetstream.Consumer // the latest that was found
	for ctx.Err() == nil {
		found, err := d.find(ctx)
		if err == nil {
			c = found
		}
		// Who cannot look it up can pull all the same: of a stream whose leader is being elected nobody says anything.
		if c != nil && !missing(err) {
			err = d.move(ctx, c)
		}
		pause := moverSearch
		if !missing(err) {
			pause = moverAgain
			if err != nil && ctx.Err() == nil && !awayFor(err) {
				d.b.log.Warn("delayed messages cannot be moved", "err", err)
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-d.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// find looks for the durable.
func (d *delays) find(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, moverWaitExternal)
	defer cancel()
	return d.b.cfg.JS.Consumer(ctx, delayStream, moverName)
}

// missing says that nobody has sent anything delayed yet.
func missing(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrConsumerNotFound)
}

// move takes what is due and moves it, the queues side by side.
func (d *delays) move(ctx context.Context, c jetstream.Consumer) error {
	for ctx.Err() == nil {
		due, err := d.take(ctx, c)
		if err != nil {
			return err
		}
		byQueue := make(map[string][]jetstream.Msg)
		for _, m := range due {
			byQueue[m.Subject()] = append(byQueue[m.Subject()], m)
		}
		var wg sync.WaitGroup
		for _, msgs := range byQueue {
			wg.Go(func() { d.moveTo(msgs) })
		}
		wg.Wait()
	}
	return nil
}

// take waits for messages that are due.
func (d *delays) take(ctx context.Context, c jetstream.Consumer) ([]jetstream.Msg, error) {
	limit := moverWait
	if d.b.cfg.External != nil {
		limit = moverWaitExternal
	}
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	first, err := c.Next(jetstream.FetchContext(wait))
	if err != nil {
		if errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		return nil, err
	}
	due := []jetstream.Msg{first}
	if more, err := c.FetchNoWait(moverBatch - 1); err == nil {
		for m := range more.Messages() {
			due = append(due, m)
		}
	}
	return due, nil
}

// moveTo moves messages to their one queue.
func (d *delays) moveTo(due []jetstream.Msg) {
	now := time.Now()
	live := due[:0]
	for _, m := range due {
		switch wait := untilDue(m, now); {
		case wait > 0:
			d.after(m, m.NakWithDelay(wait)) // Another clock than that of the server.
		case dead(m, now):
			d.b.expired.Add(1)
			d.after(m, m.Ack())
		default:
			live = append(live, m)
		}
	}
	for len(live) > 0 {
		n, octets := 0, 0
		for n < len(live) && (n == 0 || octets+len(live[n].Data()) <= moverBytes) {
			octets += len(live[n].Data())
			n++
		}
		d.moveRun(live[:n], now)
		live = live[n:]
	}
}

// moveRun moves messages together if that goes, else one by one.
func (d *delays) moveRun(run []jetstream.Msg, now time.Time) {
	err := d.store(run, now)
	if len(run) == 1 || !settled(err) && !errors.Is(err, ErrQueueFull) {
		d.settle(run, err)
		return
	}
	for i := range run {
		err := d.store(run[i:i+1], now)
		if errors.Is(err, ErrQueueFull) {
			d.settle(run[i:], err)
			return
		}
		d.settle(run[i:i+1], err)
	}
}

// settled says whether a batch was refused because something of it is in the queue already.
func settled(err error) bool { return refused(err, codeWrongLast, codeDuplicateIDs) }

// settle takes messages that are in their queue off the stream; others come again.
func (d *delays) settle(msgs []jetstream.Msg, err error) {
	switch {
	case err == nil || settled(err):
		d.done(msgs)
		return
	case errors.Is(err, ErrStopped):
		return // They come again to the next mover.
	}
	for i, m := range msgs {
		if i == 0 {
			d.b.log.Warn("delayed messages not moved yet", "subject", m.Subject(), "messages", len(msgs), "err", err)
		}
		pause := moverPause(m)
		if errors.Is(err, ErrQueueFull) {
			pause = min(pause, fullRetryMax)
		}
		d.after(m, m.NakWithDelay(pause))
	}
}

// done takes messages off the stream and then their markers off the queue's: as long as the one is there the other must
// be.
func (d *delays) done(msgs []jetstream.Msg) {
	var wg sync.WaitGroup
	for _, m := range msgs {
		wg.Add(1)
		ack := func(Delivery) []byte { return ackWord }
		d.b.confirm([]Delivery{{Reply: m.Reply()}}, ack, func(err error) {
			defer wg.Done()
			if err != nil {
				d.after(m, err)
				return
			}
			d.unmark(m)
		})
	}
	wg.Wait()
}

// unmark takes the marker of a message off the queue's stream. It does not wait for that.
func (d *delays) unmark(m jetstream.Msg) {
	stream := strings.TrimPrefix(m.Subject(), dueRoot)
	marker := onceRoot + stream + "." + m.Headers().Get(waitOnceHeader)
	d.marked.Add(1)
	reply := d.b.acks.expect(func(answer *nats.Msg, err error) {
		defer d.marked.Done()
		if err == nil && len(answer.Data) > 0 && !bytes.Contains(answer.Data, ackFault) || errors.Is(err, ErrStopped) {
			return // Where it stays it is removed by its TTL.
		}
		d.b.launch(func() { d.unmarkAgain(stream, marker) })
	})
	if err := d.b.cfg.Control.PublishRequest(d.b.api+"STREAM.PURGE."+stream, reply, []byte(`{"filter":"`+marker+`"}`)); err != nil {
		d.b.acks.cancel(reply, err)
	}
}

// unmarkAgain takes a marker off whose removal was not confirmed.
func (d *delays) unmarkAgain(stream, marker string) {
	err := d.b.persist(func(ctx context.Context) error {
		s, err := d.b.cfg.JS.Stream(ctx, stream)
		if err != nil {
			return err
		}
		return s.Purge(ctx, jetstream.WithPurgeSubject(marker))
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) && !d.b.ending() {
		d.b.log.Warn("the marker of a delayed message stays until its time is over", "stream", stream, "err", err)
	}
}

// after reports that a message could not be settled. It comes again, and its marker keeps it from being stored twice.
func (d *delays) after(m jetstream.Msg, err error) {
	if err != nil {
		d.b.log.Debug("delayed message not settled", "subject", m.Subject(), "err", err)
	}
}

func moverPause(m jetstream.Msg) time.Duration {
	pause := moverRetry
	if meta, err := m.Metadata(); err == nil {
		for i := uint64(1); i < meta.NumDelivered && pause < moverRetryMax; i++ {
			pause *= 2
		}
	}
	return min(pause, moverRetryMax)
}

func untilDue(m jetstream.Msg, now time.Time) time.Duration {
	ns, err := strconv.ParseInt(m.Headers().Get(waitDueHeader), 10, 64)
	if err != nil {
		return 0 // Due at once.
	}
	return time.Unix(0, ns).Sub(now)
}

func dead(m jetstream.Msg, now time.Time) bool {
	at, err := strconv.ParseInt(m.Headers().Get(waitExpiresHeader), 10, 64)
	return err == nil && at <= now.UnixMilli()
}

// store puts messages into their queue as one batch with a marker for each. A marker that is there already says that its
// message is, or was, in the queue: then JetStream refuses the batch (DESIGN section 4.6, the primitive).
func (d *delays) store(due []jetstream.Msg, now time.Time) error {
	channel := due[0].Headers().Get(waitChannelHeader)
	route, err := d.b.cfg.Router.Parse("/queue/"+channel, router.Send)
	if err != nil {
		return err
	}
	q, err := d.b.queues.get(route, false)
	if err != nil {
		return err
	}
	p := &parcel{until: now.Add(d.b.cfg.PublishTimeout), whole: true}
	var markers []*nats.Msg
	for _, m := range due {
		p.msgs = append(p.msgs, moved(m, q, now))
		p.size += len(m.Data())
		markers = append(markers, &nats.Msg{
			Subject: onceRoot + q.stream + "." + m.Headers().Get(waitOnceHeader),
			Header:  nats.Header{expectedHeader: {"0"}, ttlHeader: {onceTTL}},
		})
	}
	p.msgs = append(p.msgs, markers...)
	result := make(chan error, 1)
	p.done = func(err error) { result <- err }
	for !q.window.enter(len(p.msgs), p.size) {
		if q, err = d.b.queues.get(route, false); err != nil {
			return err
		}
	}
	d.b.dispatch(q.place, p)
	return <-result
}

// moved is what is stored in the queue for a message that was delayed.
func moved(m jetstream.Msg, q *queue, now time.Time) *nats.Msg {
	to := &nats.Msg{Subject: q.subject, Data: m.Data(), Header: make(nats.Header, len(m.Headers()))}
	for name, values := range m.Headers() {
		if !reserved(name) || strings.EqualFold(name, packedHeader) {
			to.Header[name] = values
		}
	}
	if at, err := strconv.ParseInt(m.Headers().Get(waitExpiresHeader), 10, 64); err == nil {
		setTTL(to, at, now)
	}
	// The marker is removed as soon as the message has left the delay stream. A transmission of this batch that was late on
	// its way, perhaps through a server that stood still, must not be taken for a new one then: so the id of the marker is
	// also the message's, which JetStream remembers longer.
	if id := cmp.Or(m.Headers().Get(waitIDHeader), m.Headers().Get(waitOnceHeader)); id != "" {
		setHeader(to, msgIDHeader, id)
	}
	return to
}
