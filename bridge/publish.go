package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

var (
	// ErrQueueFull says that the stream refused a message for lack of room.
	ErrQueueFull = errors.New("queue full")
	// ErrTooLarge says that a message with its headers is above the server's max_payload.
	ErrTooLarge = errors.New("message too large")
	// ErrNoBatch says that a stream which is not natstomp's own takes no transactions.
	ErrNoBatch = errors.New("the stream takes no atomic batches")
	// ErrNoStream says that nothing on NATS stores the subject any more.
	ErrNoStream = errors.New("the queue's stream is gone")
)

// Error codes of JetStream.
const (
	errWrongStream = 10060 // The stream is not the one expected.
	errNoBatches   = 10174 // Atomic publish is disabled.
)

// Headers of a JetStream atomic batch (ADR-50).
const (
	batchIDHeader       = "Nats-Batch-Id"
	batchSequenceHeader = "Nats-Batch-Sequence"
	batchCommitHeader   = "Nats-Batch-Commit"
)

// Send is a SEND that a transaction holds.
type Send struct {
	Route   router.Route
	Headers []frame.Header
	Body    []byte
}

// Size is the octets of a message, for limits.
func Size(headers []frame.Header, body []byte) int {
	size := len(body)
	for _, h := range headers {
		size += len(h.Name) + len(h.Value)
	}
	return size
}

// SendQueue stores one message in its queue, or in the stream of a stored topic, which is made at first use. done is
// called once, with nil after the PubAck or with the fault; it must not block. SendQueue itself blocks while the stream
// is made and while more than the window waits for PubAcks. Headers and body are copied.
func (b *Bridge) SendQueue(route router.Route, headers []frame.Header, body []byte, done func(error)) {
	p, subject, err := b.place(route)
	if err != nil {
		done(err)
		return
	}
	size := Size(headers, body)
	p.window.enter(1, size)
	if b.cfg.External != nil {
		body = bytes.Clone(body) // It may have to be sent again.
	}
	b.storeIn(p, []*nats.Msg{p.message(subject, headers, body)}, func(err error) {
		p.window.leave(1, size)
		done(err)
	})
}

// batchRoom is what an atomic batch and no-local add to the headers of a message.
const batchRoom = 512

// Fits returns ErrTooLarge for a message that NATS would refuse by its size.
func (b *Bridge) Fits(s Send) error {
	size := len(s.Body) + batchRoom
	for name, values := range toNATS(s.Headers) {
		size += len(name) + len(values[0]) + len(": \r\n")
	}
	if int64(size) > b.cfg.Data.MaxPayload() {
		return ErrTooLarge
	}
	return nil
}

// storeIn publishes msgs to p, all or none, and reports the PubAck.
func (b *Bridge) storeIn(p *place, msgs []*nats.Msg, done func(error)) {
	if b.cfg.External != nil {
		p.lane.send(msgs, done)
		return
	}
	reply := b.pubs.expect(func(answer *nats.Msg, err error) {
		if err == nil {
			err = pubAck(answer)
		}
		if errors.Is(err, ErrNoStream) {
			p.suspect()
			err = p.gone()
		}
		if err != nil {
			err = fmt.Errorf("storing in %s: %w", p.stream, err)
		}
		done(err)
	})
	if err := b.publishAll(msgs, reply); err != nil {
		b.pubs.cancel(reply, err)
	}
}

// publish hands a message to NATS.
func (b *Bridge) publish(m *nats.Msg) error {
	err := b.cfg.Data.PublishMsg(m)
	if errors.Is(err, nats.ErrMaxPayload) {
		return ErrTooLarge
	}
	return linkFault(err)
}

// SendBatch stores all of sends, which belong to one place (see SamePlace), or none of them (DESIGN section 4.6). done
// and blocking are as with SendQueue.
func (b *Bridge) SendBatch(sends []Send, done func(error)) {
	if len(sends) == 1 {
		b.SendQueue(sends[0].Route, sends[0].Headers, sends[0].Body, done)
		return
	}
	p, subjects, err := b.placeOf(sends)
	if err != nil {
		done(err)
		return
	}
	size := 0
	for _, s := range sends {
		size += Size(s.Headers, s.Body)
	}
	p.batches <- struct{}{}
	p.window.enter(len(sends), size)
	finish := func(err error) {
		p.window.leave(len(sends), size)
		<-p.batches
		done(err)
	}
	msgs := make([]*nats.Msg, len(sends))
	for i, s := range sends {
		msgs[i] = p.message(subjects[i], s.Headers, s.Body)
	}
	b.storeIn(p, msgs, finish)
}

// placeOf returns the one place of sends, with each one's subject.
func (b *Bridge) placeOf(sends []Send) (p *place, subjects []string, err error) {
	subjects = make([]string, len(sends))
	for i, s := range sends {
		if p, subjects[i], err = b.place(s.Route); err != nil {
			return nil, nil, err
		}
	}
	return p, subjects, nil
}

func (id *batchID) next() string {
	return id.prefix + strconv.FormatUint(id.n.Add(1), 36)
}

// How a PubAck begins, and what only a refusal contains.
var ackStart, ackFault = []byte(`{"stream":"`), []byte(`"error"`)

// pubAck is the verdict of JetStream's answer to a publish.
func pubAck(m *nats.Msg) error {
	if len(m.Data) == 0 {
		if m.Header.Get("Status") == "503" {
			return ErrNoStream
		}
		return errors.New("empty answer to a publish")
	}
	if bytes.HasPrefix(m.Data, ackStart) && !bytes.Contains(m.Data, ackFault) {
		return nil
	}
	var ack struct {
		Error  *apiError `json:"error"`
		Stream string    `json:"stream"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return fmt.Errorf("reading a PubAck: %w", err)
	}
	switch {
	case ack.Error == nil && ack.Stream != "":
		return nil
	case ack.Error == nil:
		return errors.New("answer to a publish names no stream")
	case strings.Contains(ack.Error.Description, "maximum bytes exceeded"),
		strings.Contains(ack.Error.Description, "maximum messages exceeded"):
		return ErrQueueFull
	case ack.Error.Code == errWrongStream:
		return ErrNotThere
	case ack.Error.Code == errNoBatches:
		return ErrNoBatch
	}
	return ack.Error
}

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
