package connector

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

type ackMode uint8

const (
	ackAuto ackMode = iota
	ackClient
	ackIndividual
)

var ackNames = [...]string{ackAuto: "auto", ackClient: "client", ackIndividual: "client-individual"}

func (m ackMode) String() string { return ackNames[m] }

// maxLate bounds the ids of messages that a subscription held too long and whose late ACK is still accepted.
const maxLate = 1_024

// subscription is one SUBSCRIBE. It takes messages from the bridge.
type subscription struct {
	// Immutable once the reader has made it.
	conn          *conn
	index         uint32 // first part of its message ids
	route         router.Route
	destination   string
	mode          ackMode
	noLocal       bool
	explicit      bool             // its messages are settled on JetStream
	durable       bridge.DurableID // what it is attached to; empty unless durable
	prefetch      int              // how many messages the client may hold; 0, where that is not explicit: any number
	ackWait       time.Duration
	maxDeliveries int    // delivery count from which a NACK has the largest delay
	head          string // the frame up to the second part of the message id
	ackHead       string // what goes between message id and ack's second part; empty in ack:auto
	topic         *bridge.TopicSubscription
	service       *bridge.Service // on /command and /query
	key           string          // in conn.subs
	asked         string          // the destination as the client wrote it, to be shown

	// Owned by the reader.
	implicit bool            // a reply-to brought it into being
	address  *bridge.Address // local destinations, once it is needed

	// Guarded by conn.mu.
	pull    pull
	held    bool   // its RECEIPT is not sent yet
	waiting []byte // frames that came before the RECEIPT
	parked  uint32 // how many they are
	dropped uint64 // messages for which there was no room, with limits.slow_consumer drop
	closed  bool
	heir    *subscription         // took over its local destination
	last    uint64                // second part of the newest message id
	pending map[uint64]pendingAck // queue, client modes: what the client holds
	unacked int                   // messages delivered and not settled
	late    []uint64              // held too long
	size    int                   // of the largest message lately, to be expected again
	need    int                   // octets that there must be room for before more comes; 0: no need
	window  topicWindow           // topic and ephemeral, client modes
}

// pull fetches the messages of a subscription.
type pull interface {
	// Halt ends pulling and does not wait; Halted is closed when nothing is on the way any more.
	Halt()
	Halted() <-chan struct{}
	// Wake says that there may be credit again. It does not block.
	Wake()
	// Stop ends it; held is what the client holds and goes back. It waits for NATS.
	Stop(held func() []bridge.Delivery)
}

// pendingAck is a message that a client holds.
type pendingAck struct {
	d     bridge.Delivery
	since time.Time
	end   uint64 // where its frame ends among all that the connection wrote
}

var (
	_ bridge.TopicReceiver = (*subscription)(nil)
	_ bridge.QueueReceiver = (*subscription)(nil)
	_ bridge.StoreReceiver = (*subscription)(nil)
)

// begin prepares the part of MESSAGE that never changes.
func (s *subscription) begin() {
	b := []byte("MESSAGE\n")
	if !strings.HasPrefix(s.key, "\x00") {
		b = frame.AppendHeader(b, s.conn.version, "subscription", s.key)
	}
	b = append(b, "message-id:"...)
	b = strconv.AppendUint(b, uint64(s.index), 10)
	b = append(b, '-')
	s.head = string(b)
	if s.mode != ackAuto {
		s.ackHead = "\nack:" + strconv.FormatUint(uint64(s.index), 10) + "-"
	}
}

// headRoom is the most octets that appendHead appends.
func (s *subscription) headRoom() int { return len(s.head) + len(s.ackHead) + 2*20 + 1 }

// appendHead appends the headers that differ per delivery; the message-id is also the ack value.
func (s *subscription) appendHead(dst []byte) []byte {
	s.last++
	s.conn.traffic.delivered[s.route.Pattern].Add(1)
	if s.held {
		s.parked++
	} else {
		s.conn.out.fresh.count(frame.Message)
	}
	dst = append(dst, s.head...)
	dst = strconv.AppendUint(dst, s.last, 10)
	if s.ackHead != "" {
		dst = append(dst, s.ackHead...)
		dst = strconv.AppendUint(dst, s.last, 10)
	}
	return append(dst, '\n')
}

