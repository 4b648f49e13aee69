package bridge

import (
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
)

// Outcome is what became of a request (DESIGN section 4.4).
type Outcome uint8

// The outcomes.
const (
	// Replied: a responder answered.
	Replied Outcome = iota
	// ServiceError: a responder answered that it failed, as a NATS micro service does.
	ServiceError
	// NoResponder: nobody answers the subject.
	NoResponder
	// TimedOut: nobody answered in time; whether the request was carried out is not known.
	TimedOut
	// Overloaded: it was not sent, because too many requests of the connection wait.
	Overloaded
)

// String is the value of x-error, empty for a reply.
func (o Outcome) String() string {
	return [...]string{"", "service", "no responder", "timeout", "overload"}[o]
}

// Headers by which a NATS micro service says that it failed.
const (
	serviceCodeHeader = "Nats-Service-Error-Code"
	serviceTextHeader = "Nats-Service-Error"
)

// asked is what a request's answer is made from beside the reply.
type asked struct {
	view        View
	correlation *string
	command     bool
}

// failed is the answer where no reply came.
func (q *asked) failed(o Outcome) Answer {
	return Answer{Tail: q.append(nil, &nats.Msg{}, o), Outcome: o}
}

// noResponders says that a message is the NATS server's word that nobody listens to a subject.
func noResponders(m *nats.Msg) bool { return len(m.Data) == 0 && m.Header.Get("Status") == "503" }

// replied is the answer that a reply makes; it is appended to dst.
func (q *asked) replied(dst []byte, m *nats.Msg) Answer {
	o := Replied
	switch {
	case noResponders(m):
		return q.failed(NoResponder)
	case len(m.Header[serviceCodeHeader]) > 0 || len(m.Header[serviceTextHeader]) > 0:
		o = ServiceError
	}
	return Answer{Tail: q.append(dst, m, o), Outcome: o}
}

func (q *asked) append(dst []byte, m *nats.Msg, o Outcome) []byte {
	v := q.view.Version
	dst = frame.AppendHeader(dst, v, "destination", q.view.Destination)
	if q.correlation != nil {
		setHeader(m, "correlation-id", *q.correlation)
	}
	dst = appendHeaders(dst, v, m.Header, stamps{})
	if o != Replied {
		dst = frame.AppendHeader(dst, v, "x-error", o.String())
	}
	if o == ServiceError {
		dst = appendFirst(dst, v, "x-error-code", m.Header[serviceCodeHeader])
		dst = appendFirst(dst, v, "x-error-text", m.Header[serviceTextHeader])
	}
	if q.command && o != TimedOut {
		dst = frame.AppendHeader(dst, v, "x-executed", strconv.FormatBool(o == Replied))
	}
	return appendBody(dst, m.Data)
}

// appendFirst appends a header with the first of the values, if the version can represent it.
func appendFirst(dst []byte, v frame.Version, name string, values []string) []byte {
	if len(values) == 0 || !frame.Representable(v, name, values[0]) {
		return dst
	}
	return frame.AppendHeader(dst, v, name, values[0])
}

// setHeader gives a message a header, whatever was there under that name.
func setHeader(m *nats.Msg, name, value string) {
	if m.Header == nil {
		m.Header = make(nats.Header, 1)
	}
	m.Header[name] = []string{value}
}
