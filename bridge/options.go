package bridge

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// Headers of a stored message that JetStream acts on.
const (
	ttlHeader      = "Nats-TTL"
	msgIDHeader    = "Nats-Msg-Id"
	rollupHeader   = "Nats-Rollup"
	expectedHeader = "Nats-Expected-Last-Subject-Sequence"
)

// maxTTL is from what time on a message counts as one that never expires: JetStream counts nanoseconds.
const maxTTL = 100 * 365 * 24 * time.Hour

// SendOptions is what a SEND to a queue asks for beyond being stored (DESIGN section 4.3).
type SendOptions struct {
	// Expires is when the message is removed at the earliest, in ms since the epoch; 0 is never.
	Expires int64
	// TTL is how long the message is kept at least, from the moment it is stored; 0 is for ever. Expires comes first.
	TTL time.Duration
	// Delay is how long the message is not shown to anybody, from the moment it is stored.
	Delay time.Duration
	// DedupID names the message: one of the same Identity and queue with the same id is stored once. Empty: none.
	DedupID string
	// Identity is whose ids these are.
	Identity string
}

// Send is one SEND to a queue.
type Send struct {
	Route   router.Route
	Headers []frame.Header
	Body    []byte
	Options SendOptions
}

func (s *Send) size() int { return Size(s.Headers, s.Body) }

// expiry is when a message stored at now is to be removed, in ms since the epoch; 0: never.
func (o *SendOptions) expiry(now time.Time) int64 {
	switch {
	case o.Expires > 0:
		return o.Expires
	case o.TTL > 0:
		return now.Add(o.TTL).UnixMilli()
	}
	return 0
}

// dead says that a message stored at now would be removed before anybody could see it.
func (o *SendOptions) dead(now time.Time) bool {
	at := o.expiry(now)
	return at > 0 && at <= now.Add(o.Delay).UnixMilli()
}

// message is what is stored for a SEND, or, with a delay, what the message is made of later.
func (s *Send) message(to *place, subject string, now time.Time) *nats.Msg {
	m := to.message(subject, s.Headers, s.Body)
	if at := s.Options.expiry(now); at > 0 {
		setHeader(m, expiresHeader, strconv.FormatInt(at, 10))
		setTTL(m, at, now)
	}
	if id := s.msgID(); id != "" {
		setHeader(m, msgIDHeader, id)
	}
	return m
}

// setTTL makes JetStream remove m at a time in ms since the epoch, rounded up to the whole seconds that it counts.
func setTTL(m *nats.Msg, at int64, now time.Time) {
	const limit = int64(maxTTL / time.Millisecond)
	left := at - now.UnixMilli()
	if at > math.MaxInt64/2 || left > limit {
		return
	}
	setHeader(m, ttlHeader, strconv.FormatInt(max((left+999)/1000, 1), 10))
}

// msgID is what JetStream knows the message by: unlike for another identity, queue or id.
func (s *Send) msgID() string {
	if s.Options.DedupID == "" {
		return ""
	}
	h := sha256.New()
	for _, part := range []string{s.Options.Identity, s.Route.Channel, s.Options.DedupID} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return "stomp-" + hex.EncodeToString(h.Sum(nil)[:16])
}
