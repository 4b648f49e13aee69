package bridge

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/router"
)

const (
	// fetchTimeout bounds a fetch of what is there.
	fetchTimeout = 2 * time.Second
	// feedTimeout bounds the wait for a message that was given back to reach a pull that waits.
	feedTimeout = 250 * time.Millisecond
	// lingerCheck is how often a pull that could not be ended is tried again.
	lingerCheck = time.Second
	// leaveTimeout bounds each wait for the server at the end of a subscription.
	leaveTimeout = 3 * time.Second
	// sendingTime is how long after the last word from the server it may still be sending.
	sendingTime = time.Second
)

// QueueReceiver takes the messages of one queue subscription.
type QueueReceiver interface {
	creditor
	// DeliverQueue hands over the part of a MESSAGE that begins with the destination header. It must not block, nor
	// keep or change tail. false: it is not taken, and no later one is until Credit gives some; the message goes back once
	// all that was asked for has come, or at Stop if the receiver has Ended.
	DeliverQueue(tail []byte, d Delivery) bool
	// Ended says that the receiver takes no more for ever. Stop follows.
	Ended() bool
	// Held is called regularly: it returns the messages that the client holds and may hold on, and takes out
	// those that it held too long.
	Held(now time.Time) (keep, expired []Delivery)
	// Lost says, once, that the subscription can deliver no more.
	Lost(err error)
}

// QueueSubscription pulls messages of a queue, or of a durable subscription, for one receiver. Its methods are safe for
// concurrent use.
type QueueSubscription struct {
	puller
	d        *durable
	q        *queue // nil unless it is natstomp's own queue
	view     View
	receiver QueueReceiver
	hold     Hold
	options  QueueOptions

	doubted atomic.Bool // somebody looks whether the consumer is there
	lost    sync.Once

	// Owned by run.
	kept    time.Time
	pinned  time.Time
	pin     string // what an exclusive queue knows this subscription by while it has the queue
	scratch []byte
	refused []Delivery // what the receiver did not take
	crowded bool       // it had no room for some of that
}

// QueueOptions is what a subscription asks of its queue.
type QueueOptions struct {
	// AutoDelete lets the queue vanish with its last subscription.
	AutoDelete bool
	// Priority is served first where it is higher, from 0 to 9, if the queue is prioritised.
	Priority int
}

// Hold says how long a client may hold a message.
type Hold struct {
	// Check is how often Held is asked.
	Check time.Duration
	// Delay is after what time a message comes again that was held too long.
	Delay func(Delivery) time.Duration
}

// SubscribeQueue starts to pull messages of the route's queue, which is made if need be; it blocks while that takes.
// room is the most messages ever outstanding. The caller ends the subscription with Stop.
func (b *Bridge) SubscribeQueue(route router.Route, view View, room int, hold Hold, o QueueOptions, r QueueReceiver) (*QueueSubscription, error) {
	s := &QueueSubscription{view: view.of(route), receiver: r, hold: hold, options: o}
	err := error(nil)
	if route.Bound != nil {
		s.d, err = b.bound.durable(route.Bound)
	} else if s.q, err = b.queues.join(route, o.AutoDelete); err == nil {
		s.d = s.q.durable
	}
	if err != nil {
		return nil, err
	}
	return b.share(s, room)
}

// share starts to pull from the durable of a subscription.
func (b *Bridge) share(s *QueueSubscription, room int) (*QueueSubscription, error) {
	s.puller = newPuller(s.d.place, s.d.consumer, room, markedCredit{s, s.receiver})
	s.policy, s.sizes, s.eager = s.appendGroup, &s.d.sizes, s.d.policy == Prioritized
	s.hold.Check = min(s.hold.Check, s.d.ackWait/3)
	err := s.listen()
	if err == nil {
		s.d.place.follow(s)
		if !b.launch(s.run) {
			s.d.place.unfollow(s)
			err = ErrStopped
		}
	}
	if err != nil {
		s.part()
		return nil, err
	}
	return s, nil
}

// markedCredit gives credit only while it is known which messages may have been delivered before.
type markedCredit struct {
	s *QueueSubscription
	creditor
}

// Credit implements creditor.
func (c markedCredit) Credit(outstanding int) (messages, octets int) {
	if c.s.doubted.Load() {
		return 0, 0
	}
	if p := c.s.d.place; !p.marked() {
		p.remark()
		return 0, 0
	}
	return c.creditor.Credit(outstanding)
}

// Stop ends pulling, after the receiver has begun to refuse. It returns when every message that the server sent to this
// subscription is either settled or back in the queue, together with what held takes from the receiver: all in stream
// order. held is called after the last delivery.
func (s *QueueSubscription) Stop(held func() []Delivery) {
	s.Halt()
	<-s.done
	s.place.unfollow(s)
	back := append(held(), s.refused...)
	s.refused = nil
	if s.outstanding > 0 {
		back = s.feed(back)
		s.b.launch(s.linger)
	}
	resume := func() {}
	if len(back) > 0 {
		resume = s.pausePinned()
	}
	if err := s.b.GiveBack(back); err != nil {
		s.b.log.Warn("returning messages failed; they come back after the ack wait", "stream", s.from.stream, "err", err)
	}
	s.unpin()
	resume()
	s.part()
}

