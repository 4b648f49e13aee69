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
	codeNotLeader    = 10009
	codeWrongLast    = 10071 // the marker is there already
	codeInProcess    = 10158 // a message of the same id is being stored
	codeIncomplete   = 10176 // a part of the batch did not reach the stream
	codeDuplicateIDs = 10201 // a message of the batch was stored before
)

// parcel is what is stored as a whole: one message, or an atomic batch. It has entered its place's window.
type parcel struct {
	msgs  []*nats.Msg
	one   [1]*nats.Msg // room for msgs
	size  int          // octets, for the window
	until time.Time
	whole bool   // nothing may be left out because it was stored before
	again bool   // it was sent more than once: what is stored already may be of this parcel
	floor uint64 // what is stored up to there was stored before it was sent; of an external NATS
	done  func(error)
}

// dispatch publishes a parcel. Its end comes through outcome.
func (b *Bridge) dispatch(to *place, p *parcel) {
	if err := p.fits(); err != nil {
		to.window.leave(len(p.msgs), p.size)
		p.done(fmt.Errorf("storing in %s: %w", to.stream, err))
		return
	}
	if len(p.msgs) > 1 {
		to.batches <- struct{}{}
	}
	if b.cfg.External != nil {
		to.lane.send(p)
		return
	}
	reply := b.pubs.expect(func(answer *nats.Msg, err error) {
		if err == nil {
			err = pubAck(answer)
		}
		b.outcome(to, p, err)
	})
	if err := b.publishAll(p.msgs, reply); err != nil {
		b.pubs.cancel(reply, err) // A batch stays without its commit.
	}
}

// publishAll publishes one message, or an atomic batch under a new id. The messages are not changed.
func (b *Bridge) publishAll(msgs []*nats.Msg, reply string) error {
	if len(msgs) == 1 {
		return b.publishFor(msgs[0], reply)
	}
	id := b.batches.next()
	for i, original := range msgs {
		m := *original
		m.Header = make(nats.Header, len(original.Header)+3)
		for name, values := range original.Header {
			m.Header[name] = values
		}
		m.Header[batchIDHeader] = []string{id}
		m.Header[batchSequenceHeader] = []string{strconv.Itoa(i + 1)}
		if i == len(msgs)-1 {
			m.Header[batchCommitHeader] = []string{"1"}
			m.Reply = reply
		}
		if err := b.publish(&m); err != nil {
			return err
		}
	}
	return nil
}

// publish hands a message to NATS.
func (b *Bridge) publish(m *nats.Msg) error { return publishFault(b.cfg.Data.PublishMsg(m)) }

// publishFor hands a message to NATS that is to be answered to reply. The message is not changed.
func (b *Bridge) publishFor(m *nats.Msg, reply string) error {
	if len(m.Header) == 0 {
		return publishFault(b.cfg.Data.PublishRequest(m.Subject, reply, m.Data))
	}
	answered := *m
	answered.Reply = reply
	return b.publish(&answered)
}

func publishFault(err error) error {
	if errors.Is(err, nats.ErrMaxPayload) {
		return ErrTooLarge
	}
	return linkFault(err)
}

// outcome is the answer to a parcel. It does not block.
func (b *Bridge) outcome(to *place, p *parcel, err error) {
	if len(p.msgs) > 1 {
		<-to.batches
	}
	switch {
	case err == nil:
	case b.cfg.External == nil && (errors.Is(err, ErrNoStream) || refused(err, codeIncomplete)):
		if b.park(to, p) {
			return
		}
		if errors.Is(err, ErrNoStream) {
			to.suspect()
			err = to.gone()
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
	if err != nil && !errors.Is(err, ErrDuplicate) {
		err = fmt.Errorf("storing in %s: %w", to.stream, err)
	}
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
