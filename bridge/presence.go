package bridge

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// usersRoot begins the subjects on which nodes that have subscriptions on a queue answer.
	usersRoot = "_natstomp.users."
	// nodeRoot begins the subjects on which nodes answer that they live.
	nodeRoot = "_natstomp.node."
	// queueRoot begins the subjects on which a node tells the others that it is about to delete the stream of a queue, and
	// how that ended.
	queueRoot   = "_natstomp.queue."
	wordClosing = "closing"
	wordGone    = "gone"
	wordOpen    = "open"
	wordUnseen  = "unseen" // about a delivery, see unseen
	wordEnded   = "ended"  // about a durable subscription, see attachments
	// nodeHeader names the node that says something.
	nodeHeader = "Natstomp-Node"
	// presenceTimeout bounds one question.
	presenceTimeout = 500 * time.Millisecond
)

// presence tells the nodes of one NATS from each other: which of them live and which use a queue. An answer is interest
// in a subject; JetStream keeps nothing.
type presence struct {
	b    *Bridge
	node string

	questions chan *nats.Msg
	words     *nats.Subscription // what other nodes say about queues
	heard     atomic.Int64       // how many of those words were handled
	subs      []*nats.Subscription

	mu    sync.Mutex
	users map[*queue]*nats.Subscription // guarded by mu
	// closing are the streams that other nodes are about to delete.
	closing map[string]*closing // guarded by mu
}

// closing says of a stream that it is about to be deleted. Several nodes may try at once, and each says how that ended.
type closing struct {
	nodes   map[string]struct{}
	missing time.Time // since when it is known not to be there; zero: not known
}

func newPresence(b *Bridge) *presence {
	return &presence{
		b:         b,
		node:      nats.NewInbox()[len(nats.InboxPrefix):],
		questions: make(chan *nats.Msg, 256),
		users:     make(map[*queue]*nats.Subscription),
		closing:   make(map[string]*closing),
	}
}

// start begins to answer, and to hear of queues that other nodes delete.
func (p *presence) start(gone func(stream string)) error {
	sub, err := p.b.cfg.Control.ChanSubscribe(nodeRoot+p.node, p.questions)
	if err != nil {
		return err
	}
	p.subs = append(p.subs, sub)
	sub, err = p.b.cfg.Control.Subscribe(queueRoot+"*", func(m *nats.Msg) {
		node := m.Header.Get(nodeHeader)
		switch word := strings.TrimPrefix(m.Subject, queueRoot); {
		case node == p.node:
		case word == wordUnseen:
			p.b.unseen.hear(m.Data)
		case word == wordEnded:
			p.b.attached.ended(string(m.Data))
		default:
			p.hear(word, string(m.Data), node, gone)
		}
		p.heard.Add(1)
	})
	if err != nil {
		return err
	}
	p.words = sub
	p.subs = append(p.subs, sub)
	return nil
}

// hear notes what another node says about a stream.
func (p *presence) hear(word, stream, node string, gone func(stream string)) {
	p.mu.Lock()
	c := p.closing[stream]
	switch {
	case word == wordClosing && c == nil:
		p.closing[stream] = &closing{nodes: map[string]struct{}{node: {}}}
	case word == wordClosing:
		c.nodes[node], c.missing = struct{}{}, time.Time{}
	case c != nil:
		if delete(c.nodes, node); len(c.nodes) == 0 {
			delete(p.closing, stream)
		}
	}
	p.mu.Unlock()
	if word == wordGone {
		gone(stream)
	}
}

// catchUp returns when everything that other nodes had said before is heard.
func (p *presence) catchUp() error {
	if err := p.b.control.wait(leaveTimeout); err != nil {
		return err
	}
	return p.caughtUp()
}

// caughtUp returns when everything is heard that has come from the server.
func (p *presence) caughtUp() error {
	for {
		waiting, _, err := p.words.Pending()
		if err != nil {
			return err
		}
		handed, err := p.words.Delivered()
		if err != nil {
			return err
		}
		if waiting == 0 && p.heard.Load() >= handed {
			return nil
		}
		p.b.pause(100 * time.Microsecond)
	}
}

// closers are the nodes that are about to delete a stream.
func (p *presence) closers(stream string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.closing[stream]
	if c == nil {
		return nil
	}
	return slices.Collect(maps.Keys(c.nodes))
}

// missingSince is since when a stream is known not to be there, which whoever calls it has just seen. It outlasts what
// waits for the stream where somebody is about to delete it.
func (p *presence) missingSince(stream string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	c := p.closing[stream]
	if c == nil {
		return now
	}
	if c.missing.IsZero() {
		c.missing = now
	}
	return c.missing
}

// found notes that a stream is there.
func (p *presence) found(stream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.closing[stream]; c != nil {
		c.missing = time.Time{}
	}
}

// settled forgets that nodes are about to delete a stream.
func (p *presence) settled(stream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.closing, stream)
}

// run answers until the bridge stops.
func (p *presence) run() {
	for {
		select {
		case m := <-p.questions:
			_ = m.Respond([]byte("here")) // Without NATS there is nobody to answer.
		case <-p.b.stop:
			return
		}
	}
}

func (p *presence) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sub := range p.users {
		p.subs = append(p.subs, sub)
	}
	for _, sub := range p.subs {
		_ = sub.Unsubscribe() // Fails only when the connection is gone, and then it is done.
	}
}

// update tells the other nodes whether this one has subscriptions on a queue.
func (p *presence) update(q *queue) error {
	for {
		p.mu.Lock()
		unused, _ := q.window.free()
		sub := p.users[q]
		if unused {
			delete(p.users, q)
		}
		p.mu.Unlock()
		switch {
		case unused == (sub == nil):
			return nil
		case unused:
			if err := sub.Unsubscribe(); err != nil {
				return err
			}
			continue
		}
		sub, err := p.b.cfg.Control.ChanSubscribe(usersRoot+q.stream, p.questions)
		if err != nil {
			return err
		}
		p.mu.Lock()
		if p.users[q] == nil {
			p.users[q], sub = sub, nil
		}
		p.mu.Unlock()
		if sub != nil {
			_ = sub.Unsubscribe() // Somebody else was quicker; one answer more does no harm.
		}
	}
}

// used says whether any node has subscriptions on a queue. One that does not answer in time, though somebody listens,
// has not: that may be a subscription to everything. If it has after all, it goes on with the next queue (rejoin).
func (qs *queues) used(q *queue) bool {
	_, err := qs.b.cfg.Control.Request(usersRoot+q.stream, nil, presenceTimeout)
	return !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, nats.ErrTimeout)
}

// alive says whether a node lives. In doubt it does.
func (qs *queues) alive(node string) bool {
	_, err := qs.b.cfg.Control.Request(nodeRoot+node, nil, presenceTimeout)
	return !errors.Is(err, nats.ErrNoResponders)
}

// announce says a word about a queue to the other nodes.
func (p *presence) announce(word string, q *queue) error { return p.say(word, q.stream) }

// say says a word to the other nodes. It returns when the server has it.
func (p *presence) say(word, about string) error {
	m := &nats.Msg{Subject: queueRoot + word, Header: nats.Header{nodeHeader: {p.node}}, Data: []byte(about)}
	if err := p.b.cfg.Control.PublishMsg(m); err != nil {
		return err
	}
	return p.b.control.wait(leaveTimeout)
}
