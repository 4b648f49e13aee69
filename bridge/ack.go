package bridge

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"
)

// The words of JetStream's ack protocol.
var (
	ackWord      = []byte("+ACK")
	nakWord      = []byte("-NAK")
	progressWord = []byte("+WPI")
)

// Delivery is one message of a queue that a client holds: what is needed to settle it.
type Delivery struct {
	// Reply is the subject that settles it.
	Reply string
	// Sequence is its place in the stream.
	Sequence uint64
	// Count is how often it was delivered, this time included.
	Count uint64
	// Size is its octets, for the limits.
	Size int
	// Unseen says that no client can have seen this delivery, so that it does not count once it is given back.
	Unseen bool

	of    *durable // whose it is
	total uint64   // JetStream's count, which has deliveries that nobody saw
}

// Ack settles a delivery without waiting for the server; while NATS is away the ack is kept for when it is back. After
// an error the message will come again.
func (b *Bridge) Ack(d Delivery) error {
	b.unseen.settled(&d)
	return b.words.say(d.Reply, ackWord)
}

// ConfirmAck settles deliveries and calls done once JetStream has confirmed all of them, or with the first fault. done
// must not block.
func (b *Bridge) ConfirmAck(ds []Delivery, done func(error)) {
	for i := range ds {
		b.unseen.settled(&ds[i])
	}
	b.confirm(ds, func(Delivery) []byte { return ackWord }, done)
}

// Nack gives a delivery back; it comes again after the delay, at once if that is 0.
func (b *Bridge) Nack(d Delivery, delay time.Duration) error {
	return b.words.say(d.Reply, nakPayload(delay))
}

// ConfirmNack is Nack for several, each with its delay, with JetStream's confirmation.
func (b *Bridge) ConfirmNack(ds []Delivery, delay func(Delivery) time.Duration, done func(error)) {
	b.confirm(ds, func(d Delivery) []byte { return nakPayload(delay(d)) }, done)
}

func nakPayload(delay time.Duration) []byte {
	if delay <= 0 {
		return nakWord
	}
	return append(strconv.AppendInt([]byte(`-NAK {"delay": `), int64(delay), 10), '}')
}

// GiveBack returns deliveries to their queue in stream order, to be delivered at once to whoever asks next. It waits
// until JetStream has taken them back, so that a pull sent afterwards gets them first; but not for a NATS that is away,
// which gets them when it is back.
func (b *Bridge) GiveBack(ds []Delivery) error {
	if len(ds) == 0 {
		return nil
	}
	sortDeliveries(ds)
	for i := range ds {
		if ds[i].Unseen {
			b.stray(&ds[i])
		}
	}
	last := len(ds) - 1
	delay, limit := b.returnDelay(), b.cfg.PublishTimeout
	if b.cfg.External != nil {
		limit = leaveTimeout
	}
	if !b.cfg.Control.IsConnected() {
		last++
	}
	var errs []error
	for _, d := range ds[:last] {
		errs = append(errs, b.Nack(d, delay))
	}
	// JetStream handles the acks of a consumer one after the other: the last answer speaks for all.
	done := make(chan error, 1)
	b.ConfirmNack(ds[last:], func(Delivery) time.Duration { return delay }, func(err error) { done <- err })
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return errors.Join(append(errs, err)...)
	case <-timer.C:
		return errors.Join(append(errs, ErrTimeout)...)
	}
}

// sortDeliveries puts deliveries into stream order.
func sortDeliveries(ds []Delivery) {
	slices.SortFunc(ds, func(a, b Delivery) int { return cmp.Compare(a.Sequence, b.Sequence) })
}

// Closing says that the NATS server ends together with the Bridge, and nobody else reads from it any more.
func (b *Bridge) Closing() { b.closing.Store(true) }

// returnDelay is after what time a message that is given back comes again. JetStream saves when a message is due, but
// not that it was given back: where the server ends, it must be due already.
func (b *Bridge) returnDelay() time.Duration {
	if b.closing.Load() {
		return time.Nanosecond
	}
	return 0
}
