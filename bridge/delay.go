package bridge

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// delayStream keeps the messages whose delay has not passed, of all queues. They cannot wait in their queue's own
	// stream: JetStream has no schedules in a stream that refuses when it is full.
	delayStream = "natstomp_delay"
	// delayRoot begins the subjects of messages that wait: then the queue's stream and an id of their own.
	delayRoot = "_natstomp.delay."
	// dueRoot begins the subjects of messages whose delay has passed: then the queue's stream.
	dueRoot = "_natstomp.due."
	// moverName is the durable through which the nodes move what is due.
	moverName = "mover"
	// delayRecord is the octets that a message takes beside its body, roughly.
	delayRecord = 512
	// measureInterval is how often the size of the stream is asked for.
	measureInterval = time.Second
)

// Headers of a schedule (ADR-51), and of what the mover needs to know.
const (
	scheduleHeader = "Nats-Schedule"
	targetHeader   = "Nats-Schedule-Target"

	waitChannelHeader = "Nats-Stomp-Channel"
	waitDueHeader     = "Nats-Stomp-Due"    // ns since the epoch
	waitExpiresHeader = "Nats-Stomp-Expire" // ms since the epoch
	waitIDHeader      = "Nats-Stomp-Msg-Id"
	waitOnceHeader    = "Nats-Stomp-Once"
)

// delays keeps messages until they are due, in a stream of their own, and then moves them to their queues, each exactly
// once (mover.go).
type delays struct {
	b       *Bridge
	streams makings[*place] // the one stream
	wake    chan struct{}
	halt    chan struct{}  // closed when the mover is to end
	ended   chan struct{}  // closed when it has; nil: it was not begun
	marked  sync.WaitGroup // markers whose removal is on its way

	mu       sync.Mutex
	octets   int64     // guarded by mu; the size of the stream, roughly
	measured time.Time // guarded by mu
}

func newDelays(b *Bridge) *delays {
	return &delays{b: b, wake: make(chan struct{}, 1), halt: make(chan struct{})}
}

// send stores the SENDs of one queue, as a whole, to be moved there each at its time.
func (d *delays) send(sends []Send, now time.Time, done func(error)) {
	if sends[0].Route.Bound != nil {
		done(ErrNoDelay)
		return
	}
	q, err := d.b.queues.get(sends[0].Route, true)
	if err != nil {
		done(err)
		return
	}
	to, err := d.open()
	if err == nil {
		err = d.reserve(sizeOf(sends) + len(sends)*delayRecord)
	}
	if err != nil {
		done(err)
		return
	}
	p := &parcel{size: sizeOf(sends), done: done, until: now.Add(d.b.cfg.PublishTimeout)}
	for i := range sends {
		p.msgs = append(p.msgs, d.message(to, &sends[i], q, now))
	}
	to.window.enter(len(p.msgs), p.size)
	d.b.dispatch(to, p)
}

// message is what waits for a SEND's time. One without delay, of a transaction in which another has one, is due at once.
func (d *delays) message(to *place, s *Send, q *queue, now time.Time) *nats.Msg {
	m := s.message(to, dueRoot+q.stream, now)
	delete(m.Header, ttlHeader)
	if at := s.Options.expiry(now); at > 0 {
		setHeader(m, waitExpiresHeader, strconv.FormatInt(at, 10))
	}
	if id := s.msgID(); id != "" {
		setHeader(m, waitIDHeader, id)
	}
	once := d.b.batches.next()
	setHeader(m, waitOnceHeader, once)
	setHeader(m, waitChannelHeader, q.channel)
	if s.Options.Delay > 0 {
		due := now.Add(s.Options.Delay)
		setHeader(m, waitDueHeader, strconv.FormatInt(due.UnixNano(), 10))
		setHeader(m, scheduleHeader, "@at "+due.UTC().Format(time.RFC3339Nano))
		setHeader(m, targetHeader, m.Subject)
		m.Subject = delayRoot + q.stream + "." + once
	}
	return m
}

// open returns the stream, made at its first use.
func (d *delays) open() (*place, error) {
	if d.b.gone.has(delayStream) {
		return nil, ErrNoStream
	}
	return d.streams.get(delayStream, func() (*place, error) {
		p := newPlace(d.b, delayStream)
		err := d.b.persist(func(ctx context.Context) error { return d.create(ctx, p) })
		return p, err
	})
}

// drop forgets the stream.
func (d *delays) drop(stream string) { d.streams.drop(stream) }

// reserve takes so many octets of the stream's room.
func (d *delays) reserve(octets int) error {
	limit := d.b.cfg.Queues.DelayBytes
	if limit == 0 {
		return nil
	}
	if err := d.b.persist(d.measure); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.octets+int64(octets) > limit {
		return fmt.Errorf("%w: delayed messages", ErrQueueFull)
	}
	d.octets += int64(octets)
	return nil
}

// measure asks for the size of the stream if that was long ago. Those who send meanwhile go by the old one.
func (d *delays) measure(ctx context.Context) error {
	d.mu.Lock()
	recent := time.Since(d.measured) < measureInterval
	if !recent {
		d.measured = time.Now()
	}
	before := d.octets
	d.mu.Unlock()
	if recent {
		return nil
	}
	info, err := d.b.info(ctx, delayStream)
	if err != nil {
		d.mu.Lock()
		d.measured = time.Time{}
		d.mu.Unlock()
		return fmt.Errorf("asking for the size of %s: %w", delayStream, err)
	}
	d.mu.Lock()
	d.octets += int64(info.State.Bytes) - before
	d.mu.Unlock()
	return nil
}

func (d *delays) create(ctx context.Context, p *place) error {
	_, err := d.b.cfg.JS.CreateStream(ctx, jetstream.StreamConfig{
		Name:               delayStream,
		Description:        "natstomp: delayed messages of all queues",
		Subjects:           []string{delayRoot + ">", dueRoot + ">"},
		Retention:          jetstream.WorkQueuePolicy,
		Storage:            d.b.cfg.Queues.Storage,
		Replicas:           d.b.replicas(),
		Discard:            jetstream.DiscardOld,
		MaxBytes:           -1,
		Duplicates:         d.b.cfg.Queues.DedupWindow,
		AllowMsgSchedules:  true,
		AllowRollup:        true,
		AllowAtomicPublish: true,
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return fmt.Errorf("creating stream %s: %w", delayStream, roomFault(err))
	}
	info, err := d.b.info(ctx, delayStream)
	if err != nil {
		return fmt.Errorf("looking at stream %s: %w", delayStream, err)
	}
	p.found(info)
	if err := d.createMover(ctx); err != nil {
		return err
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return nil
}

func (d *delays) createMover(ctx context.Context) error {
	_, err := d.b.cfg.JS.CreateOrUpdateConsumer(ctx, delayStream, jetstream.ConsumerConfig{
		Durable:       moverName,
		FilterSubject: dueRoot + ">",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxDeliver:    -1,
		MaxAckPending: -1,
	})
	if err != nil {
		return fmt.Errorf("creating the durable of %s: %w", delayStream, err)
	}
	return nil
}

// recover makes the durable of an embedded server anew: what the mover had in hand when the server ended must not wait
// for the ack wait.
func (d *delays) recover(ctx context.Context) error {
	_, err := d.b.cfg.JS.Stream(ctx, delayStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err == nil {
		err = d.b.cfg.JS.DeleteConsumer(ctx, delayStream, moverName)
	}
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("removing the old durable of %s: %w", delayStream, err)
	}
	return d.createMover(ctx)
}
