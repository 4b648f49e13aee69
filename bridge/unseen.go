package bridge

import (
	"fmt"
	"maps"
	"sync"

	"github.com/nats-io/nats.go"
)

// maxUnseen bounds what is remembered. What is forgotten counts as delivered.
const maxUnseen = 65_536

// maxUnseenWord bounds a word about a delivery, which has two names and three numbers.
const maxUnseenWord = 1_024

// unseen remembers how many of JetStream's deliveries of a message no client can have seen, because they reached a
// subscription that had ended or an outbox that was dropped: they are no deliveries to whoever gets the message next.
type unseen struct {
	mu sync.Mutex
	of map[delivered]strays // guarded by mu
}

// delivered is a message of a consumer.
type delivered struct {
	consumer consumerID
	sequence uint64
}

// consumerID tells a consumer from those that had its name before.
type consumerID struct {
	stream, name string
	born         int64
}

// strays are deliveries that nobody saw.
type strays struct {
	count uint64 // how many
	last  uint64 // JetStream's count at the last of them
}

// stray notes that nobody has seen a delivery, and tells the other nodes. It is about to be given back: they hear this
// before they can get it, as long as all that is sent between nodes goes the same way.
func (b *Bridge) stray(d *Delivery) {
	if d.of == nil {
		return
	}
	key := delivered{d.of.id(), d.Sequence}
	b.unseen.note(key, d.total)
	m := &nats.Msg{Subject: queueRoot + wordUnseen, Header: nats.Header{nodeHeader: {b.queues.presence.node}}}
	m.Data = fmt.Append(m.Data, key.consumer.stream, " ", key.consumer.name, " ", key.consumer.born, " ", key.sequence, " ", d.total)
	if err := b.cfg.Control.PublishMsg(m); err != nil {
		b.log.Debug("a delivery that nobody saw was not told", "stream", key.consumer.stream, "err", err)
	}
}

// hear notes what another node says about a delivery.
func (u *unseen) hear(word []byte) {
	var (
		key   delivered
		total uint64
		c     = &key.consumer
	)
	if len(word) > maxUnseenWord {
		return
	}
	if _, err := fmt.Sscan(string(word), &c.stream, &c.name, &c.born, &key.sequence, &total); err == nil {
		u.note(key, total)
	}
}

func (u *unseen) note(key delivered, total uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil || len(u.of) >= maxUnseen {
		u.of = make(map[delivered]strays)
	}
	s := u.of[key]
	if total <= s.last { // JetStream has begun to count anew, or this came late.
		s.count = 0
	}
	u.of[key] = strays{count: s.count + 1, last: total}
}

// before is how many of the deliveries before this one nobody saw.
func (u *unseen) before(d *Delivery) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	s, ok := u.of[delivered{d.of.id(), d.Sequence}]
	if !ok || d.total <= s.last { // JetStream has begun to count anew.
		return 0
	}
	return min(s.count, d.total-1)
}

// settled forgets a message that does not come again.
func (u *unseen) settled(d *Delivery) {
	if d.total <= 1 || d.of == nil {
		return
	}
	u.mu.Lock()
	delete(u.of, delivered{d.of.id(), d.Sequence})
	u.mu.Unlock()
}

// forget forgets the messages of a stream, or all for an empty name. Its server may be another one, or another run of it,
// that has lost count of the latest deliveries: one that a client has seen must not be taken for one that nobody saw.
func (u *unseen) forget(stream string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.of, func(key delivered, _ strays) bool { return stream == "" || key.consumer.stream == stream })
}

// delivery is what settles a message.
func (s *QueueSubscription) delivery(m *nats.Msg, at position) Delivery {
	d := Delivery{
		Reply: m.Reply, Sequence: at.sequence, Count: at.count, Size: len(m.Data),
		of: s.d, total: at.count,
	}
	if d.total > 1 {
		_ = s.b.queues.presence.caughtUp() // What is not heard counts as delivered.
		d.Count -= s.b.unseen.before(&d)
	}
	return d
}

// refuse keeps a message that nobody has seen, to be given back.
func (s *QueueSubscription) refuse(d Delivery) {
	d.Unseen = true
	s.refused = append(s.refused, d)
}

// giveBack returns what the receiver had no room for, when nothing more is on the way that would go before it.
func (s *QueueSubscription) giveBack() {
	select {
	case <-s.stop:
		return // Stop does it.
	default:
	}
	if s.receiver.Ended() || s.outstanding > 0 && !s.waiting {
		return
	}
	if s.outstanding > 0 { // It would wait for more.
		s.silent()
		if err := s.b.control.wait(leaveTimeout); err != nil {
			return
		}
		for len(s.messages) > 0 {
			s.take(<-s.messages)
		}
	}
	back := s.refused
	s.refused, s.crowded = nil, false
	resume := s.pausePinned()
	if err := s.b.GiveBack(back); err != nil {
		s.b.log.Debug("returning messages failed; they come back after the ack wait", "stream", s.from.stream, "err", err)
	}
	resume()
}
