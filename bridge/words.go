package bridge

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// maxWords bounds the settlements that are kept while NATS is away, and those whose arrival is not known. What clients
// hold bounds them too.
const maxWords = 200_000

// words are the settlements that could not be sent, or may have been lost with a link: they follow when it is there
// again, before anything is pulled.
type words struct {
	b *Bridge

	mu     sync.Mutex
	kept   []word // guarded by mu; in order
	acks   []word // guarded by mu; sent, their arrival is not known
	before uint64 // guarded by mu; how many went out of acks
	asked  bool   // guarded by mu; a round trip is under way
}

type word struct {
	reply      string
	text       []byte
	since      time.Time
	generation uint64
}

// say sends a word of the ack protocol, now or after the outage. An error means that it never will be.
func (ws *words) say(reply string, text []byte) error {
	if ws.b.cfg.External == nil {
		return linkFault(ws.b.cfg.Control.Publish(reply, text))
	}
	err := ws.put(word{reply: reply, text: text, since: time.Now()})
	ws.b.care.add(ws)
	return err
}

func (ws *words) put(w word) error {
	link := ws.b.controlLink()
	w.generation = link.Enter()
	err := linkFault(ws.b.cfg.Control.Publish(w.reply, w.text))
	link.Leave(w.generation)
	lost := isOutage(err)
	if err != nil && !lost {
		return err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	switch {
	case lost:
		ws.kept = bounded(ws.kept, w)
	case bytes.Equal(w.text, ackWord): // Others would do harm if they came twice.
		had := len(ws.acks)
		ws.acks = bounded(ws.acks, w)
		ws.before += uint64(had + 1 - len(ws.acks))
	}
	return nil
}

func bounded(list []word, w word) []word {
	if over := len(list) + 1 - maxWords; over > 0 {
		list = append(list[:0], list[over:]...)
	}
	return append(list, w)
}

// tend implements charge.
func (ws *words) tend(now time.Time) (more bool) {
	if ws.b.givenUp() {
		return false
	}
	if ws.b.cfg.Control.IsConnected() {
		ws.resend(now)
		ws.ask()
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.kept) > 0 || len(ws.acks) > 0
}

// resend says what could not be said, and again what a broken link carried.
func (ws *words) resend(now time.Time) {
	generation := ws.b.controlGeneration()
	ws.mu.Lock()
	again := ws.kept
	if n := len(ws.acks); n > 0 && ws.acks[0].generation != generation {
		again = append(ws.acks[:n:n], again...)
		ws.acks = nil
		ws.before += uint64(n)
	}
	ws.kept = nil
	ws.mu.Unlock()
	for _, w := range again {
		if stale(w, now) {
			continue
		}
		if err := ws.put(w); err != nil {
			return // Closed: the end.
		}
	}
}

// ask has the acks that the server has by now forgotten.
func (ws *words) ask() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.asked || len(ws.acks) == 0 {
		return
	}
	ws.asked = true
	upTo, generation := ws.before+uint64(len(ws.acks)), ws.b.controlGeneration()
	ws.b.control.after(func(err error) {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		ws.asked = false
		if err == nil && ws.b.controlGeneration() == generation && upTo > ws.before {
			ws.acks = ws.acks[min(upTo-ws.before, uint64(len(ws.acks))):]
			ws.before = upTo
		}
	})
}

// stale says that a word would do harm: after the ack wait somebody else may hold what it gives back. An ack is good at
// any time.
func stale(w word, now time.Time) bool {
	return !bytes.Equal(w.text, ackWord) && now.Sub(w.since) > ackWait
}

// confirmation is a number of settlements that JetStream is to confirm. On an external NATS they are repeated as long
// as nothing confirms them.
type confirmation struct {
	b        *Bridge
	done     func(error)
	deadline time.Time

	mu         sync.Mutex
	asked      []*question   // guarded by mu
	open       int           // guarded by mu; not answered
	err        error         // guarded by mu; of the answers
	generation uint64        // guarded by mu; of the link that carried the questions
	backoff    time.Duration // guarded by mu
	next       time.Time     // guarded by mu
}

// question is one settlement. Guarded by confirmation.mu.
type question struct {
	reply    string
	text     []byte
	answered bool
	failed   bool // it certainly did not arrive
}

// confirm sends a word for each delivery and calls done after the last answer.
func (b *Bridge) confirm(ds []Delivery, text func(Delivery) []byte, done func(error)) {
	if len(ds) == 0 {
		done(nil)
		return
	}
	now := time.Now()
	c := &confirmation{
		b: b, done: done, deadline: now.Add(b.cfg.PublishTimeout), open: len(ds),
		generation: b.controlGeneration(), backoff: retryLeast, next: now.Add(retryLeast),
	}
	for _, d := range ds {
		c.asked = append(c.asked, &question{reply: d.Reply, text: text(d)})
	}
	for _, a := range slices.Clone(c.asked) {
		c.ask(a)
	}
	if b.cfg.External != nil {
		b.care.add(c)
	}
}

func (c *confirmation) ask(a *question) {
	inbox := c.b.acks.expect(func(m *nats.Msg, err error) { c.answered(a, m, err) })
	if err := linkFault(c.b.cfg.Control.PublishRequest(a.reply, inbox, a.text)); err != nil {
		c.b.acks.cancel(inbox, err)
	}
}

func (c *confirmation) answered(a *question, m *nats.Msg, err error) {
	if err == nil && m.Header.Get("Status") == "503" {
		err = ErrNoStream
	}
	c.mu.Lock()
	again := c.b.cfg.External != nil && (errors.Is(err, ErrNoStream) || errors.Is(err, ErrTimeout) || isOutage(err))
	if a.answered || again {
		a.failed = a.failed || again && !errors.Is(err, ErrTimeout)
		c.mu.Unlock()
		return
	}
	a.answered = true
	c.open--
	c.err = errors.Join(c.err, err)
	last, result := c.open == 0, c.err
	c.mu.Unlock()
	if last {
		c.done(result)
	}
}

// tend implements charge.
func (c *confirmation) tend(now time.Time) (more bool) {
	gone := c.b.givenUp()
	if gone || now.After(c.deadline) {
		c.giveUp(gone)
		return false
	}
	generation, up := c.b.controlGeneration(), c.b.cfg.Control.IsConnected()
	var again []*question
	c.mu.Lock()
	more = c.open > 0
	relinked := c.generation != generation
	if up && more && (relinked || !now.Before(c.next)) {
		c.generation = generation
		c.next = now.Add(c.backoff)
		c.backoff = min(2*c.backoff, retryMost)
		for _, a := range c.asked {
			// A NAK that did arrive must not take the message from whoever has it now.
			if !a.answered && (relinked || a.failed || bytes.Equal(a.text, ackWord)) {
				a.failed = false
				again = append(again, a)
			}
		}
	}
	c.mu.Unlock()
	for _, a := range again {
		c.ask(a)
	}
	return more
}

func (c *confirmation) giveUp(stopped bool) {
	c.mu.Lock()
	open := c.open
	c.open = 0
	for _, a := range c.asked {
		a.answered = true
	}
	err := ErrTimeout
	if stopped {
		err = ErrStopped
	}
	err = errors.Join(c.err, err)
	c.mu.Unlock()
	if open > 0 {
		c.done(err)
	}
}