func (s *QueueSubscription) run() {
	defer close(s.done)
	s.loop(s.hold.Check, s)
	s.leave()
}

// silent implements listener. The pull may be lost, or still be answered by a server that knows nothing of the change: a
// new inbox tells both apart, so that no more comes than there is credit for.
func (s *QueueSubscription) silent() {
	s.forget()
	if s.q != nil && s.q.window.gone() {
		s.rejoin()
	}
	inbox := s.b.cfg.Control.NewInbox()
	sub, err := s.b.cfg.Control.ChanSubscribe(inbox, s.messages)
	if err != nil {
		s.b.log.Debug("no new inbox", "stream", s.from.stream, "err", err)
		return
	}
	_ = s.sub.Drain() // Not Unsubscribe: what is on the way still comes. It fails only when the connection is gone.
	s.inbox, s.sub = inbox, sub
}

// removed implements follower.
func (s *QueueSubscription) removed(err error) { s.lost.Do(func() { s.receiver.Lost(err) }) }

// doubt looks, in the background, whether the consumer is there. Nothing is asked for meanwhile: a server that was away
// may have lost count, while one that says that somebody has deleted the consumer goes on, with all counts of others.
func (s *QueueSubscription) doubt() {
	if !s.doubted.CompareAndSwap(false, true) {
		return
	}
	d := s.d
	s.b.launch(func() {
		defer s.Wake()
		defer s.doubted.Store(false)
		err := d.verify()
		if !errors.Is(err, d.gone()) {
			d.place.interrupted()
		}
		switch {
		case err == nil, errors.Is(err, errReplaced): // Whoever noticed that has the subscription pull anew.
		case errors.Is(err, d.gone()):
			s.removed(err)
		default:
			s.b.log.Debug("a consumer could not be looked at", "stream", d.stream, "err", err)
			s.b.pause(pullRetry)
		}
	})
}

// deliveries is how many the consumer has made to everybody.
func (s *QueueSubscription) deliveries() uint64 {
	ctx, cancel := s.b.within(fetchTimeout)
	defer cancel()
	c, err := s.b.cfg.JS.Consumer(ctx, s.from.stream, s.from.name)
	if err != nil {
		return 0
	}
	return c.CachedInfo().Delivered.Consumer
}

// receive implements listener.
func (s *QueueSubscription) receive(m *nats.Msg) {
	s.take(m)
	if s.crowded {
		s.giveBack()
	}
}

// take handles one message.
func (s *QueueSubscription) take(m *nats.Msg) {
	at, ok := positionOf(m.Reply)
	if !ok {
		if m.Header.Get("Status") == "423" {
			s.pin = "" // Another subscription has the queue now.
		}
		if !s.status(m) {
			s.doubt()
		}
		return
	}
	s.arrived(m)
	s.more = at.pending > 0 || at.count > 1 || s.outstanding > 0
	if pin := lastOf(m.Header, pinHeader); pin != "" && s.d.policy == Exclusive {
		s.pin = pin
	}
	d := s.delivery(m, at)
	if s.d.foreign(m.Subject) {
		s.refuse(d)
		s.doubt()
		return
	}
	x := extras{
		redelivered: d.Count > 1 || at.sequence <= s.place.mark.sequence(),
		count:       d.Count,
		seq:         at.sequence,
		timestamp:   at.stored.UnixMilli(),
	}
	destination, ok := s.view.destination(s.b.cfg.Router, m.Subject)
	if !ok || s.d.early(at.sequence, at.stored) || s.overdue(m, &x) {
		// It is never shown, so nobody could settle it.
		if err := s.b.Ack(d); err != nil {
			s.b.log.Debug("ack not sent, the message comes again", "err", err)
		}
		return
	}
	s.scratch = appendTail(s.scratch[:0], s.view.Version, destination, m, &x)
	if !s.receiver.DeliverQueue(s.scratch, d) {
		s.refuse(d)
		s.crowded = true // Or the receiver has ended, and Stop follows.
	}
	if cap(s.scratch) > sharedTail {
		s.scratch = nil
	}
}

// overdue says whether JetStream should have removed a message by now: after a start it takes a moment until it looks.
// The clock of an external server may be another one.
func (s *QueueSubscription) overdue(m *nats.Msg, x *extras) bool {
	if s.b.cfg.External != nil {
		return false
	}
	end := x.end(m.Header)
	if end == 0 || end > time.Now().UnixMilli() {
		return false
	}
	s.b.expired.Add(1)
	return true
}

// tick implements listener: it keeps what the client holds from redelivery and gives back what it held too long.
func (s *QueueSubscription) tick(now time.Time) {
	keep, expired := s.receiver.Held(now)
	if now.Sub(s.kept) < s.d.ackWait/3 {
		keep = nil
	} else {
		s.kept = now
	}
	s.keepPin()
	for _, d := range keep {
		if err := s.b.cfg.Control.Publish(d.Reply, progressWord); err != nil {
			return // NATS is away; what is held may come again, flagged.
		}
	}
	for _, d := range expired {
		if err := s.b.Nack(d, s.hold.Delay(d)); err != nil {
			return // See above.
		}
	}
}
