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
	mark    mark
	window  *window
	batches chan struct{} // one token for each atomic batch on the way
	lane    *lane         // of an external NATS

	checking atomic.Bool // somebody looks after the stream

	mu      sync.Mutex
	pullers map[follower]struct{} // guarded by mu
}

// follower is a subscription that reads from a place.
type follower interface {
	// relink says that the link to NATS, or the stream's server, is another one. It does not block.
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
	if p.b.gone.has(p.stream) {
		f.removed(p.gone()) // Since the place was asked for.
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

// maxBatches is how many atomic batches one stream works on at once; JetStream's own limit is 50.
const maxBatches = 16

const (
	// windowMessages and windowBytes bound what waits for one stream's PubAck on this node. JetStream refuses
	// publishes above 100,000 messages or 128 MiB waiting.
	windowMessages = 4_000
	windowBytes    = 32 << 20
)

// window bounds messages and octets on the way. The first message always fits.
type window struct {
	maxMessages, maxBytes int

	mu              sync.Mutex
	room            sync.Cond
	messages, bytes int // guarded by mu
}

func newWindow(messages, bytes int) *window {
	w := &window{maxMessages: messages, maxBytes: bytes}
	w.room.L = &w.mu
	return w
}

// enter blocks until there is room. Everything that entered leaves within the publish timeout.
func (w *window) enter(messages, bytes int) {
	w.mu.Lock()
	for w.messages > 0 && (w.messages+messages > w.maxMessages || w.bytes+bytes > w.maxBytes) {
		w.room.Wait()
	}
	w.messages += messages
	w.bytes += bytes
	w.mu.Unlock()
}

func (w *window) leave(messages, bytes int) {
	w.mu.Lock()
	w.messages -= messages
	w.bytes -= bytes
	w.mu.Unlock()
	w.room.Broadcast()
}
