package bridge

import (
	"bytes"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// Sender sends what is not stored for one connection, and keeps its order, also over an outage of NATS. Its methods are
// safe for concurrent use; the order is that of the calls.
//
// done, where it is not nil, is called when the server has the message, or with the error that prevented it, unless the
// call returns an error; it must not block. While NATS is away such a message waits, up to the publish timeout; one that
// was on its way when the link broke is sent again. A message without done is dropped and counted then, which is no
// error. Headers and bodies are copied. A call may block while the link to NATS takes no more octets.
type Sender struct {
	b *Bridge

	mu      sync.Mutex
	last    uint64         // guarded by mu; number of the latest
	open    []*unconfirmed // guarded by mu; in order
	waiting bool           // guarded by mu; for the link: nothing is sent
	round   uint64         // guarded by mu; how often what was open was sent again
}

// unconfirmed is a message whose arrival is to be confirmed. Guarded by Sender.mu.
type unconfirmed struct {
	number   uint64    // in the order of the calls
	msg      *nats.Msg // nil: only what was sent before it is to be confirmed
	done     func(error)
	since    time.Time
	deadline time.Time

	sent       bool
	generation uint64 // of the link that carried it
}

// NewSender returns a Sender. It needs no end.
func (b *Bridge) NewSender() *Sender { return &Sender{b: b} }

// Topic sends to a topic. origin, if not empty, names the sending connection for no-local.
func (p *Sender) Topic(route router.Route, headers []frame.Header, body []byte, origin string, done func(error)) error {
	return p.send(topicMessage(route, headers, body, origin), done)
}

// Address sends to a reply address of any node. ErrAddress says that it was forged. Nobody may be there any more: then
// the message is dropped, and counted by the node that gave the address out.
func (p *Sender) Address(channel string, headers []frame.Header, body []byte, done func(error)) error {
	m, err := p.b.toAddress(channel, headers, body)
	switch {
	case err != nil:
		return err
	case m.Subject != "":
		return p.send(m, done)
	case done != nil:
		p.Flush(done)
	}
	return nil
}

// Answer sends a responder's answer.
func (p *Sender) Answer(reply string, headers []frame.Header, body []byte, done func(error)) error {
	return p.send(answering(reply, headers, body), done)
}

// Flush calls done when the server has every message before this call that was not dropped.
func (p *Sender) Flush(done func(error)) { p.confirm(nil, done) }

func (p *Sender) send(m nats.Msg, done func(error)) error {
	if done != nil {
		kept := m // What is not kept needs no memory.
		if p.b.cfg.External != nil {
			kept.Data = bytes.Clone(m.Data) // It may have to be sent again.
		}
		p.confirm(&kept, done)
		return nil
	}
	link := p.b.dataLink()
	generation := link.Enter()
	defer link.Leave(generation)
	p.mu.Lock()
	wait := p.mustWait(generation)
	p.mu.Unlock()
	if !wait {
		err := p.b.publish(&m)
		if !isOutage(err) {
			return err
		}
	}
	p.b.drops.Add(1)
	return nil
}

func topicMessage(route router.Route, headers []frame.Header, body []byte, origin string) nats.Msg {
	m := answering(route.Subject, headers, body)
	if origin != "" {
		setHeader(&m, originHeader, origin)
	}
	return m
}

// mustWait says that nothing may be sent now. p.mu is held.
func (p *Sender) mustWait(generation uint64) bool {
	if n := len(p.open); !p.waiting && n > 0 && p.open[n-1].generation != generation {
		p.wait() // What is on its way may be lost, and goes first.
	}
	return p.waiting
}

// wait has everything wait for the link. p.mu is held.
func (p *Sender) wait() {
	p.waiting = true
	p.b.care.add(p)
	p.b.care.hurry()
}

func (p *Sender) confirm(m *nats.Msg, done func(error)) {
	now := time.Now()
	link := p.b.dataLink()
	generation := link.Enter()
	defer link.Leave(generation)
	s := &unconfirmed{msg: m, done: done, since: now, deadline: now.Add(p.b.cfg.PublishTimeout), generation: generation}
	p.mu.Lock()
	s.sent = !p.mustWait(generation)
	p.last++
	s.number = p.last
	p.open = append(p.open, s)
	wait, round := p.waiting, p.round
	p.mu.Unlock()
	if !wait && !p.transmit(s) {
		p.flushAfter(s.number, round)
	}
}

// flushAfter has everything up to that number confirmed, unless it is sent again meanwhile.
func (p *Sender) flushAfter(number, round uint64) {
	p.b.data.after(func(err error) { p.flushed(number, round, err) })
}

// transmit hands s to NATS. down: the link is, so s waits.
func (p *Sender) transmit(s *unconfirmed) (down bool) {
	if s.msg == nil {
		return false
	}
	err := p.b.publish(s.msg)
	switch {
	case err == nil:
		return false
	case isOutage(err):
		p.mu.Lock()
		s.sent = false
		p.wait()
		p.mu.Unlock()
		return true
	}
	p.end(func(o *unconfirmed) bool { return o == s }, err)
	return false
}

// flushed says that the server has everything up to that number, if the link that carried it is the same.
func (p *Sender) flushed(number, round uint64, err error) {
	if err != nil {
		p.end(func(s *unconfirmed) bool { return s.number <= number }, err)
		return
	}
	var room [4]*unconfirmed
	over := room[:0]
	generation := p.b.dataLink().Generation()
	p.mu.Lock()
	for round == p.round && len(p.open) > 0 && p.open[0].number <= number {
		s := p.open[0]
		if !s.sent || s.generation != generation {
			p.wait()
			break
		}
		over = append(over, s)
		p.open[0] = nil
		p.open = p.open[1:]
	}
	p.mu.Unlock()
	for _, s := range over {
		var err error
		if s.msg != nil {
			err = p.b.denied(false, true, s.msg.Subject, s.since)
		}
		s.done(err)
	}
}

// end takes those out that match and tells them.
func (p *Sender) end(match func(*unconfirmed) bool, err error) {
	var over, left []*unconfirmed
	p.mu.Lock()
	for _, s := range p.open {
		if match(s) {
			over = append(over, s)
		} else {
			left = append(left, s)
		}
	}
	p.open = left
	p.mu.Unlock()
	for _, s := range over {
		s.done(err)
	}
}

// tend implements charge.
func (p *Sender) tend(now time.Time) (more bool) {
	if p.b.givenUp() {
		p.end(func(*unconfirmed) bool { return true }, ErrStopped)
	}
	p.end(func(s *unconfirmed) bool { return now.After(s.deadline) }, ErrTimeout)
	if p.b.cfg.Data.IsConnected() {
		p.resend()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) == 0 {
		p.waiting = false
	}
	return p.waiting
}

// resend sends, in order, what waits and what a broken link carried.
func (p *Sender) resend() {
	link := p.b.dataLink()
	p.mu.Lock()
	p.round++
	for {
		generation := link.Generation()
		s := p.due(generation)
		if s == nil {
			p.waiting = false
			last, round := p.last, p.round
			p.mu.Unlock()
			p.flushAfter(last, round)
			return
		}
		s.sent, s.generation = true, generation
		p.mu.Unlock()
		entered := link.Enter()
		down := entered != generation || p.transmit(s)
		link.Leave(entered)
		if down {
			return
		}
		p.mu.Lock()
	}
}

// due is the first message that waits or was lost; nil: none. p.mu is held.
func (p *Sender) due(generation uint64) *unconfirmed {
	for _, s := range p.open {
		if !s.sent || s.generation != generation {
			return s
		}
	}
	return nil
}