// recovered logs a panic of a delivery and ends the one connection.
func (s *subscription) recovered() {
	if p := recover(); p != nil {
		s.conn.log.Error("panic in a delivery", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		s.conn.abort()
	}
}

// DeliverTopic implements bridge.TopicReceiver.
func (s *subscription) DeliverTopic(tail []byte, shared bool, origin string) {
	defer s.recovered()
	c := s.conn
	if s.noLocal && origin == c.name {
		return
	}
	if s.acceptTopic(tail, shared) {
		c.kick()
	}
}

func (s *subscription) acceptTopic(tail []byte, shared bool) (wake bool) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.heir != nil {
		s = s.heir
	}
	if s.closed || c.failed.Load() || c.out.closed {
		return false
	}
	if s.crowded(len(tail)) {
		return s.overflow()
	}
	s.put(tail, shared)
	return !s.held
}

// crowded says that the connection has no room for so many octets more. conn.mu is held.
func (s *subscription) crowded(octets int) bool {
	return s.conn.out.pending()+len(s.waiting)+octets > int(s.conn.srv.cfg.Limits.PendingBytes)
}

// put appends a MESSAGE to the outbox, or to what waits for the RECEIPT. conn.mu is held.
func (s *subscription) put(tail []byte, shared bool) {
	c := s.conn
	if s.mode != ackAuto {
		s.window.issue(s.last + 1)
	}
	if s.held {
		s.waiting = append(s.appendHead(s.waiting), tail...)
		return
	}
	room := s.headRoom()
	if !shared {
		room += len(tail)
	}
	b := s.appendHead(c.out.tail(room))
	if shared {
		c.out.keep(b)
		c.out.join(tail)
		return
	}
	c.out.keep(append(b, tail...))
}

// overflow is the slow-consumer policy. conn.mu is held.
func (s *subscription) overflow() (wake bool) {
	c := s.conn
	c.srv.slowDrops.Add(1)
	if c.srv.cfg.Limits.SlowConsumer == "drop" {
		s.dropped++
		return false
	}
	c.tooSlow()
	return true
}

// tooSlow ends a connection that does not read what is sent to it. c.mu is held.
func (c *conn) tooSlow() {
	c.audit.Warn("client.slow", "session", c.session, "reason", "limits.pending_bytes")
	c.lost = append(c.lost, c.out.discard()...)
	c.fail(errSlowConsumer, "")
}

// DeliverQueue implements bridge.QueueReceiver.
func (s *subscription) DeliverQueue(tail []byte, d bridge.Delivery) bool {
	defer s.recovered()
	if !s.acceptQueue(tail, d) {
		return false
	}
	s.conn.kick()
	return true
}

func (s *subscription) acceptQueue(tail []byte, d bridge.Delivery) bool {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.closed || c.failed.Load() || c.out.closed || !s.room(d.Size) {
		return false
	}
	c.out.keep(append(s.appendHead(c.out.tail(s.headRoom()+len(tail))), tail...))
	s.unacked++
	c.unacked++
	c.held += d.Size
	if s.mode == ackAuto {
		c.out.autos = append(c.out.autos, autoAck{end: c.out.appended, sub: s, d: d})
	} else {
		s.pending[s.last] = pendingAck{d: d, since: time.Now(), end: c.out.appended}
	}
	return true
}

// Ended implements bridge.QueueReceiver.
func (s *subscription) Ended() bool {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.closed || c.failed.Load() || c.out.closed
}

// Held implements bridge.QueueReceiver.
func (s *subscription) Held(now time.Time) (keep, expired []bridge.Delivery) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.out.autos {
		if a.sub == s {
			keep = append(keep, a.d)
		}
	}
	for n, p := range s.pending {
		if now.Sub(p.since) < s.ackWait {
			keep = append(keep, p.d)
			continue
		}
		expired = append(expired, s.drop(n))
		s.late = append(s.late, n)
	}
	if len(expired) > 0 && c.starved {
		c.starved = false
		c.wakeOthers(s)
	}
	if over := len(s.late) - maxLate; over > 0 {
		slices.Sort(s.late)
		s.late = append(s.late[:0], s.late[over:]...)
	}
	return keep, expired
}

