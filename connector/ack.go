package connector

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
)

// maxNackDelay bounds x-delay on NACK.
const maxNackDelay = 24 * time.Hour

// settlement is an ACK or NACK: which message, and what is to become of it.
type settlement struct {
	nack     bool
	sub      *subscription
	n        uint64
	delay    time.Duration // NACK with x-delay
	hasDelay bool
}

// acknowledge is ACK and NACK. Without receipt they are not confirmed by JetStream; a message whose ACK got lost comes
// again.
func (c *conn) acknowledge(f *frame.Frame) error {
	s, err := c.settlementOf(f)
	if err != nil {
		return err
	}
	if tx, ok := f.Lookup("transaction"); ok && s.sub != nil {
		return c.acknowledgeLater(s, f, string(tx))
	}
	receipt := c.receiptOf(f)
	if s.sub == nil {
		c.srv.lateAcks.Add(1) // It crossed the UNSUBSCRIBE that gave the message back.
		c.done(receipt)
		return nil
	}
	ds, err := c.take(s)
	if err != nil {
		return err
	}
	if receipt == "" {
		c.settleUnconfirmed(s, ds)
		return nil
	}
	number := c.reserve(receipt, 0, nil)
	c.settleConfirmed(s, ds, func(err error) { c.settle(number, err) })
	return nil
}

// settlementOf reads an ACK or NACK frame. The message is named by id (STOMP 1.2) or message-id (all versions, and
// clients that use it on 1.2 too).
func (c *conn) settlementOf(f *frame.Frame) (settlement, error) {
	name := "message-id"
	id, ok := f.Lookup(name)
	if v, has := f.Lookup("id"); has && c.version >= frame.V12 {
		name, id, ok = "id", v, true
	}
	if !ok || len(id) == 0 {
		if c.version >= frame.V12 {
			name = "id"
		}
		return settlement{}, refuse("%s needs a header %s", f.Command, name)
	}
	sub, n, err := c.find(f, id)
	if err != nil {
		return settlement{}, err
	}
	s := settlement{nack: f.Command == frame.Nack, sub: sub, n: n}
	if !s.nack {
		return s, nil
	}
	if v, ok := f.Lookup("requeue"); ok && string(v) != "true" {
		return s, refuse("header requeue:%s on NACK is not supported: there is no dead-letter queue yet", printable(string(v)))
	}
	s.delay, s.hasDelay, err = milliseconds(f, "x-delay", 0, maxNackDelay)
	return s, err
}

// find is the subscription and the number within it that a message id names; nil for one that was unsubscribed.
func (c *conn) find(f *frame.Frame, id []byte) (*subscription, uint64, error) {
	unknown := func() error {
		return refuse("%s: no message %s was delivered on this connection, or it is settled already", f.Command, printable(string(id)))
	}
	first, second, ok := bytes.Cut(id, []byte{'-'})
	if !ok {
		return nil, 0, unknown()
	}
	index, err := strconv.ParseUint(string(first), 10, 32)
	if err != nil {
		return nil, 0, unknown()
	}
	n, err := strconv.ParseUint(string(second), 10, 64)
	if err != nil {
		return nil, 0, unknown()
	}
	s, ok := c.byIndex[uint32(index)]
	if last, gone := c.gone[uint32(index)]; gone && n > 0 && n <= last {
		return nil, n, nil
	}
	if !ok || n == 0 {
		return nil, 0, unknown()
	}
	if named, has := f.Lookup("subscription"); has && c.subs[string(named)] != s {
		return nil, 0, refuse("%s: message %s does not belong to subscription %s", f.Command, printable(string(id)), printable(string(named)))
	}
	if s.mode == ackAuto {
		return nil, 0, refuse("%s: message %s was delivered with ack:auto", f.Command, printable(string(id)))
	}
	return s, n, nil
}

