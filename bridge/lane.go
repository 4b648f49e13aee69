package bridge

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// retryLeast and retryMost bound the pause between two attempts to store a message.
	retryLeast = 500 * time.Millisecond
	retryMost  = 2 * time.Second
)

// idHeader is by what JetStream knows a message that it has already.
const idHeader = "Nats-Msg-Id"

// lane holds the messages for one stream of an external NATS, in order, until JetStream has each (DESIGN section 8). A
// message may be sent several times: by its id JetStream stores it once. As long as acks come, messages are sent as they
// are given. Where they stop coming, or the link breaks, only the oldest is sent again and again until it is acked; then
// the others follow in order, so that what was sent first is stored first.
type lane struct {
	b *Bridge
	p *place

	mu         sync.Mutex
	queue      []*sending    // guarded by mu; in order, the first is not over
	stalled    bool          // guarded by mu; what is given waits for its turn
	setbacks   int           // guarded by mu; how often it has stalled, or failed to recover
	resume     bool          // guarded by mu; the stream answers again
	lost       uint64        // guarded by mu; with resume: what was sent up to here did not arrive
	backoff    time.Duration // guarded by mu
	probeAt    time.Time     // guarded by mu
	generation uint64        // guarded by mu; of the link that carried what is on the way
	acked      time.Time     // guarded by mu; when the latest ack came
	order      uint64        // guarded by mu; of the latest transmission
	passed     uint64        // guarded by mu; the latest transmission that was acked
	sequence   uint64        // guarded by mu; the highest in the stream that was acked
}

// sending is what is stored as a whole: one message, or an atomic batch. Guarded by lane.mu.
type sending struct {
	msgs     []*nats.Msg
	deadline time.Time
	done     func(error)

	tries int
	order uint64 // of the latest transmission
	sent  time.Time
	fault error // the latest answer that was no ack
	over  bool
}

// send stores msgs, which are kept until done is called, once, with nil after the PubAck or with the fault. Neither
// blocks, except that the link may take no more octets for a moment.
func (l *lane) send(msgs []*nats.Msg, done func(error)) {
	for _, m := range msgs {
		if m.Header == nil {
			m.Header = make(nats.Header, 1)
		}
		if len(m.Header[idHeader]) == 0 {
			m.Header[idHeader] = []string{l.b.ids.next()}
		}
	}
	now := time.Now()
	e := &sending{msgs: msgs, deadline: now.Add(l.b.cfg.PublishTimeout), done: done}
	link := l.b.dataLink()
	generation := link.Enter()
	defer link.Leave(generation)
	l.mu.Lock()
	first := len(l.queue) == 0
	l.queue = append(l.queue, e)
	switch {
	case first:
		l.generation, l.acked, l.stalled = generation, now, false
	case l.generation != generation:
		l.stall(now) // What is on the way may be lost, and goes first.
	}
	if l.stalled {
		l.mu.Unlock()
		l.b.care.hurry()
		return
	}
	try := l.mark(e, now)
	l.mu.Unlock()
	if first {
		l.b.care.add(l)
	}
	l.transmit(e, try)
}

// mark notes one more transmission of e. l.mu is held.
func (l *lane) mark(e *sending, now time.Time) (try int) {
	l.order++
	e.order, e.sent = l.order, now
	e.tries++
	if e.tries > 1 {
		l.b.retries.Add(1)
	}
	return e.tries
}

// transmit hands e to NATS.
func (l *lane) transmit(e *sending, try int) {
	reply := l.b.pubs.expect(func(m *nats.Msg, err error) { l.answered(e, try, m, err) })
	l.mu.Lock()
	msgs := e.msgs
	l.mu.Unlock()
	if err := l.b.publishAll(msgs, reply); err != nil {
		l.b.pubs.cancel(reply, err)
	}
}

// publishAll publishes one message, or an atomic batch under a new id. The messages are not changed.
func (b *Bridge) publishAll(msgs []*nats.Msg, reply string) error {
	if len(msgs) == 1 {
		m := *msgs[0]
		m.Reply = reply
		return b.publish(&m)
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
			return err // The batch stays without its commit.
		}
	}
	return nil
}

// answered takes the answer to one transmission.
func (l *lane) answered(e *sending, try int, m *nats.Msg, err error) {
	var sequence uint64
	if err == nil {
		if err = pubAck(m); err == nil {
			sequence = ackSequence(m.Data)
		}
	}
	if try > 1 && refused(err, codeDuplicateIDs) {
		err = nil // The batch was stored, its PubAck got lost.
	}
	now := time.Now()
	l.mu.Lock()
	switch {
	case e.over || errors.Is(err, ErrTimeout):
		l.mu.Unlock() // Of an earlier transmission; when it is enough says the deadline.
	case err == nil:
		l.sequence = max(l.sequence, sequence)
		l.arrived(e, try, now)
		l.end(e)
		l.mu.Unlock()
		e.done(nil)
	case transient(err):
		e.fault = err
		l.stall(now)
		l.mu.Unlock()
		if errors.Is(err, ErrNoStream) {
			l.p.suspect()
		}
	default:
		l.end(e)
		l.mu.Unlock()
		e.done(fmt.Errorf("storing in %s: %w", l.p.stream, err))
	}
}

// arrived notes an ack. l.mu is held.
func (l *lane) arrived(e *sending, try int, now time.Time) {
	l.acked = now
	latest := try == e.tries
	if latest {
		l.passed = max(l.passed, e.order)
	}
	if !l.stalled || l.resume {
		return
	}
	l.resume = true
	l.lost = 0
	if latest && try > 1 {
		l.lost = e.order // The earlier transmission did not arrive, so neither did what followed it.
	}
	l.b.care.hurry()
}

