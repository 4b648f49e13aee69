package bridge

import (
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/router"
)

const (
	// fetchTimeout bounds a fetch of what is there.
	fetchTimeout = 2 * time.Second
	// settleTime and settleQuiet bound how long the end of a pull waits for what the server is sending, and for how
	// long nothing of it may come.
	settleTime  = time.Second
	settleQuiet = 10 * time.Millisecond
	// overhearTime is how long the word that nobody listens may take.
	overhearTime = 20 * time.Millisecond
	// lingerDelay grows with each time that a message comes to a pull that nobody wants.
	lingerDelay = 20 * time.Millisecond
	// sendingTime is how long after the last word from the server it may still be sending.
	sendingTime = time.Second
)

// QueueReceiver takes the messages of one queue subscription.
type QueueReceiver interface {
	creditor
	// DeliverQueue hands over the part of a MESSAGE that begins with the destination header. It must not block, nor
	// keep or change tail. false: the receiver takes no more, the message goes back at Stop.
	DeliverQueue(tail []byte, d Delivery) bool
	// Held is called regularly: it returns the messages that the client holds and may hold on, and takes out
	// those that it held too long.
	Held(now time.Time) (keep, expired []Delivery)
	// Lost says that the subscription can deliver no more.
	Lost(err error)
}