// drop takes a message out of what the client holds. conn.mu is held.
func (s *subscription) drop(n uint64) bridge.Delivery {
	d := s.pending[n].d
	delete(s.pending, n)
	s.unacked--
	s.conn.unacked--
	s.conn.held -= d.Size
	return d
}

// Lost implements bridge.QueueReceiver.
func (s *subscription) Lost(err error) { s.conn.failNow(err) }

// release lets the messages flow once the RECEIPT is in the outbox. conn.mu is held.
func (s *subscription) release() {
	s.held = false
	if len(s.waiting) > 0 {
		s.conn.out.fresh[frame.Message-frame.Connected] += s.parked
		s.conn.out.keep(append(s.conn.out.tail(len(s.waiting)), s.waiting...))
		s.waiting = nil
	}
	if s.pull != nil {
		s.pull.Wake()
	}
}

// close stops deliveries: none comes after it.
func (s *subscription) close() {
	c := s.conn
	c.mu.Lock()
	s.closed = true
	s.waiting = nil
	delete(c.queues, s)
	s.served()
	c.mu.Unlock()
}

// leave ends the subscription on NATS and gives back what the client holds. It waits for NATS.
func (s *subscription) leave() {
	if s.address != nil {
		s.address.Close()
	}
	if s.topic != nil {
		s.topic.Close()
	}
	if s.service != nil {
		s.service.Close()
		s.refuseOpen()
	}
	if s.pull != nil { // Set by the reader, which is who leaves.
		s.pull.Stop(s.takeHeld)
		s.conn.queueSubs.Add(-1)
	}
}

// takeHeld empties what the client holds. What ack:auto has in the outbox stays: it is written, or given back when the
// session ends.
func (s *subscription) takeHeld() []bridge.Delivery {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	back := make([]bridge.Delivery, 0, len(s.pending))
	for n, p := range s.pending {
		d := s.drop(n)
		d.Unseen = c.out.dropped(p.end)
		back = append(back, d)
	}
	// What is lost of this subscription goes back in one order with the rest.
	c.lost = slices.DeleteFunc(c.lost, func(a autoAck) bool {
		if a.sub == s {
			back = append(back, a.d)
		}
		return a.sub == s
	})
	c.wakeOthers(s)
	return back
}

// topicWindow remembers which of the last messages of a topic, or of an ephemeral subscription to stored topics, are not
// settled, in the client modes. Acknowledging there has no other effect (DESIGN sections 4.1 and 4.2).
type topicWindow struct {
	bits []uint64
	open int // how many bits are set
}

// topicWindowSize is how many messages it remembers.
const topicWindowSize = 1_024

func (w *topicWindow) at(n uint64) (word *uint64, bit uint64) {
	i := n % topicWindowSize
	return &w.bits[i/64], 1 << (i % 64)
}

// issue notes a new message.
func (w *topicWindow) issue(n uint64) {
	if w.bits == nil {
		w.bits = make([]uint64, topicWindowSize/64)
	}
	word, bit := w.at(n)
	if *word&bit == 0 {
		w.open++
	}
	*word |= bit
}

// settle takes n, and if cumulative all before it, out of the window. false: it was settled before.
func (w *topicWindow) settle(n, last uint64, cumulative bool) bool {
	if last-n >= topicWindowSize {
		return true // Too old to know.
	}
	word, bit := w.at(n)
	if *word&bit == 0 {
		return false
	}
	w.clear(n)
	for i := n; cumulative && i > 1 && last-(i-1) < topicWindowSize; i-- {
		w.clear(i - 1)
	}
	return true
}

func (w *topicWindow) clear(n uint64) {
	word, bit := w.at(n)
	if *word&bit != 0 {
		*word &^= bit
		w.open--
	}
}
