package bridge

import (
	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
)

// place is a stream that this node publishes to.
type place struct {
	stream  string // empty where only the subject is known
	bound   bool   // it is not natstomp's own: what is stored elsewhere is refused
	queue   *queue // whose subject may be away for a moment; nil: nobody takes it away
	mark    uint64 // everything up to here may have been delivered unnoticed before this start
	window  *window
	batches chan struct{} // one token for each atomic batch on the way
}

func newPlace(stream string) *place {
	return &place{
		stream:  stream,
		window:  newWindow(windowMessages, windowBytes),
		batches: make(chan struct{}, maxBatches),
	}
}

// message is what is published for a SEND.
func (p *place) message(subject string, headers []frame.Header, body []byte) *nats.Msg {
	m := &nats.Msg{Subject: subject, Header: toNATS(headers), Data: body}
	if p.bound && p.stream != "" {
		if m.Header == nil {
			m.Header = make(nats.Header, 1)
		}
		m.Header[nats.ExpectedStreamHdr] = []string{p.stream}
	}
	return m
}

// gone is what it means that nothing stores the subject.
func (p *place) gone() error {
	if p.bound {
		return ErrNotThere
	}
	return ErrNoStream
}
