package bridge

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// responderGroup is the NATS queue group of all STOMP responders of a subject, on all nodes: each request goes to one.
const responderGroup = "stomp"

// serviceUnavailable is the error code with which a request is answered that a responder will not answer.
const serviceUnavailable = "503"

// Why a request is answered with an error instead of by the responder that it went to.
const (
	// ResponderGone: the responder ended its subscription or its connection.
	ResponderGone = "responder disconnected"
	// ResponderBusy: too much is open at the responder already.
	ResponderBusy = "responder overloaded"
)

// Responder takes the requests of one subscription to /command or /query.
type Responder interface {
	// DeliverRequest hands over a request. The receiver takes it by returning "" and then answers it once, with Sender.Answer
	// or Refuse. Otherwise it returns why not, and the bridge refuses the request. It must not block; q is valid until
	// it returns.
	DeliverRequest(q *Asked) (refusal string)
}

// Asked is a request for a STOMP responder.
type Asked struct {
	// Reply is where Sender.Answer and Refuse send; empty when the sender wants no answer.
	Reply string
	// Deadline is when the requester stops waiting, as far as is known, else what rpc.timeout gives. Zero without Reply.
	Deadline time.Time

	view View
	m    *nats.Msg
}

// Size is about how many octets Append appends.
func (q *Asked) Size() int {
	size := len(q.m.Data) + headRoom + len(q.view.Destination)
	for name, values := range q.m.Header {
		if len(values) > 0 {
			size += len(name) + len(values[0]) + len(":\n")
		}
	}
	return size
}

// headRoom is about what the headers of a request's MESSAGE take that the server itself makes.
const headRoom = 192

// Append appends the part of a MESSAGE that begins with the destination header; address is its reply-to, unused without
// Reply.
func (q *Asked) Append(dst []byte, address string) []byte {
	v := q.view.Version
	if q.Reply != "" {
		setHeader(q.m, "reply-to", address)
	}
	dst = frame.AppendHeader(dst, v, "destination", q.view.Destination)
	dst = appendHeaders(dst, v, q.m.Header, stamps{})
	if q.Reply != "" {
		dst = append(dst, "x-deadline:"...)
		dst = strconv.AppendInt(dst, q.Deadline.UnixMilli(), 10)
		dst = append(dst, '\n')
	}
	return appendBody(dst, q.m.Data)
}

// Service is one responder's place in the queue group of its subject.
type Service struct {
	b    *Bridge
	view View
	r    Responder
	sub  *nats.Subscription
}

// Serve makes r one of the responders of the route's subject. live is called once, when the server knows it, or with
// the error that prevented it; requests may come before. Neither blocks.
func (b *Bridge) Serve(route router.Route, view View, r Responder, live func(error)) *Service {
	s := &Service{b: b, view: view, r: r}
	sub, err := b.cfg.Data.QueueSubscribe(route.Subject, responderGroup, s.dispatch)
	if err != nil {
		live(err)
		return s
	}
	_ = sub.SetPendingLimits(-1, topicPendingBytes) // Fails only on a closed subscription.
	s.sub = sub
	b.data.after(live)
	return s
}

// Close ends the service. Requests that are on the way still come to the responder, which refuses them. It does not
// wait for that.
func (s *Service) Close() {
	if s.sub != nil {
		_ = s.sub.Drain() // Fails only when the connection is gone, and then it is done.
	}
}

// dispatch runs on the NATS subscription's own goroutine, one request at a time.
func (s *Service) dispatch(m *nats.Msg) {
	q := Asked{view: s.view, m: m}
	if s.b.replyable(m.Reply) {
		timeout, ok := timeoutOf(m.Reply)
		if !ok || timeout > s.b.cfg.RequestTimeout {
			timeout = s.b.cfg.RequestTimeout
		}
		q.Reply, q.Deadline = m.Reply, time.Now().Add(timeout)
	}
	if refusal := s.r.DeliverRequest(&q); refusal != "" && q.Reply != "" {
		if err := s.b.Refuse(q.Reply, refusal); err != nil {
			s.b.log.Debug("refusing a request failed", "err", err)
		}
	}
}

// Refuse answers a request with an error as a NATS micro service does, so that native requesters see it too.
func (b *Bridge) Refuse(reply, text string) error {
	return b.publish(&nats.Msg{Subject: reply, Header: nats.Header{
		serviceCodeHeader: {serviceUnavailable},
		serviceTextHeader: {text},
	}})
}
