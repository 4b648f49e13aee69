package bridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/router"
)

const (
	// orderedInactive is after what time the server forgets a consumer whose reader does not ask, or is dead. One that
	// comes back later gets another.
	orderedInactive = 5 * time.Minute
	// orderedRoom is the most messages that an ordered subscription asks for.
	orderedRoom = 2_048
	// orderedCheck is how often a broken subscription is looked at while nothing else happens.
	orderedCheck = time.Second
)

// StoreReceiver takes the messages of one ordered subscription.
type StoreReceiver interface {
	creditor
	// DeliverStored hands over the part of a MESSAGE that begins with the destination header. It must not block, nor keep
	// or change tail. false: the receiver takes no more.
	DeliverStored(tail []byte) bool
	// Lost says, once, that the subscription can deliver no more.
	Lost(err error)
}

// OrderedSubscription reads stored topics from a start on, in order and without gaps, for one receiver. It keeps nothing
// on NATS that is not made anew when it is lost: after a gap, a lost consumer or a restart it goes on behind the last
// message that it delivered. Its methods are safe for concurrent use.
type OrderedSubscription struct {
	puller
	view     View
	receiver StoreReceiver
	start    Start
	filters  []string
	ctx      context.Context // ends with Stop, also while the consumer is made anew
	cancel   context.CancelFunc
	lost     sync.Once

	// Owned by run.
	began    bool   // the first consumer was made
	broken   bool   // the consumer is to be made anew
	last     uint64 // number of the last delivery of this consumer
	next     uint64 // place in the stream: everything before is delivered or not wanted
	snapshot uint64 // last-per-channel: the end of the stream at the subscription
	catching bool   // last-per-channel: this consumer was made anew for what is up to snapshot
	scratch  []byte
}

// SubscribeOrdered starts to read the route's channels, or those subjects of its stream that filters names, from start
// on. It blocks until JetStream has the consumer: what is stored after that is seen. The caller ends it with Stop.
func (b *Bridge) SubscribeOrdered(route router.Route, filters []string, start Start, view View, r StoreReceiver) (*OrderedSubscription, error) {
	p, err := b.stored(route)
	if err != nil {
		return nil, err
	}
	if len(filters) == 0 {
		filters = []string{filterOf(route)}
	}
	s := &OrderedSubscription{
		puller: newPuller(p, consumer{stream: p.stream}, orderedRoom, r),
		view:   view.of(route), receiver: r, start: start, filters: filters,
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := b.persist(func(context.Context) error { return s.renew() }); err != nil {
		s.cancel()
		return nil, fmt.Errorf("reading %s: %w", p.stream, err)
	}
	p.follow(s)
	b.launch(s.run)
	return s, nil
}

// Halt ends reading and does not wait. Stop must follow.
func (s *OrderedSubscription) Halt() {
	s.cancel()
	s.puller.Halt()
}

// Stop ends the subscription after the receiver has begun to refuse. held is not called: nothing is given back.
func (s *OrderedSubscription) Stop(_ func() []Delivery) {
	s.Halt()
	<-s.done
}

func (s *OrderedSubscription) run() {
	defer close(s.done)
	defer s.place.unfollow(s)
	s.loop(orderedCheck, s)
	s.drop()
	s.forget()
}

// receive implements listener.
func (s *OrderedSubscription) receive(m *nats.Msg) {
	at, ok := positionOf(m.Reply)
	switch {
	case !ok:
		if !s.status(m) || s.missed(m) {
			s.rebuild()
		}
		return
	case at.consumer != s.from.name:
		return
	case at.number != s.last+1:
		s.rebuild()
		return
	}
	s.arrived(m)
	s.last++
	switch {
	case at.sequence < s.next || s.start.Kind == StartTime && at.stored.Before(s.start.Time):
		return
	case s.catching && at.sequence > s.snapshot:
		// Behind the snapshot every message counts, not only each channel's last.
		s.next = s.snapshot + 1
		s.rebuild()
		return
	}
	if s.deliver(m, at) {
		s.next = at.sequence + 1
	}
}

// deliver hands a message to the receiver.
func (s *OrderedSubscription) deliver(m *nats.Msg, at position) bool {
	destination, ok := s.view.destination(s.b.cfg.Router, m.Subject)
	if !ok {
		return true
	}
	x := extras{seq: at.sequence, timestamp: at.stored.UnixMilli()}
	s.scratch = appendTail(s.scratch[:0], s.view.Version, destination, m, &x)
	ok = s.receiver.DeliverStored(s.scratch)
	if cap(s.scratch) > sharedTail {
		s.scratch = nil
	}
	return ok
}

// removed implements follower.
func (s *OrderedSubscription) removed(err error) { s.lost.Do(func() { s.receiver.Lost(err) }) }

// missed says whether an idle heart-beat speaks of a delivery that has not come.
func (s *OrderedSubscription) missed(m *nats.Msg) bool {
	last, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64)
	return err == nil && last > s.last
}

