package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

var (
	// ErrQueueFull says that the stream refused a message for lack of room.
	ErrQueueFull = errors.New("queue full")
	// ErrTooLarge says that a message with its headers is above the server's max_payload.
	ErrTooLarge = errors.New("message too large")
	// ErrDuplicate says that the stream has, or had, a message of the same id, so that nothing was stored.
	ErrDuplicate = errors.New("stored before")
	// ErrNoBatch says that a stream which is not natstomp's own takes no transactions.
	ErrNoBatch = errors.New("the stream takes no atomic batches")
	// ErrNoTTL says that a stream which is not natstomp's own takes no messages that expire.
	ErrNoTTL = errors.New("the stream takes no messages that expire")
	// ErrNoDelay says that messages of a queue that is bound to somebody else's stream cannot be delayed.
	ErrNoDelay = errors.New("messages of a bound queue cannot be delayed")
	// ErrNoStream says that nothing on NATS stores the subject any more.
	ErrNoStream = errors.New("the queue's stream is gone")
)

// Error codes of JetStream.
const (
	errWrongStream = 10060 // The stream is not the one expected.
	errNoTTL       = 10166 // Messages of the stream do not expire one by one.
	errNoBatches   = 10174 // Atomic publish is disabled.
)

// Size is the octets of a message, for limits.
func Size(headers []frame.Header, body []byte) int {
	size := len(body)
	for _, h := range headers {
		size += len(h.Name) + len(h.Value)
	}
	return size
}

// SendQueue stores one message in its queue, or in the stream of a stored topic, which is made at first use. done is
// called once, with nil after the PubAck, with ErrDuplicate if the message was stored before, or with the fault; it must
// not block. SendQueue itself blocks while the stream is made and while more than the window waits for PubAcks. Headers
// and body are copied.
func (b *Bridge) SendQueue(s Send, done func(error)) {
	now := time.Now()
	s.Body = bytes.Clone(s.Body)
	switch {
	case s.Options.dead(now):
		b.expired.Add(1)
		done(nil)
		return
	case s.Options.Delay > 0:
		b.delays.send([]Send{s}, now, done)
		return
	}
	size := s.size()
	to, subject, err := b.enter(s.Route, 1, size)
	if err != nil {
		done(err)
		return
	}
	p := &parcel{size: size, done: done, until: now.Add(b.cfg.PublishTimeout)}
	p.one[0] = s.message(to, subject, now)
	p.msgs = p.one[:]
	b.dispatch(to, p)
}

// SendBatch stores all of sends, which belong to one place (see SamePlace), or none of them (DESIGN section 4.6). Those that were stored
// before, by their dedup id, and those that have expired are left out; done is called with ErrDuplicate if nothing was
// left. done and blocking are as with SendQueue; the bodies must not change afterwards.
func (b *Bridge) SendBatch(sends []Send, done func(error)) {
	now := time.Now()
	live, delayed := b.live(sends, now)
	switch {
	case len(live) == 0:
		done(nil)
	case delayed:
		b.delays.send(live, now, done)
	default:
		b.sendNow(live, now, done)
	}
}

// live returns what is to be stored of a batch, and whether any of it is delayed.
func (b *Bridge) live(sends []Send, now time.Time) (live []Send, delayed bool) {
	live = make([]Send, 0, len(sends))
	var seen map[string]bool
	for _, s := range sends {
		if s.Options.dead(now) {
			b.expired.Add(1)
			continue
		}
		if id := s.msgID(); id != "" {
			if seen[id] {
				continue
			}
			if seen == nil {
				seen = make(map[string]bool)
			}
			seen[id] = true
		}
		delayed = delayed || s.Options.Delay > 0
		live = append(live, s)
	}
	return live, delayed
}

func (b *Bridge) sendNow(sends []Send, now time.Time, done func(error)) {
	to, subject, err := b.enter(sends[0].Route, len(sends), sizeOf(sends))
	if err != nil {
		done(err)
		return
	}
	p := &parcel{size: sizeOf(sends), done: done, until: now.Add(b.cfg.PublishTimeout)}
	for i := range sends {
		if i > 0 {
			if _, subject, err = b.place(sends[i].Route); err != nil {
				p.msgs = make([]*nats.Msg, len(sends)) // As many as entered.
				p.finish(to, err)
				return
			}
		}
		p.msgs = append(p.msgs, sends[i].message(to, subject, now))
	}
	b.dispatch(to, p)
}

func sizeOf(sends []Send) (octets int) {
	for i := range sends {
		octets += sends[i].size()
	}
	return octets
}

// enter takes room in the window of the place of a route, and returns it with the route's subject there.
func (b *Bridge) enter(route router.Route, messages, octets int) (*place, string, error) {
	for {
		to, subject, err := b.place(route)
		if err != nil || to.window.enter(messages, octets) {
			return to, subject, err
		}
	}
}

// How a PubAck begins, and what only a refusal or a duplicate contains.
var ackStart, ackFault, ackTwice = []byte(`{"stream":"`), []byte(`"error":`), []byte(`"duplicate":`)

// apiError is JetStream's refusal of a publish.
type apiError struct {
	Status      int    `json:"code"`
	Code        int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (%d)", e.Description, e.Code) }

// refused says whether err is JetStream's refusal with one of the codes.
func refused(err error, codes ...int) bool {
	var e *apiError
	return errors.As(err, &e) && slices.Contains(codes, e.Code)
}

// pubAck is the verdict of JetStream's answer to a publish.
func pubAck(m *nats.Msg) error {
	if len(m.Data) == 0 {
		if m.Header.Get("Status") == "503" {
			return ErrNoStream
		}
		return errors.New("empty answer to a publish")
	}
	if bytes.HasPrefix(m.Data, ackStart) && !bytes.Contains(m.Data, ackFault) && !bytes.Contains(m.Data, ackTwice) {
		return nil
	}
	var ack struct {
		Error     *apiError `json:"error"`
		Stream    string    `json:"stream"`
		Duplicate bool      `json:"duplicate"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return fmt.Errorf("reading a PubAck: %w", err)
	}
	switch {
	case ack.Error == nil && ack.Stream == "":
		return errors.New("answer to a publish names no stream")
	case ack.Error == nil && ack.Duplicate:
		return ErrDuplicate
	case ack.Error == nil:
		return nil
	case strings.Contains(ack.Error.Description, "maximum bytes exceeded"),
		strings.Contains(ack.Error.Description, "maximum messages exceeded"):
		return ErrQueueFull
	case ack.Error.Code == errWrongStream:
		return ErrNotThere
	case ack.Error.Code == errNoBatches:
		return ErrNoBatch
	case ack.Error.Code == errNoTTL:
		return ErrNoTTL
	}
	return ack.Error
}

// ackSequence is the sequence that a PubAck tells, 0 if none is found.
func ackSequence(ack []byte) (sequence uint64) {
	const key = `"seq":`
	i := bytes.Index(ack, []byte(key))
	if i < 0 {
		return 0
	}
	for _, digit := range ack[i+len(key):] {
		if digit < '0' || digit > '9' {
			break
		}
		sequence = sequence*10 + uint64(digit-'0')
	}
	return sequence
}
