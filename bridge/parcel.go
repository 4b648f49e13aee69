package bridge

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Headers of a JetStream atomic batch (ADR-50).
const (
	batchIDHeader       = "Nats-Batch-Id"
	batchSequenceHeader = "Nats-Batch-Sequence"
	batchCommitHeader   = "Nats-Batch-Commit"
)

// maxBatches is how many atomic batches one stream works on at once; JetStream's own limit is 50.
const maxBatches = 16

// Codes by which JetStream refuses a publish.
const (
	codeWrongLast    = 10071 // the marker is there already
	codeIncomplete   = 10176 // a part of the batch did not reach the stream
	codeDuplicateIDs = 10201 // a message of the batch was stored before
)

// parcel is what is stored as a whole: one message, or an atomic batch. It has entered its place's window.
type parcel struct {
	msgs  []*nats.Msg
	one   [1]*nats.Msg // room for msgs
	size  int          // octets, for the window
	until time.Time
	whole bool // nothing may be left out because it was stored before
	done  func(error)
}

// dispatch publishes a parcel. Its end comes through finish.
func (b *Bridge) dispatch(to *place, p *parcel) {
	if err := p.fits(); err != nil {
		p.finish(to, err)
		return
	}
	last := len(p.msgs) - 1
	if last == 0 {
		for _, name := range []string{batchIDHeader, batchSequenceHeader, batchCommitHeader} {
			delete(p.msgs[0].Header, name) // Of a batch of which nothing else is left.
		}
		b.storeIn(to, p.msgs[0], func(err error) { b.outcome(to, p, err) })
		return
	}
	to.batches <- struct{}{}
	outcome := func(err error) {
		<-to.batches
		b.outcome(to, p, err)
	}
	id := b.batches.next()
	for i, m := range p.msgs {
		setHeader(m, batchIDHeader, id)
		setHeader(m, batchSequenceHeader, strconv.Itoa(i+1))
		if i == last {
			setHeader(m, batchCommitHeader, "1")
			b.storeIn(to, m, outcome)
			return
		}
		if err := b.publish(m); err != nil {
			outcome(fmt.Errorf("storing in %s: %w", to.stream, err)) // The batch stays without its commit.
			return
		}
	}
}

// storeIn publishes m to its place and reports the PubAck.
func (b *Bridge) storeIn(to *place, m *nats.Msg, done func(error)) {
	m.Reply = b.pubs.expect(func(answer *nats.Msg, err error) {
		if err == nil {
			err = pubAck(answer)
		}
		if errors.Is(err, ErrNoStream) {
			err = to.gone()
		}
		if err != nil && !errors.Is(err, ErrDuplicate) {
			err = fmt.Errorf("storing in %s: %w", to.stream, err)
		}
		done(err)
	})
	if err := b.publish(m); err != nil {
		b.pubs.cancel(m.Reply, err)
	}
}

// publish hands a message to NATS.
func (b *Bridge) publish(m *nats.Msg) error {
	err := b.cfg.Data.PublishMsg(m)
	if errors.Is(err, nats.ErrMaxPayload) {
		return ErrTooLarge
	}
	return err
}

// outcome is the answer to a parcel. It does not block.
func (b *Bridge) outcome(to *place, p *parcel, err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrNoStream) || refused(err, codeIncomplete):
		if b.park(to, p, err) {
			return
		}
	case !p.whole && refused(err, codeDuplicateIDs, codeInProcess):
		if b.launch(func() { b.sift(to, p) }) {
			return
		}
	}
	p.finish(to, err)
}

func (p *parcel) finish(to *place, err error) {
	to.window.leave(len(p.msgs), p.size)
	p.done(err)
}

// batchID makes the ids of atomic batches: a random start per process, then a counter.
type batchID struct {
	prefix string
	n      atomic.Uint64
}

func (id *batchID) next() string {
	return id.prefix + strconv.FormatUint(id.n.Add(1), 36)
}
