package bridge

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

const (
	pullExpires   = 30 * time.Second
	pullHeartbeat = 5 * time.Second
	// pullSilence is after how long without a word from the server a pull counts as lost.
	pullSilence = 3 * pullHeartbeat
	// pullBytes bounds the octets of one pull.
	pullBytes = 1 << 20
	// pullRetry is the pause after a refused pull.
	pullRetry = 500 * time.Millisecond
	// maxLarge is how many pulls without bound in octets are open on this node.
	maxLarge = 4
	// largeRetry is the pause where those are all taken.
	largeRetry = 10 * time.Millisecond
	// holdInterval is how often held messages are kept from redelivery.
	holdInterval = ackWait / 3
	// fetchTimeout bounds a fetch of what is there.
	fetchTimeout = 2 * time.Second
	// sendingTime is how long after the last word from the server it may still be sending.
	sendingTime = time.Second
	// statusRoom is the room for status messages beside the messages asked for.
	statusRoom = 64
)

// QueueReceiver takes the messages of one queue subscription.
type QueueReceiver interface {
	// Credit says how many messages, and how many octets, may be asked for while outstanding messages are on the way
	// already. Zero: none now; QueueSubscription.Wake says when to ask again.
	Credit(outstanding int) (messages, octets int)
	// DeliverQueue hands over the part of a MESSAGE that begins with the destination header. It must not block, nor
	// keep or change tail. false: the receiver takes no more, the message goes back at Stop.
	DeliverQueue(tail []byte, d Delivery) bool
	// Held is called regularly: it returns the messages that the client holds and may hold on, and takes out
	// those that it held too long.
	Held(now time.Time) (keep, expired []Delivery)
	// Lost says that the subscription can deliver no more.
	Lost(err error)
}

// QueueView is how a receiver wants its messages written.
type QueueView struct {
	// Version decides the escaping.
	Version frame.Version
	// Destination is the value of the destination header.
	Destination string
}

// QueueSubscription pulls messages of a queue for one receiver. Its methods are safe for concurrent use.
type QueueSubscription struct {
	b        *Bridge
	q        *queue
	view     QueueView
	receiver QueueReceiver
	hold     Hold
	inbox    string
	sub      *nats.Subscription
	messages chan *nats.Msg
	wake     chan struct{}
	stop     chan struct{}
	stopOnce sync.Once
	done     chan struct{}

	// Owned by run.
	outstanding int  // messages asked for that have not come
	octets      int  // octets asked for that have not come
	tooLarge    bool // a message waits that is larger than a pull may bring
	large       bool // a pull without bound in octets is open; it holds a token
	largest     int  // octets of the largest message lately
	heard       time.Time
	retryAt     time.Time
	kept        time.Time
	scratch     []byte
	refused     []Delivery // what the receiver did not take
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
func (b *Bridge) SubscribeQueue(route router.Route, view QueueView, room int, hold Hold, r QueueReceiver) (*QueueSubscription, error) {
	q, err := b.queues.get(route)
	if err != nil {
		return nil, err
	}
	s := &QueueSubscription{
		b: b, q: q, view: view, receiver: r, hold: hold,
		inbox:    nats.NewInbox(),
		messages: make(chan *nats.Msg, room+statusRoom),
		wake:     make(chan struct{}, 1),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
	if s.sub, err = b.cfg.Control.ChanSubscribe(s.inbox, s.messages); err != nil {
		return nil, err
	}
	b.launch(s.run)
	return s, nil
}

// Wake says that the receiver may have credit again. It does not block.
func (s *QueueSubscription) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Halt ends pulling and does not wait; what is on the way is still delivered. Stop must follow.
func (s *QueueSubscription) Halt() { s.stopOnce.Do(func() { close(s.stop) }) }

// Halted is closed when nothing is on the way any more after Halt.
func (s *QueueSubscription) Halted() <-chan struct{} { return s.done }

// Stop ends pulling, after the receiver has begun to refuse. It returns when every message that the server sent to this
// subscription is either settled or back in the queue, together with what held takes from the receiver: all in stream
// order. held is called after the last delivery.
func (s *QueueSubscription) Stop(held func() []Delivery) {
	s.Halt()
	<-s.done
	if err := s.b.GiveBack(append(held(), s.refused...)); err != nil {
		s.b.log.Warn("returning messages failed; they come back after the ack wait", "stream", s.q.stream, "err", err)
	}
}

func (s *QueueSubscription) run() {
	defer close(s.done)
	defer s.settleLarge()
	hold := time.NewTicker(s.hold.Check)
	defer hold.Stop()
	tick := time.NewTicker(pullHeartbeat)
	defer tick.Stop()
	s.heard = time.Now()
	var retry <-chan time.Time
	for {
		if wait := time.Until(s.retryAt); wait <= 0 {
			s.pull()
		} else if retry == nil {
			retry = time.After(wait)
		}
		select {
		case m := <-s.messages:
			s.receive(m)
		case <-s.wake:
		case <-retry:
			retry = nil
		case now := <-hold.C:
			s.holdOn(now)
		case now := <-tick.C:
			if s.outstanding > 0 && now.Sub(s.heard) > pullSilence {
				s.outstanding, s.octets = 0, 0 // The pull is lost.
				s.settleLarge()
			}
		case <-s.stop:
			s.leave()
			return
		}
	}
}

// leave takes the interest away and waits until the server has sent all that it will send: a plain unsubscribe would
// strand what is on the way (research: return of held messages).
func (s *QueueSubscription) leave() {
	// Drain keeps the subscription's place in the client until the server's last message is in the channel.
	err := s.sub.Drain()
	if err == nil {
		err = s.b.control.wait()
	}
	s.receiveAll()
	if err == nil && s.outstanding > 0 {
		err = s.cancel()
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		s.b.log.Warn("ending a pull failed", "stream", s.q.stream, "err", err)
	}
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
	_, err := s.b.cfg.Control.Request("$JS.API.CONSUMER.INFO."+s.q.stream+"."+durableName, nil, fetchTimeout)
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
			s.refused = append(s.refused, d)
		case <-limit.C:
			return ErrTimeout
		}
	}
	return nil
}

