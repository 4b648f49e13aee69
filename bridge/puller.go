package bridge

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	pullExpires   = 30 * time.Second
	pullHeartbeat = 5 * time.Second
	// externalHeartbeat is pullHeartbeat where pulls are lost with the server that has them.
	externalHeartbeat = 2 * time.Second
	// pullSilence is after how many heart-beats without a word from the server a pull counts as lost.
	pullSilence = 3
	// pullBytes bounds the octets of one pull.
	pullBytes = 1 << 20
	// pullRetry is the pause after a refused pull.
	pullRetry = 500 * time.Millisecond
	// largeWait is how long a pull waits for a message that was said to be too large. One that does not wait may hear
	// that there is nothing, since the server's count of what there is lags, and would then be asked for in a loop.
	largeWait = 20 * time.Millisecond
	// maxLarge is how many pulls without bound in octets are open on this node.
	maxLarge = 4
	// largeRetry is the pause where those are all taken.
	largeRetry = 10 * time.Millisecond
	// statusRoom is the room for status messages beside the messages asked for.
	statusRoom = 64
	// receiveBurst is how many messages are received at most before anything else is looked at.
	receiveBurst = 64
)

// creditor says how much may be on the way to a receiver.
type creditor interface {
	// Credit says how many messages, and how many octets, may be asked for while outstanding messages are on the way
	// already. Zero: none now; Wake says when to ask again.
	Credit(outstanding int) (messages, octets int)
}

// consumer names a consumer of JetStream and what it takes of one pull; 0 is no limit.
type consumer struct {
	stream, name string
	maxBatch     int
	maxBytes     int
	maxExpires   time.Duration
}

// puller asks a consumer for messages as its receiver has credit for.
type puller struct {
	b        *Bridge
	place    *place
	from     consumer
	credit   creditor
	sizes    *sizes        // nil where nothing is returned
	room     int           // the most messages ever outstanding
	beat     time.Duration // between two words of the server
	wake     chan struct{}
	linked   chan struct{} // the link to NATS, or the stream, is another one
	stop     chan struct{}
	stopOnce sync.Once
	done     chan struct{} // closed when the loop has ended

	// Owned by the loop.
	// policy adds to a pull what the consumer's policy wants to know; nil: nothing.
	policy      func(request []byte) []byte
	inbox       string
	sub         *nats.Subscription
	messages    chan *nats.Msg
	outstanding int  // messages asked for that have not come
	octets      int  // octets asked for that have not come
	tooLarge    int  // the message that waits is larger than so many octets, which a pull had left; 0: that is not known
	large       bool // a pull without bound in octets is open, and no other; it holds a token
	waiting     bool // the open pull waits, for one message unless eager; only where messages are returned
	eager       bool // there is a pull open whenever there is credit: what comes in between goes to others
	more        bool // there may be more messages; only where messages are returned
	none        bool // the last pull without bound in octets found nothing
	paused      bool // there is no consumer to ask
	heard       time.Time
	retryAt     time.Time
}

// listener is what handles a puller's messages.
type listener interface {
	// receive takes one message: a delivery, or a status, which it hands to status.
	receive(m *nats.Msg)
	// tick is called at the loop's interval.
	tick(now time.Time)
	// silent says that the pull that is open is lost, or that the server knows nothing of it any more.
	silent()
}

func newPuller(p *place, from consumer, room int, c creditor) puller {
	beat := pullHeartbeat
	if p.b.cfg.External != nil {
		beat = externalHeartbeat
	}
	if from.maxBatch > 0 {
		room = min(room, from.maxBatch)
	}
	return puller{
		b: p.b, place: p, from: from, credit: c, room: room, beat: beat,
		wake:   make(chan struct{}, 1),
		linked: make(chan struct{}, 1),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
	}
}

// listen opens an inbox of its own for the pulls from now on.
func (p *puller) listen() (err error) {
	p.inbox = p.b.cfg.Control.NewInbox()
	room := p.room
	if p.b.cfg.External != nil {
		room *= 2 // A new inbox overlaps with the old one.
	}
	p.messages = make(chan *nats.Msg, room+statusRoom)
	p.forget()
	p.tooLarge, p.retryAt = 0, time.Time{}
	p.sub, err = p.b.cfg.Control.ChanSubscribe(p.inbox, p.messages)
	return err
}

// forget gives up the pulls that are open.
func (p *puller) forget() {
	p.outstanding, p.octets = 0, 0
	p.settleLarge()
}

