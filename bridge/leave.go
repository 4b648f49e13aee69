package bridge

import (
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// leave ends the open pull, so that no message is on its way to nobody. A pull that waits stays open where somebody
// listens to everything: Stop sees to it.
func (s *QueueSubscription) leave() {
	if !s.b.cfg.Control.IsConnected() {
		_ = s.sub.Unsubscribe() // Nothing is on the way over a link that is down.
		s.receiveAll()
		s.forget()
		return
	}
	err := s.end()
	if err == nil && s.outstanding > 0 {
		return
	}
	s.forget()
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		s.b.log.Warn("ending a pull failed", "stream", s.from.stream, "err", err)
	}
}

func (s *QueueSubscription) end() error {
	if err := s.finish(); err != nil {
		return err
	}
	if s.outstanding > 0 {
		// No wide filter of this node may open between the question and the end of the pull.
		s.b.wideGate.RLock()
		defer s.b.wideGate.RUnlock()
		if overheard, err := s.b.overheard(); err != nil || overheard {
			return err
		}
	}
	// Drain keeps the subscription's place in the client until the server's last message is in the channel; a plain
	// unsubscribe would strand what is on the way (research: return of held messages).
	if err := s.sub.Drain(); err != nil {
		return err
	}
	if err := s.b.control.wait(leaveTimeout); err != nil {
		return err
	}
	s.receiveAll()
	if s.outstanding == 0 {
		return nil
	}
	err := s.cancel()
	s.forget()
	return err
}

// finish reads a pull that takes what is there to its end, which comes by itself and soon: to take the interest away
// would let what is on the way be redelivered before what is given back.
func (s *QueueSubscription) finish() error {
	s.receiveAll()
	limit := time.NewTimer(fetchTimeout)
	defer limit.Stop()
	for s.outstanding > 0 && !s.waiting {
		select {
		case m := <-s.messages:
			s.receive(m)
		case <-limit.C:
			return ErrTimeout
		}
	}
	return nil
}

// overheard says whether somebody listens to every subject, such as a subscription to /topic/> or a native one to >. Then
// the server believes that an inbox is wanted when it is not: it keeps the pull, and takes what it sends there for
// delivered. wideGate is held.
func (b *Bridge) overheard() (bool, error) {
	if b.topics.wides.Load() > 0 {
		return true, nil
	}
	got := make(chan *nats.Msg, 1)
	inbox := b.cfg.Control.NewInbox()
	sub, err := b.cfg.Control.ChanSubscribe(inbox, got)
	if err != nil {
		return false, err
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only when the connection is gone, and then it is done
	if err := b.cfg.Control.PublishRequest(b.cfg.Control.NewInbox(), inbox, nil); err != nil {
		return false, err
	}
	if err := b.control.wait(leaveTimeout); err != nil {
		return false, err
	}
	select {
	case m := <-got:
		return m.Header.Get("Status") != "503", nil // Nobody listens to a subject that nobody knows.
	default:
		return true, nil
	}
}

// feed gives the first message back on its own, where a pull of this subscription still waits, so that it ends by that
// and takes nothing out of the order of the others. What is returned is still to be given back.
func (s *QueueSubscription) feed(back []Delivery) []Delivery {
	if len(back) == 0 {
		return nil
	}
	sortDeliveries(back)
	delivered := s.deliveries()
	if err := s.b.GiveBack(back[:1]); err != nil {
		return back
	}
	back = back[1:]
	// Somebody gets it, this subscription or another.
	for deadline := time.Now().Add(feedTimeout); s.outstanding > 0 && time.Now().Before(deadline); {
		went := s.deliveries() != delivered
		if err := s.b.control.wait(leaveTimeout); err != nil {
			break
		}
		s.receiveAll()
		if went {
			break
		}
	}
	back = append(back, s.refused...)
	s.refused = nil
	return back
}

// linger keeps the inbox until the pull that waits has ended, or can be ended, and gives back at once what it brings.
func (s *QueueSubscription) linger() {
	defer s.sub.Unsubscribe() //nolint:errcheck // fails only when the connection is gone, and then it is done
	over := time.NewTimer(pullExpires + time.Second)
	defer over.Stop()
	tick := time.NewTicker(lingerCheck)
	defer tick.Stop()
	for s.outstanding > 0 {
		select {
		case m := <-s.messages:
			s.receive(m)
		case <-tick.C:
			s.leave()
		case <-over.C:
			return
		case <-s.b.stop:
			return
		}
		if err := s.b.GiveBack(s.refused); err != nil {
			s.b.log.Warn("returning a message failed; it comes back after the ack wait", "stream", s.from.stream, "err", err)
		}
		s.refused = nil
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
	_, err := s.b.cfg.Control.Request(s.b.api+"CONSUMER.INFO."+s.from.stream+"."+s.from.name, nil, fetchTimeout)
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
	inbox := s.b.cfg.Control.NewInbox()
	got := make(chan *nats.Msg, messages+1)
	sub, err := s.b.cfg.Control.ChanSubscribe(inbox, got)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only when the connection is gone, and then it is done
	request := strconv.AppendInt([]byte(`{"no_wait":true,"batch":`), int64(messages), 10)
	if err := s.b.cfg.Control.PublishRequest(s.next(), inbox, append(s.appendGroup(request), '}')); err != nil {
		return err
	}
	limit := time.NewTimer(fetchTimeout)
	defer limit.Stop()
	for range messages {
		select {
		case m := <-got:
			at, ok := positionOf(m.Reply)
			if !ok {
				return nil // No more there.
			}
			s.sizes.delivered(m.Size())
			s.refuse(s.delivery(m, at))
		case <-limit.C:
			return ErrTimeout
		}
	}
	return nil
}