// tick implements listener.
func (s *OrderedSubscription) tick(time.Time) {
	if s.broken {
		s.rebuild()
	}
}

// silent implements listener.
func (s *OrderedSubscription) silent() { s.rebuild() }

// rebuild makes the consumer anew. Where that fails for now, tick tries again.
func (s *OrderedSubscription) rebuild() {
	if !s.broken {
		s.broken, s.paused = true, true
		s.drop()
	}
	err := s.renew()
	switch {
	case err == nil:
		s.broken, s.paused = false, false
	case s.ctx.Err() != nil:
	case errors.Is(err, jetstream.ErrStreamNotFound):
		s.place.suspect()
	default:
		s.b.log.Debug("consumer not made anew yet", "stream", s.from.stream, "err", err)
	}
}

// drop forgets the consumer, and everything that is still on the way from it.
func (s *OrderedSubscription) drop() {
	_ = s.sub.Unsubscribe() // Fails only when the connection is gone, and then it is done.
	// Nobody waits for the answer: a consumer that stays is forgotten by the server after a while.
	_ = s.b.cfg.Control.Publish(s.b.api+"CONSUMER.DELETE."+s.from.stream+"."+s.from.name, nil)
}

// renew makes a consumer that goes on at next.
func (s *OrderedSubscription) renew() error {
	ctx, cancel := context.WithTimeout(s.ctx, apiTimeout)
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		Name:              rand.Text(),
		Description:       "natstomp subscription",
		FilterSubjects:    s.filters,
		AckPolicy:         jetstream.AckNonePolicy,
		MaxDeliver:        -1,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: orderedInactive,
	}
	if len(s.filters) == 1 {
		cfg.FilterSubject, cfg.FilterSubjects = s.filters[0], nil
	}
	s.catching = s.began && s.next <= s.snapshot
	if s.began && !s.catching {
		Start{Kind: StartSequence, Sequence: s.next}.apply(&cfg)
	} else {
		s.start.apply(&cfg)
	}
	c, err := s.b.cfg.JS.CreateConsumer(ctx, s.from.stream, cfg)
	if err != nil {
		return err
	}
	if !s.began {
		if err := s.begin(ctx, c); err != nil {
			return err
		}
	}
	s.from.name, s.last = cfg.Name, 0
	return s.listen()
}

// begin notes where the first consumer started.
func (s *OrderedSubscription) begin(ctx context.Context, c jetstream.Consumer) error {
	s.next = max(c.CachedInfo().Delivered.Stream+1, s.start.Sequence)
	if s.start.Kind == StartLastPerChannel {
		stream, err := s.b.cfg.JS.Stream(ctx, s.from.stream)
		if err != nil {
			return err
		}
		s.snapshot = stream.CachedInfo().State.LastSeq
	}
	s.began = true
	return nil
}
