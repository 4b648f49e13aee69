package connector

import (
	"errors"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// transaction holds frames until COMMIT. Its name is a label on its connection only (DESIGN section 4.6).
type transaction struct {
	steps []step
	bytes int
}

// step is one frame of a transaction: a SEND, or an ACK or NACK.
type step struct {
	send   *bridge.Send
	settle settlement
}

// maxDescribed is the octets that a step without body counts for.
const maxDescribed = 128

// begin is BEGIN.
func (c *conn) begin(f *frame.Frame) error {
	name, err := required(f, "transaction")
	if err != nil {
		return err
	}
	if _, open := c.txs[string(name)]; open {
		return refuse("transaction %s is open already", printable(string(name)))
	}
	if most := c.srv.cfg.Limits.Transactions; most > 0 && len(c.txs) >= most {
		return refuse("too many open transactions: limits.transactions is %d", most)
	}
	c.txs[string(name)] = &transaction{}
	c.done(c.receiptOf(f))
	return nil
}

// rollback is ABORT: nothing of the transaction takes effect, what it acknowledged is still held.
func (c *conn) rollback(f *frame.Frame) error {
	if _, err := c.end(f); err != nil {
		return err
	}
	c.done(c.receiptOf(f))
	return nil
}

// end takes the transaction that a frame names off the connection.
func (c *conn) end(f *frame.Frame) (*transaction, error) {
	name, err := required(f, "transaction")
	if err != nil {
		return nil, err
	}
	t, err := c.transaction(string(name))
	if err != nil {
		return nil, err
	}
	delete(c.txs, string(name))
	c.txBytes -= t.bytes
	return t, nil
}

func (c *conn) transaction(name string) (*transaction, error) {
	t, ok := c.txs[name]
	if !ok {
		return nil, refuse("no transaction %s is open on this connection", printable(name))
	}
	return t, nil
}

// sendLater adds a SEND to its transaction. Its RECEIPT says that it is accepted.
func (c *conn) sendLater(f *frame.Frame, s bridge.Send, name string) error {
	if err := c.checkUnstored(s.Route, f); err != nil {
		return err
	}
	size := maxDescribed + bridge.Size(f.Headers, f.Body)
	t, err := c.grow(name, size)
	if err != nil {
		return err
	}
	kept := f.Clone()
	s.Headers, s.Body = kept.Headers, kept.Body
	if err := c.srv.bridge.Fits(s); err != nil {
		return err
	}
	t.steps = append(t.steps, step{send: &s})
	c.done(c.receiptOf(f))
	return nil
}

// acknowledgeLater adds an ACK or NACK to its transaction.
func (c *conn) acknowledgeLater(s settlement, f *frame.Frame, name string) error {
	c.mu.Lock()
	known := s.sub.settles(s.n)
	c.mu.Unlock()
	if !known {
		return s.unknown()
	}
	t, err := c.grow(name, maxDescribed)
	if err != nil {
		return err
	}
	t.steps = append(t.steps, step{settle: s})
	c.done(c.receiptOf(f))
	return nil
}

// grow checks the limits of a transaction for one more frame of so many octets.
func (c *conn) grow(name string, size int) (*transaction, error) {
	t, err := c.transaction(name)
	if err != nil {
		return nil, err
	}
	limits := &c.srv.cfg.Limits
	if most := limits.TransactionFrames; most > 0 && len(t.steps) >= most {
		return nil, refuse("transaction %s is too long: limits.transaction_frames is %d", printable(name), most)
	}
	if most := int(limits.TransactionBytes); most > 0 && c.txBytes+size > most {
		return nil, refuse("transactions are too large: limits.transaction_bytes is %d", most)
	}
	t.bytes += size
	c.txBytes += size
	return t, nil
}

// commit is COMMIT. All stored SENDs of one queue are one atomic batch; only ACKs are applied in order; what would need
// more than that is refused before anything happens.
func (c *conn) commit(f *frame.Frame) error {
	if v, ok := f.Lookup("x-dedup-id"); ok && len(v) > 0 {
		return refuse("header x-dedup-id on COMMIT is not supported yet")
	}
	t, err := c.end(f)
	if err != nil {
		return err
	}
	p, err := c.plan(t)
	if err != nil {
		return err
	}
	number := c.reserve(c.receiptOf(f), t.bytes, nil)
	settled := func(err error) { c.settle(number, err) }
	if len(p.unstored) == 0 {
		c.apply(p, settled)
		return nil
	}
	// The other SENDs follow what is stored: the reader waits for that.
	stored := make(chan error, 1)
	c.apply(p, func(err error) { stored <- err })
	result := <-stored
	if result != nil && !errors.Is(result, bridge.ErrDuplicate) {
		settled(result)
		return nil
	}
	group := newJoin(len(p.unstored), func(err error) {
		if err == nil {
			err = result
		}
		settled(err)
	})
	var failed error
	for _, s := range p.unstored {
		if failed == nil {
			failed = c.publish(s.Route, sendFrame(s), group.one)
		}
		if failed != nil {
			group.one(failed)
		}
	}
	return nil
}

// plan is what a COMMIT will do.
type plan struct {
	stored   []bridge.Send
	unstored []bridge.Send // to topics, requests, answers
	acks     []settlement
}

// plan sorts the frames of a transaction and refuses what cannot be done whole.
func (c *conn) plan(t *transaction) (plan, error) {
	var p plan
	for _, s := range t.steps {
		switch {
		case s.send == nil:
			p.acks = append(p.acks, s.settle)
		case kept(s.send.Route.Pattern):
			p.stored = append(p.stored, *s.send)
		default:
			p.unstored = append(p.unstored, *s.send)
		}
	}
	for _, s := range p.stored {
		if !bridge.SamePlace(s.Route, p.stored[0].Route) {
			return p, refuse("COMMIT over several queues is not supported yet: nothing was stored, use one transaction per queue")
		}
	}
	if len(p.stored) > 0 && len(p.acks) > 0 {
		return p, refuse("COMMIT of SENDs to a queue together with ACK or NACK is not supported yet: nothing was stored or acknowledged")
	}
	if err := c.checkAllUnstored(p.unstored); err != nil {
		return p, err
	}
	return p, c.checkAcks(p.acks)
}

// checkAllUnstored refuses a COMMIT whose requests or answers are no longer possible.
func (c *conn) checkAllUnstored(sends []bridge.Send) error {
	answers := make(map[string]bool)
	for _, s := range sends {
		if err := c.checkUnstored(s.Route, sendFrame(s)); err != nil {
			return err
		}
		if s.Route.Pattern != router.Reply || bridge.IsAddress(s.Route.Channel) {
			continue
		}
		if answers[s.Route.Channel] {
			return refuse("destination %q: the transaction answers the request twice", addressName(s.Route))
		}
		answers[s.Route.Channel] = true
	}
	return nil
}

// sendFrame is the frame that a transaction kept.
func sendFrame(s bridge.Send) *frame.Frame {
	return &frame.Frame{Command: frame.Send, Headers: s.Headers, Body: s.Body}
}

// checkAcks refuses a COMMIT whose ACKs are no longer possible.
func (c *conn) checkAcks(acks []settlement) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range acks {
		if c.byIndex[s.sub.index] != s.sub || !s.sub.settles(s.n) {
			return s.unknown()
		}
	}
	return nil
}

// apply stores the SENDs, or settles the messages, and calls done after the confirmation of all.
func (c *conn) apply(p plan, done func(error)) {
	switch {
	case len(p.stored) > 0:
		c.srv.bridge.SendBatch(p.stored, done)
	case len(p.acks) > 0:
		c.applyAcks(p.acks, done)
	default:
		done(nil)
	}
}

// applyAcks settles in order; each is confirmed, and done hears of the last.
func (c *conn) applyAcks(acks []settlement, done func(error)) {
	group := newJoin(len(acks), done)
	for _, s := range acks {
		ds, err := c.take(s)
		if err != nil {
			// An earlier ACK of the same transaction covered it.
			group.one(nil)
			continue
		}
		c.settleConfirmed(s, ds, group.one)
	}
}