// take removes from what the client holds all messages that a settlement covers, in the order of delivery.
func (c *conn) take(s settlement) ([]bridge.Delivery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sub := s.sub
	if !sub.settles(s.n) {
		return nil, s.unknown()
	}
	if !sub.explicit {
		if !sub.window.settle(s.n, sub.last, sub.mode == ackClient) {
			return nil, s.unknown()
		}
		return nil, nil
	}
	var ds []bridge.Delivery
	if sub.mode == ackClient {
		// Cumulative within its own subscription only (STOMP 1.2, ACK).
		var covered []uint64
		for n := range sub.pending {
			if n <= s.n {
				covered = append(covered, n)
			}
		}
		slices.Sort(covered)
		for _, n := range covered {
			ds = append(ds, sub.drop(n))
		}
		c.settleLate(sub, func(n uint64) bool { return n <= s.n })
		return ds, nil
	}
	if _, ok := sub.pending[s.n]; ok {
		return append(ds, sub.drop(s.n)), nil
	}
	c.settleLate(sub, func(n uint64) bool { return n == s.n })
	return nil, nil
}

// settleLate accepts and counts the ACK of messages that were held too long: they are with somebody else. conn.mu is
// held.
func (c *conn) settleLate(s *subscription, covered func(n uint64) bool) {
	before := len(s.late)
	s.late = slices.DeleteFunc(s.late, covered)
	c.srv.lateAcks.Add(uint64(before - len(s.late)))
}

// settles says whether n is a message that the client may settle. conn.mu is held.
func (s *subscription) settles(n uint64) bool {
	if n > s.last {
		return false
	}
	if !s.explicit {
		return true
	}
	_, ok := s.pending[n]
	return ok || slices.Contains(s.late, n)
}

func (s settlement) unknown() error {
	verb := "ACK"
	if s.nack {
		verb = "NACK"
	}
	return refuse("%s: no message %d-%d was delivered on this connection, or it is settled already", verb, s.sub.index, s.n)
}

// delayOf is after what time a message comes again.
func (c *conn) delayOf(s settlement) func(bridge.Delivery) time.Duration {
	if s.hasDelay {
		return func(bridge.Delivery) time.Duration { return s.delay }
	}
	return s.sub.redeliveryDelay
}

// redeliveryDelay doubles with each delivery; from max_deliveries on it is the largest.
func (s *subscription) redeliveryDelay(d bridge.Delivery) time.Duration {
	q := &s.conn.srv.cfg.Queues
	delay := q.RedeliveryDelay
	for i := uint64(1); i < d.Count && delay < q.RedeliveryDelayMax; i++ {
		delay *= 2
	}
	if s.maxDeliveries > 0 && d.Count >= uint64(s.maxDeliveries) {
		return q.RedeliveryDelayMax
	}
	return min(delay, q.RedeliveryDelayMax)
}

func (c *conn) settleUnconfirmed(s settlement, ds []bridge.Delivery) {
	delay := c.delayOf(s)
	for _, d := range ds {
		err := error(nil)
		if s.nack {
			err = c.srv.bridge.Nack(d, delay(d))
		} else {
			err = c.srv.bridge.Ack(d)
		}
		if err != nil {
			c.log.Debug("ack not sent, the message comes again", "err", err)
		}
	}
	c.wakeAfter(s.sub)
}

func (c *conn) settleConfirmed(s settlement, ds []bridge.Delivery, done func(error)) {
	if s.nack {
		c.srv.bridge.ConfirmNack(ds, c.delayOf(s), done)
	} else {
		c.srv.bridge.ConfirmAck(ds, done)
	}
	c.wakeAfter(s.sub)
}

// wakeAfter lets pulls go on after messages were settled: the subscription's own, and all of the connection when one
// found the connection's limits used up.
func (c *conn) wakeAfter(s *subscription) {
	c.mu.Lock()
	starved := c.starved
	c.starved = false
	if !starved && s.pull != nil {
		s.pull.Wake()
	}
	c.mu.Unlock()
	if starved {
		c.wakePulls()
	}
}