// next is the subject of pulls.
func (s *QueueSubscription) next() string {
	return "$JS.API.CONSUMER.MSG.NEXT." + s.q.stream + "." + durableName
}

// pull asks for as much as the receiver has credit for, when little is on the way.
func (s *QueueSubscription) pull() {
	messages, octets := s.receiver.Credit(s.outstanding)
	if messages <= 0 || s.outstanding > 0 && messages < s.outstanding {
		return
	}
	octets = min(octets-s.octets, pullBytes)
	request := append(make([]byte, 0, 96), `{"batch":`...)
	switch {
	case s.tooLarge && s.outstanding == 0:
		// One message larger than the budget comes alone, and so do few on the whole node.
		select {
		case s.b.large <- struct{}{}:
		default:
			s.retryAt = time.Now().Add(largeRetry)
			return
		}
		s.large, messages, octets = true, 1, 0
	case octets <= 0 || s.tooLarge:
		return
	case s.largest > 0:
		// Only as many as fit: JetStream puts a returned message that fits no pull behind the others.
		messages = min(messages, max(octets/s.largest, 1))
	}
	request = strconv.AppendInt(request, int64(messages), 10)
	if octets > 0 {
		request = strconv.AppendInt(append(request, `,"max_bytes":`...), int64(octets), 10)
	}
	if s.large {
		request = append(request, `,"no_wait":true}`...)
	} else {
		request = append(request, `,"expires":30000000000,"idle_heartbeat":5000000000}`...)
	}
	if err := s.b.cfg.Control.PublishRequest(s.next(), s.inbox, request); err != nil {
		s.settleLarge()
		s.retryAt = time.Now().Add(pullRetry)
		return
	}
	s.outstanding += messages
	s.octets += octets
	s.tooLarge = false
	s.heard = time.Now()
}

func (s *QueueSubscription) receive(m *nats.Msg) {
	s.heard = time.Now()
	meta, err := m.Metadata()
	if err != nil {
		s.status(m)
		return
	}
	s.outstanding = max(s.outstanding-1, 0)
	s.used(m.Size())
	s.largest = max(m.Size(), s.largest-s.largest/32)
	s.tooLarge = false
	x := extras{
		redelivered: meta.NumDelivered > 1 || meta.Sequence.Stream <= s.q.mark,
		count:       meta.NumDelivered,
		seq:         meta.Sequence.Stream,
		timestamp:   meta.Timestamp.UnixMilli(),
	}
	d := Delivery{Reply: m.Reply, Sequence: meta.Sequence.Stream, Count: meta.NumDelivered, Size: len(m.Data)}
	s.scratch = appendTail(s.scratch[:0], s.view.Version, s.view.Destination, m, &x)
	if !s.receiver.DeliverQueue(s.scratch, d) {
		s.refused = append(s.refused, d)
	}
	if cap(s.scratch) > sharedTail {
		s.scratch = nil
	}
}

// used counts octets of the open pulls as come or given up. A pull whose octets are used up exactly ends without a word
// from the server, whatever it has left in messages.
func (s *QueueSubscription) used(octets int) {
	s.octets = max(s.octets-octets, 0)
	if s.octets == 0 && !s.large {
		s.outstanding = 0
	}
	if s.outstanding == 0 {
		s.octets = 0
		s.settleLarge()
	}
}

func (s *QueueSubscription) settleLarge() {
	if s.large {
		s.large = false
		<-s.b.large
	}
}

// status handles the server's words about a pull.
func (s *QueueSubscription) status(m *nats.Msg) {
	code := m.Header.Get("Status")
	switch code {
	case "":
		s.b.log.Warn("not a delivery", "stream", s.q.stream, "subject", m.Subject)
		return
	case "100":
		return // Idle heart-beat.
	}
	left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	if err != nil {
		left = s.outstanding
	}
	octets, err := strconv.Atoi(m.Header.Get("Nats-Pending-Bytes"))
	if err != nil {
		octets = s.octets
	}
	s.outstanding = max(s.outstanding-left, 0)
	s.used(octets)
	switch description := m.Header.Get("Description"); {
	case code == "404", code == "408", description == "Batch Completed":
	case description == "Message Size Exceeds MaxBytes":
		s.tooLarge = true // The other open pulls end too; a new one would only end the same way.
	case description == "Consumer Deleted", code == "503":
		s.outstanding, s.octets = 0, 0
		s.settleLarge()
		s.retryAt = time.Now().Add(pullRetry)
		s.receiver.Lost(ErrNoStream)
	default:
		s.b.log.Debug("pull refused", "stream", s.q.stream, "code", code, "description", description)
		s.retryAt = time.Now().Add(pullRetry)
	}
}

// holdOn keeps what the client holds from redelivery and gives back what it held too long.
func (s *QueueSubscription) holdOn(now time.Time) {
	keep, expired := s.receiver.Held(now)
	if now.Sub(s.kept) < holdInterval {
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
