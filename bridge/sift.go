package bridge

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// codeNoRollup is how JetStream refuses a probe whose id it does not know.
	codeNoRollup = 10111
	// siftPause lets a message that is being stored be stored.
	siftPause = 20 * time.Millisecond
)

// sift takes the messages that were stored before out of a batch that JetStream refused for them, and sends the rest:
// JetStream does not say which they are.
func (b *Bridge) sift(to *place, p *parcel) {
	places, err := b.probe(p.msgs)
	late := time.Now().After(p.until)
	switch {
	case err != nil && b.cfg.External != nil && transient(err) && !late:
		b.pause(retryLeast)
		b.dispatch(to, p) // It is refused again, unless what was being stored has been forgotten.
		return
	case err == nil && late:
		err = ErrTimeout
	}
	if err != nil {
		p.finish(to, err)
		return
	}
	rest := make([]*nats.Msg, 0, len(p.msgs))
	for i, m := range p.msgs {
		if places[i] == 0 {
			rest = append(rest, m)
		}
	}
	if len(rest) == len(p.msgs) {
		b.pause(siftPause) // Forgotten meanwhile, or not stored yet.
	}
	if len(rest) == 0 {
		if err = ErrDuplicate; p.again && !p.followed(places) {
			err = nil // By an earlier transmission whose PubAck got lost.
		}
		p.finish(to, err)
		return
	}
	to.window.leave(len(p.msgs)-len(rest), 0)
	p.msgs = rest
	b.dispatch(to, p)
}

// followed says that all these places in the stream were taken before the parcel was sent.
func (p *parcel) followed(places []uint64) bool { return slices.Max(places) <= p.floor }

// probe asks for each message where in the stream the one of its id is; 0: the id is not known. It publishes the id with a
// header that JetStream refuses, but only after it has looked for the id.
func (b *Bridge) probe(msgs []*nats.Msg) ([]uint64, error) {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		places = make([]uint64, len(msgs)) // guarded by mu
		fault  error                       // guarded by mu
	)
	for i, m := range msgs {
		id := m.Header.Get(msgIDHeader)
		if id == "" {
			continue
		}
		wg.Add(1)
		reply := b.pubs.expect(func(answer *nats.Msg, err error) {
			defer wg.Done()
			if err == nil {
				err = pubAck(answer)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, ErrDuplicate):
				if places[i] = ackSequence(answer.Data); places[i] == 0 {
					places[i] = math.MaxUint64 // Somewhere.
				}
			case !refused(err, codeNoRollup, codeInProcess):
				fault = errors.Join(fault, err)
			}
		})
		ask := &nats.Msg{Subject: m.Subject, Reply: reply, Header: nats.Header{msgIDHeader: {id}, rollupHeader: {"none"}}}
		if err := b.publish(ask); err != nil {
			b.pubs.cancel(reply, err)
		}
	}
	wg.Wait()
	return places, fault
}