// loop pulls until stop is closed. The caller calls forget in the end.
func (p *puller) loop(interval time.Duration, l listener) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	beat := time.NewTicker(p.beat)
	defer beat.Stop()
	p.heard = time.Now()
	var retry <-chan time.Time
	for {
		if p.putOff() <= 0 && !p.paused {
			p.pull()
		}
		if wait := p.putOff(); wait > 0 && retry == nil {
			retry = time.After(wait) // Also where this pull was put off.
		}
		select {
		case m := <-p.messages:
			p.heard = time.Now()
			l.receive(m)
			p.receiveMore(l)
		case <-p.wake:
		case <-retry:
			retry = nil
		case now := <-ticks.C:
			l.tick(now)
		case now := <-beat.C:
			if p.outstanding+p.octets > 0 && now.Sub(p.heard) > pullSilence*p.beat {
				p.place.interrupted()
				l.silent()
			}
		case <-p.linked:
			l.silent()
		case <-p.stop:
			return
		}
	}
}

// receiveMore has l receive what has come meanwhile, if it is not too much: a pull looks for credit and at the time once
// for all of it.
func (p *puller) receiveMore(l listener) {
	for range receiveBurst - 1 {
		select {
		case m := <-p.messages: // Of another channel, where the last one made the consumer anew.
			l.receive(m)
		default:
			return
		}
	}
}

// putOff is for how long nothing is asked for, after a pull that came to nothing.
func (p *puller) putOff() time.Duration {
	if p.retryAt.IsZero() {
		return 0
	}
	wait := time.Until(p.retryAt)
	if wait <= 0 {
		p.retryAt = time.Time{}
	}
	return wait
}

// Halt ends pulling and does not wait; what is on the way is still delivered. Stop must follow.
func (p *puller) Halt() { p.stopOnce.Do(func() { close(p.stop) }) }

// Halted is closed when nothing is on the way any more after Halt.
func (p *puller) Halted() <-chan struct{} { return p.done }

// Wake says that the receiver may have credit again. It does not block.
func (p *puller) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// relink implements follower.
func (p *puller) relink() {
	select {
	case p.linked <- struct{}{}:
	default:
	}
}

// next is the subject of pulls.
func (p *puller) next() string {
	return p.b.api + "CONSUMER.MSG.NEXT." + p.from.stream + "." + p.from.name
}

// budget is how much may be asked for now; no messages: nothing. Where messages are returned only one pull is open at a
// time, so that it can be ended without a message that is on its way to nobody; an eager one asks before the last pull has
// ended. While a message comes alone nothing else is asked for: what comes from two pulls of which only one is bounded in
// octets cannot be told apart.
func (p *puller) budget() (messages, octets int) {
	switch {
	case p.large, p.sizes != nil && p.outstanding > 0 && !p.eager:
		return 0, 0
	case p.outstanding == 0 && p.octets > 0:
		return 0, 0 // The word about the end of the last pull is on its way.
	}
	messages, octets = p.credit.Credit(p.outstanding)
	messages = min(messages, p.room-p.outstanding)
	most := pullBytes
	if p.from.maxBytes > 0 {
		most = min(most, p.from.maxBytes)
	}
	octets = min(octets-p.octets, most)
	// One more is worth it when it may bring as much as is on the way.
	if p.outstanding > 0 && (messages < p.outstanding || p.sizes == nil && octets < min(p.octets, most)) {
		return 0, 0
	}
	return max(messages, 0), octets
}

// pull asks for as much as the receiver has credit for, when little is on the way. Where messages are returned it takes
// what is there while there may be more, and ends by itself; else it waits for one message. An eager one asks for all at
// once instead.
func (p *puller) pull() {
	messages, octets := p.budget()
	if messages == 0 {
		return
	}
	// Only as many as fit: JetStream puts a returned message that does not fit a pull behind the others.
	largest := p.sizes.largest()
	alone := p.tooLarge > 0 && (p.sizes != nil || p.tooLarge >= octets) || largest > octets && !p.none
	waiting := false
	switch {
	case alone && p.outstanding == 0:
		// One message larger than the budget comes alone, and so do few on the whole node.
		select {
		case p.b.large <- struct{}{}:
		default:
			p.retryAt = time.Now().Add(largeRetry)
			return
		}
		p.large, messages, octets = true, 1, 0 // No bound passes for any bound that the consumer has.
	case octets <= 0 || alone:
		return
	case p.eager:
		waiting, messages = true, min(messages, max(octets/max(largest, 1), 1))
	case p.sizes != nil && (!p.more || largest == 0):
		waiting, messages = true, 1
	case largest > 0:
		messages = min(messages, max(octets/largest, 1))
	}
	if err := p.b.cfg.Control.PublishRequest(p.next(), p.inbox, p.request(messages, octets, waiting)); err != nil {
		p.settleLarge()
		p.retryAt = time.Now().Add(pullRetry)
		return
	}
	p.b.pulls.Add(1)
	p.outstanding += messages
	p.octets += octets
	p.tooLarge, p.waiting = 0, waiting
	p.heard = time.Now()
}

