package bridge

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// retryLeast and retryMost bound the pause between two attempts to store a message.
	retryLeast = 500 * time.Millisecond
	retryMost  = 2 * time.Second
)

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

// sending is a parcel on its way. Guarded by lane.mu.
type sending struct {
	p     *parcel
	msgs  []*nats.Msg // those of p until it is over
	tries int
	order uint64 // of the latest transmission
	sent  time.Time
	fault error // the latest answer that was no ack
	over  bool
}

// send stores a parcel, whose end comes through outcome. It does not block, except that the link may take no more octets
// for a moment.
func (l *lane) send(p *parcel) {
	l.name(p)
	e := &sending{p: p, msgs: p.msgs}
	link := l.b.dataLink()
	generation := link.Enter()
	defer link.Leave(generation)
	now := time.Now()
	l.mu.Lock()
	if !p.again {
		p.floor = l.sequence
	}
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

// name gives an id to what has none. A parcel that is stored whole has a marker of its own instead.
func (l *lane) name(p *parcel) {
	if p.whole {
		return
	}
	for _, m := range p.msgs {
		if len(m.Header[msgIDHeader]) == 0 {
			setHeader(m, msgIDHeader, l.b.ids.next())
		}
	}
}

// mark notes one more transmission of e. l.mu is held.
func (l *lane) mark(e *sending, now time.Time) (try int) {
	l.order++
	e.order, e.sent = l.order, now
	e.tries++
	if e.tries > 1 {
		e.p.again = true
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

// answered takes the answer to one transmission.
func (l *lane) answered(e *sending, try int, m *nats.Msg, err error) {
	var sequence uint64
	if err == nil {
		err = pubAck(m)
		sequence = ackSequence(m.Data)
	}
	now := time.Now()
	l.mu.Lock()
	switch {
	case e.over || errors.Is(err, ErrTimeout):
		l.mu.Unlock() // Of an earlier transmission; when it is enough says the deadline.
	case err == nil || errors.Is(err, ErrDuplicate):
		if e.p.again && sequence > e.p.floor {
			err = nil // The PubAck of an earlier transmission got lost.
		}
		l.sequence = max(l.sequence, sequence)
		l.arrived(e, try, now)
		l.end(e)
		l.mu.Unlock()
		l.b.outcome(l.p, e.p, err)
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
		l.b.outcome(l.p, e.p, err)
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
	for _, p := range l.take() {
		l.b.outcome(l.p, p, err)
	}
}

// take takes all that waits out, in order. What was sent may be in a stream that has taken the place of the lane's.
func (l *lane) take() (parcels []*parcel) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.queue {
		if !e.over {
			e.over, e.msgs = true, nil
			e.p.again = e.p.again || e.tries > 0
			parcels = append(parcels, e.p)
		}
	}
	l.queue, l.stalled, l.resume = nil, false, false
	return parcels
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
	for len(l.queue) > 0 && now.After(l.queue[0].p.until) {
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
		l.b.outcome(l.p, e.p, err)
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

var transientCodes = []int{codeNotLeader, codeInProcess, codeIncomplete}