// QueueSubscription pulls messages of a queue, or of a durable subscription, for one receiver. Its methods are safe for
// concurrent use.
type QueueSubscription struct {
	puller
	d        *durable
	view     View
	receiver QueueReceiver
	hold     Hold

	// Owned by run.
	kept    time.Time
	scratch []byte
	refused []Delivery // what the receiver did not take
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
func (b *Bridge) SubscribeQueue(route router.Route, view View, room int, hold Hold, r QueueReceiver) (*QueueSubscription, error) {
	d, err := b.durable(route)
	if err != nil {
		return nil, err
	}
	return b.share(d, view.of(route), room, hold, r)
}

// share starts to pull from a durable.
func (b *Bridge) share(d *durable, view View, room int, hold Hold, r QueueReceiver) (*QueueSubscription, error) {
	hold.Check = min(hold.Check, d.ackWait/3)
	s := &QueueSubscription{puller: newPuller(b, d.consumer, room, r), d: d, view: view, receiver: r, hold: hold}
	s.sizes = &d.sizes
	if err := s.listen(); err != nil {
		return nil, err
	}
	b.launch(s.run)
	return s, nil
}

// Stop ends pulling, after the receiver has begun to refuse. It returns when every message that the server sent to this
// subscription is either settled or back in the queue, together with what held takes from the receiver: all in stream
// order. held is called after the last delivery.
func (s *QueueSubscription) Stop(held func() []Delivery) {
	s.Halt()
	<-s.done
	if err := s.b.GiveBack(append(held(), s.refused...)); err != nil {
		s.b.log.Warn("returning messages failed; they come back after the ack wait", "stream", s.from.stream, "err", err)
	}
}

func (s *QueueSubscription) run() {
	defer close(s.done)
	s.loop(s.hold.Check, s)
	s.leave()
	s.forget()
}

// silent implements listener: the pull is lost, another is sent.
func (s *QueueSubscription) silent() { s.forget() }

// leave ends the open pull without stranding a message. While the server is sending it is let to the end of the pull;
// else the interest is taken away, and the server forgets the pull.
func (s *QueueSubscription) leave() {
	s.settleDown()
	if s.outstanding > 0 && s.b.overheard() {
		s.linger()
		return
	}
	// Drain keeps the subscription's place in the client until the server's last message is in the channel; a plain
	// unsubscribe would strand what is on the way (research: return of held messages).
	err := s.sub.Drain()
	if err == nil {
		err = s.b.control.wait()
	}
	s.receiveAll()
	if err == nil && s.outstanding > 0 {
		err = s.cancel()
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		s.b.log.Warn("ending a pull failed", "stream", s.from.stream, "err", err)
	}
}

// settleDown receives what the server is sending, up to the end of the pull.
func (s *QueueSubscription) settleDown() {
	end := time.NewTimer(settleTime)
	defer end.Stop()
	for s.outstanding > 0 {
		quiet := time.NewTimer(settleQuiet)
		select {
		case m := <-s.messages:
			quiet.Stop()
			s.receive(m)
		case <-quiet.C:
			return
		case <-end.C:
			quiet.Stop()
			return
		}
	}
}

// overheard says whether somebody listens to every subject, such as a subscription to /topic/> or a native one to >. Then
// the server believes that an inbox is wanted when it is not, and what it sends there waits for the ack wait.
func (b *Bridge) overheard() bool {
	if b.topics.wides.Load() > 0 {
		return true
	}
	_, err := b.cfg.Control.Request(nats.NewInbox(), nil, overhearTime)
	return !errors.Is(err, nats.ErrNoResponders)
}

// linger keeps the inbox until the open pull is over and passes on what comes: back to the queue, and later each time
// it comes again.
func (s *QueueSubscription) linger() {
	sub, messages, outstanding := s.sub, s.messages, s.outstanding
	s.b.launch(func() {
		defer sub.Unsubscribe() //nolint:errcheck // fails only when the connection is gone, and then it is done
		over := time.NewTimer(pullExpires + time.Second)
		defer over.Stop()
		for outstanding > 0 {
			select {
			case m := <-messages:
				d, ok := delivery(m)
				if !ok {
					left, _ := strconv.Atoi(m.Header.Get("Nats-Pending-Messages")) // Absent in a heart-beat.
					outstanding -= left
					continue
				}
				outstanding--
				// Its first way back is immediate: somebody else may wait for it.
				delay := time.Duration(max(int64(d.Count)-2, 0)) * lingerDelay
				if err := s.b.Nack(d, min(delay, time.Second)); err != nil {
					return // NATS is away; it comes back after the ack wait.
				}
			case <-over.C:
				return
			case <-s.b.stop:
				return
			}
		}
	})
}

// receiveAll handles what is in the channel.
func (s *QueueSubscription) receiveAll() {
	for {
		select {
		case m := <-s.messages:
			s.receive(m)
		default:
			return
		}
	}
}

// cancel makes the server forget the pull that is open. Where it notices the missing interest only at a message given
// back, it puts that message behind the others. Asking for the consumer's state makes it look.
func (s *QueueSubscription) cancel() error {
	_, err := s.b.cfg.Control.Request("$JS.API.CONSUMER.INFO."+s.from.stream+"."+s.from.name, nil, fetchTimeout)
	if err == nil && time.Since(s.heard) < sendingTime {
		err = s.collect()
	}
	return err
}

// collect fetches what the server had decided to send when the interest went: it would otherwise be redelivered before
// everything that is given back, and so out of order. The server sends in order, so the answer to the first fetch says
// that it has noticed the loss; the second then gets what was lost before anything else.
func (s *QueueSubscription) collect() error {
	if err := s.fetch(1); err != nil {
		return err
	}
	return s.fetch(s.outstanding)
}

// fetch takes up to so many messages that are there now, to be given back.
func (s *QueueSubscription) fetch(messages int) error {
	inbox := nats.NewInbox()
	got := make(chan *nats.Msg, messages+1)
	sub, err := s.b.cfg.Control.ChanSubscribe(inbox, got)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only when the connection is gone, and then it is done
	request := strconv.AppendInt([]byte(`{"no_wait":true,"batch":`), int64(messages), 10)
	if err := s.b.cfg.Control.PublishRequest(s.next(), inbox, append(request, '}')); err != nil {
		return err
	}
	limit := time.NewTimer(fetchTimeout)
	defer limit.Stop()
	for range messages {
		select {
		case m := <-got:
			d, ok := delivery(m)
			if !ok {
				return nil // No more there.
			}
			s.sizes.delivered(m.Size())
			s.refused = append(s.refused, d)
		case <-limit.C:
			return ErrTimeout
		}
	}
	return nil
}

// receive implements listener.
func (s *QueueSubscription) receive(m *nats.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		if !s.status(m) {
			s.receiver.Lost(s.d.gone())
		}
		return
	}
	s.arrived(m)
	d := Delivery{Reply: m.Reply, Sequence: meta.Sequence.Stream, Count: meta.NumDelivered, Size: len(m.Data)}
	destination, ok := s.view.destination(s.b.cfg.Router, m.Subject)
	if !ok || s.d.early(meta.Sequence.Stream, meta.Timestamp) {
		// It is never shown, so nobody could settle it.
		if err := s.b.Ack(d); err != nil {
			s.b.log.Debug("ack not sent, the message comes again", "err", err)
		}
		return
	}
	x := extras{
		redelivered: meta.NumDelivered > 1 || meta.Sequence.Stream <= s.d.mark,
		count:       meta.NumDelivered,
		seq:         meta.Sequence.Stream,
		timestamp:   meta.Timestamp.UnixMilli(),
	}
	s.scratch = appendTail(s.scratch[:0], s.view.Version, destination, m, &x)
	if !s.receiver.DeliverQueue(s.scratch, d) {
		s.refused = append(s.refused, d)
	}
	if cap(s.scratch) > sharedTail {
		s.scratch = nil
	}
}

// tick implements listener: it keeps what the client holds from redelivery and gives back what it held too long.
func (s *QueueSubscription) tick(now time.Time) {
	keep, expired := s.receiver.Held(now)
	if now.Sub(s.kept) < s.d.ackWait/3 {
		keep = nil
	} else {
		s.kept = now
	}
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

// delivery reads what settles a message; false for a status.
func delivery(m *nats.Msg) (Delivery, bool) {
	meta, err := m.Metadata()
	if err != nil {
		return Delivery{}, false
	}
	return Delivery{Reply: m.Reply, Sequence: meta.Sequence.Stream, Count: meta.NumDelivered, Size: len(m.Data)}, true
}