// stall has messages wait for their turn. l.mu is held.
func (l *lane) stall(now time.Time) {
	l.setbacks++
	if l.stalled {
		return
	}
	l.stalled, l.resume = true, false
	l.backoff = retryLeast
	l.probeAt = now.Add(l.backoff)
	l.b.care.hurry()
}

// end takes e out. l.mu is held.
func (l *lane) end(e *sending) {
	e.over = true
	e.msgs = nil
	i := 0
	for i < len(l.queue) && l.queue[i].over {
		l.queue[i] = nil
		i++
	}
	l.queue = l.queue[i:]
	if len(l.queue) == 0 {
		l.queue, l.stalled, l.resume = nil, false, false
	}
}

// confirmed is the highest sequence that JetStream has confirmed to this node.
func (l *lane) confirmed() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sequence
}

// fail ends all that waits.
func (l *lane) fail(err error) {
	l.mu.Lock()
	failed := l.queue
	l.queue, l.stalled, l.resume = nil, false, false
	failed = slices.DeleteFunc(failed, func(e *sending) bool { return e.over })
	for _, e := range failed {
		e.over = true
		e.msgs = nil
	}
	l.mu.Unlock()
	for _, e := range failed {
		e.done(fmt.Errorf("storing in %s: %w", l.p.stream, err))
	}
}

// tend implements charge.
func (l *lane) tend(now time.Time) (more bool) {
	if l.b.givenUp() {
		l.fail(ErrStopped)
		return false
	}
	l.expire(now)
	generation, up := l.b.dataLink().Generation(), l.b.cfg.Data.IsConnected()
	l.mu.Lock()
	if len(l.queue) == 0 {
		l.mu.Unlock()
		return false
	}
	head := l.queue[0]
	switch {
	case !up:
		l.mu.Unlock()
	case l.generation != generation:
		l.stall(now)
		l.generation = generation
		l.recover(l.order)
	case l.resume:
		l.recover(l.lost)
	case l.stalled && !now.Before(l.probeAt):
		l.probe(head, now)
	case !l.stalled && now.Sub(l.acked) > retryLeast && now.Sub(head.sent) > retryLeast:
		l.stall(now)
		l.probe(head, now)
	case !l.stalled && head.order < l.passed && now.Sub(head.sent) > retryLeast:
		l.stall(now) // Acks of later ones came: these are lost.
		l.recover(l.passed)
	default:
		l.mu.Unlock()
	}
	return true
}

// expire ends what has waited for too long.
func (l *lane) expire(now time.Time) {
	var late []*sending
	l.mu.Lock()
	for len(l.queue) > 0 && now.After(l.queue[0].deadline) {
		late = append(late, l.queue[0])
		l.end(l.queue[0])
	}
	l.mu.Unlock()
	for _, e := range late {
		if e.fault != nil {
			l.b.log.Warn("message not stored in time", "stream", l.p.stream, "tries", e.tries, "err", e.fault)
		}
		err := ErrTimeout
		if l.p.stream == "" && errors.Is(e.fault, ErrNoStream) {
			err = l.p.gone() // Nobody can tell better.
		}
		e.done(fmt.Errorf("storing in %s: %w", l.p.stream, err))
	}
}

// probe sends the oldest again. l.mu is held and released.
func (l *lane) probe(head *sending, now time.Time) {
	l.probeAt = now.Add(l.backoff)
	l.backoff = min(2*l.backoff, retryMost)
	try := l.mark(head, now)
	l.mu.Unlock()
	l.transmit(head, try)
}

// recover sends, in order, what was not sent yet and what was sent up to the transmission lost; then messages flow
// again. It gives up at the first setback. l.mu is held and released.
func (l *lane) recover(lost uint64) {
	link := l.b.dataLink()
	l.resume = false
	setbacks := l.setbacks
	for l.setbacks == setbacks {
		e := l.due(lost)
		if e == nil {
			l.stalled, l.acked = false, time.Now()
			break
		}
		try := l.mark(e, time.Now())
		l.mu.Unlock()
		generation := link.Enter()
		l.mu.Lock()
		if generation != l.generation {
			l.setbacks++ // What was sent so far is lost again.
			link.Leave(generation)
			break
		}
		l.mu.Unlock()
		l.transmit(e, try)
		link.Leave(generation)
		l.mu.Lock()
	}
	l.mu.Unlock()
}

// due is the first message that waits for its turn, or was lost; nil: none. l.mu is held.
func (l *lane) due(lost uint64) *sending {
	for _, e := range l.queue {
		if !e.over && (e.tries == 0 || e.order <= lost) {
			return e
		}
	}
	return nil
}

// transient says that trying again may help.
func transient(err error) bool {
	if isOutage(err) || errors.Is(err, ErrNoStream) {
		return true
	}
	var api *apiError
	return errors.As(err, &api) && (api.Status == 503 || api.Status == 429 || slices.Contains(transientCodes, api.Code))
}

// Codes by which JetStream refuses a publish.
const (
	codeNotLeader    = 10009
	codeIDInProcess  = 10158 // the same message is being stored
	codeIncomplete   = 10176 // a part of the batch did not reach the stream
	codeDuplicateIDs = 10201 // a message of the batch was stored before
)

var transientCodes = []int{codeNotLeader, codeIDInProcess, codeIncomplete}
