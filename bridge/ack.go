package bridge

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
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

// Ack settles a delivery without waiting for the server. An error means that NATS is away; the message will come again.
func (b *Bridge) Ack(d Delivery) error {
	b.unseen.settled(&d)
	return b.cfg.Control.Publish(d.Reply, ackWord)
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
	return b.cfg.Control.Publish(d.Reply, nakPayload(delay))
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

// confirm sends a word for each delivery and calls done after the last answer.
func (b *Bridge) confirm(ds []Delivery, word func(Delivery) []byte, done func(error)) {
	if len(ds) == 0 {
		done(nil)
		return
	}
	var (
		mu   sync.Mutex
		open = len(ds) // guarded by mu
		errs error     // guarded by mu
	)
	settled := func(m *nats.Msg, err error) {
		if err == nil && m.Header.Get("Status") == "503" {
			err = ErrNoStream
		}
		mu.Lock()
		open--
		errs = errors.Join(errs, err)
		last, result := open == 0, errs
		mu.Unlock()
		if last {
			done(result)
		}
	}
	for _, d := range ds {
		reply := b.acks.expect(settled)
		if err := b.cfg.Control.PublishRequest(d.Reply, reply, word(d)); err != nil {
			b.acks.cancel(reply, err)
		}
	}
}

// GiveBack returns deliveries to their queue in stream order, to be delivered at once to whoever asks next. It waits
// until JetStream has taken them back, so that a pull sent afterwards gets them first.
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
	delay := b.returnDelay()
	var errs []error
	for _, d := range ds[:last] {
		errs = append(errs, b.Nack(d, delay))
	}
	// JetStream handles the acks of a consumer one after the other: the last answer speaks for all.
	done := make(chan error, 1)
	b.ConfirmNack(ds[last:], func(Delivery) time.Duration { return delay }, func(err error) { done <- err })
	return errors.Join(append(errs, <-done)...)
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