// request is what a pull asks for. No octets are no bound.
func (p *puller) request(messages, octets int, waiting bool) []byte {
	request := append(make([]byte, 0, 96), `{"batch":`...)
	request = strconv.AppendInt(request, int64(messages), 10)
	if octets > 0 {
		request = strconv.AppendInt(append(request, `,"max_bytes":`...), int64(octets), 10)
	}
	if p.policy != nil {
		request = p.policy(request)
	}
	switch {
	case p.large && p.tooLarge > 0:
		request = p.appendExpires(request, largeWait)
	case p.large, p.sizes != nil && !waiting:
		request = append(request, `,"no_wait":true`...)
	default:
		request = p.appendTimes(request)
	}
	return append(request, '}')
}

// appendTimes adds how long a request may wait and how often the server says that it lives, which JetStream bounds to
// half of that.
func (p *puller) appendTimes(request []byte) []byte {
	beat := p.beat
	if most := p.from.maxExpires; most > 0 && most < pullExpires {
		beat = min(beat, most/2)
	}
	request = p.appendExpires(request, pullExpires)
	return strconv.AppendInt(append(request, `,"idle_heartbeat":`...), int64(beat), 10)
}

// appendExpires adds how long a request may wait, as far as the consumer allows it.
func (p *puller) appendExpires(request []byte, expires time.Duration) []byte {
	if most := p.from.maxExpires; most > 0 {
		expires = min(expires, most)
	}
	return strconv.AppendInt(append(request, `,"expires":`...), int64(expires), 10)
}

// arrived counts a message that was asked for, by a pull that was not given up.
func (p *puller) arrived(m *nats.Msg) {
	p.sizes.delivered(m.Size())
	if m.Sub != p.sub {
		return
	}
	p.outstanding = max(p.outstanding-1, 0)
	p.used(m.Size())
	p.none, p.tooLarge = false, 0
}

// unserved is what an ended pull has left. One that does not wait ends without saying so, and was open alone.
func (p *puller) unserved(m *nats.Msg, code string) (messages, octets int) {
	messages, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	if p.large || err != nil {
		p.none = p.large && (code == "404" || code == "408")
	}
	if err != nil {
		return p.outstanding, p.octets
	}
	octets, _ = strconv.Atoi(m.Header.Get("Nats-Pending-Bytes")) // 0 where there was no bound.
	return messages, octets
}

// sizeSlack is what the same message may take more the next time: the numbers in its reply subject grow.
const sizeSlack = 64

// sizes remembers the largest message that a consumer has delivered lately on this node. What was delivered may come back,
// and then every pull must have room for it. What is thousands of messages ago is forgotten, so that one large message
// does not slow the consumer down for ever.
type sizes struct{ most atomic.Int64 }

func (s *sizes) largest() int {
	if s == nil {
		return 0
	}
	return int(s.most.Load())
}

func (s *sizes) delivered(octets int) {
	if s == nil {
		return
	}
	for {
		old := s.most.Load()
		most := max(int64(octets+sizeSlack), old-old/1024)
		if most == old || s.most.CompareAndSwap(old, most) {
			return
		}
	}
}

// used counts octets of the open pulls as come or given up. A pull whose octets are used up exactly ends without a word
// from the server, whatever it has left in messages.
func (p *puller) used(octets int) {
	p.octets = max(p.octets-octets, 0)
	if p.octets == 0 && !p.large {
		p.outstanding = 0
	}
	if p.outstanding == 0 {
		p.settleLarge()
	}
}

func (p *puller) settleLarge() {
	if p.large {
		p.large = false
		<-p.b.large
	}
}

// status handles the server's words about a pull. false: the consumer is gone, or cannot be reached.
func (p *puller) status(m *nats.Msg) (there bool) {
	if m.Sub != p.sub {
		return true // About a pull that was given up.
	}
	code := m.Header.Get("Status")
	switch code {
	case "":
		p.b.log.Warn("not a delivery", "stream", p.from.stream, "subject", m.Subject)
		return true
	case "100":
		return true // Idle heart-beat.
	}
	left, octets := p.unserved(m, code)
	p.outstanding = max(p.outstanding-left, 0)
	p.used(octets)
	switch description := m.Header.Get("Description"); {
	case description == "Batch Completed":
	case code == "404", code == "408":
		p.more = false
	case description == "Message Size Exceeds MaxBytes":
		p.tooLarge = max(p.tooLarge, octets, 1)
	case description == "Consumer Deleted", code == "503":
		// Whether the server was away, or somebody has deleted the consumer, the caller finds out.
		p.forget()
		p.retryAt = time.Now().Add(pullRetry)
		return false
	case description == "Server Shutdown", description == "Leadership Change":
		p.place.interrupted()
		p.retryAt = time.Now().Add(pullRetry)
	default:
		p.b.log.Debug("pull refused", "stream", p.from.stream, "code", code, "description", description)
		p.retryAt = time.Now().Add(pullRetry)
	}
	return true
}
