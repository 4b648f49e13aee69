package bridge

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
)

// place is a stream that this node publishes to, or pulls from.
type place struct {
	b       *Bridge
	stream  string // empty where only the subject is known
	bound   bool   // it is not natstomp's own: what is stored elsewhere is refused
	queue   *queue // whose subject may be away for a moment; nil: nobody takes it away
	mark    mark
	window  *window
	batches chan struct{} // one token for each atomic batch on the way
	lane    *lane         // of an external NATS

	checking atomic.Bool  // somebody looks after the stream
	created  atomic.Int64 // when the stream was, in ns since the epoch; 0: not known

	mu      sync.Mutex
	pullers map[follower]struct{} // guarded by mu
}

// follower is a subscription that reads from a place.
type follower interface {
	// relink says that the link to NATS, or the stream or its server, is another one. It does not block.
	relink()
	// Wake is puller.Wake.
	Wake()
	// removed says that the stream is gone.
	removed(err error)
}

func newPlace(b *Bridge, stream string) *place {
	p := &place{
		b:       b,
		stream:  stream,
		window:  newWindow(windowMessages, windowBytes),
		batches: make(chan struct{}, maxBatches),
		pullers: make(map[follower]struct{}),
	}
	p.lane = &lane{b: b, p: p}
	return p
}

// follow adds a subscription, which the caller takes out with unfollow.
func (p *place) follow(f follower) {
	p.mu.Lock()
	p.pullers[f] = struct{}{}
	p.mu.Unlock()
	switch {
	case p.b.gone.has(p.stream):
		f.removed(p.gone()) // Since the place was asked for.
	case p.window.gone():
		f.relink()
	}
}

func (p *place) unfollow(f follower) {
	p.mu.Lock()
	delete(p.pullers, f)
	p.mu.Unlock()
}

func (p *place) followers() []follower {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.pullers))
}

// wake has all subscriptions look for credit.
func (p *place) wake() {
	for _, f := range p.followers() {
		f.Wake()
	}
}

// relink has all subscriptions pull anew.
func (p *place) relink() {
	for _, f := range p.followers() {
		f.relink()
	}
}

// message is what is published for a SEND.
func (p *place) message(subject string, headers []frame.Header, body []byte) *nats.Msg {
	m := &nats.Msg{Subject: subject, Header: toNATS(headers), Data: body}
	if p.bound && p.stream != "" {
		if m.Header == nil {
			m.Header = make(nats.Header, 1)
		}
		m.Header[nats.ExpectedStreamHdr] = []string{p.stream}
	}
	return m
}

// gone is what it means that nothing stores the subject.
func (p *place) gone() error {
	if p.bound {
		return ErrNotThere
	}
	return ErrNoStream
}
