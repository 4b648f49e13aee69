package connector

import (
	"strconv"
	"strings"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// requestMark begins the name of /reply/<name> by which a request is answered: q, 64 random bits of the connection, the
// request's number and its deadline in ms. It means something on its connection only.
const requestMark = "q"

// notOnResponder are the headers of SUBSCRIBE that /command and /query do not honour.
var notOnResponder = map[string]string{
	"selector":                     "selectors are not supported, subscribe to a narrower destination",
	"durable-subscription-name":    "requests are not kept",
	"activemq.subscriptionName":    "requests are not kept",
	"activemq.subcriptionName":     "requests are not kept",
	"x-start":                      "requests are not kept",
	"x-stream-offset":              "requests are not kept",
	"browser":                      "only queues can be browsed",
	"activemq.maximumRedeliveries": "requests are not redelivered",
	"x-group":                      "the responders of a destination share its requests anyway",
	"no-local":                     "no-local is for topics",
}

// openRequest is a request that this connection has not answered yet.
type openRequest struct {
	sub      *subscription
	reply    string // empty: the subscription ended, and so the request was refused
	deadline time.Time
}

var _ bridge.Responder = (*subscription)(nil)

// subscribeResponder is SUBSCRIBE to /command or /query: the subscription shares the requests with all other responders
// of the destination, on all nodes.
func (c *conn) subscribeResponder(f *frame.Frame, s *subscription) error {
	if err := unsupported(f, notOnResponder); err != nil {
		return err
	}
	if durable, err := flag(f, "durable"); err != nil {
		return err
	} else if durable {
		return refuse("header durable on SUBSCRIBE is not supported: %s", notOnResponder["durable-subscription-name"])
	}
	if c.tokens == "" {
		c.tokens = requestMark + randomHex()[:16] + "-"
	}
	receipt := c.receiptOf(f)
	s.held = receipt != ""
	number := c.reserve(receipt, 0, s.release)
	s.service = c.srv.bridge.Serve(s.route, s.view(), s, func(err error) { c.settle(number, err) })
	return nil
}

// DeliverRequest implements bridge.Responder.
func (s *subscription) DeliverRequest(q *bridge.Asked) (refusal string) {
	defer s.recovered()
	refusal = s.acceptRequest(q)
	s.conn.kick()
	return refusal
}

func (s *subscription) acceptRequest(q *bridge.Asked) (refusal string) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.closed || c.failed.Load() || c.out.closed {
		return bridge.ResponderGone
	}
	if s.crowded(q.Size()) {
		s.overflow()
		return bridge.ResponderBusy
	}
	address := ""
	if q.Reply != "" {
		if !c.roomForRequest() {
			return bridge.ResponderBusy
		}
		if c.asked == nil {
			c.asked = make(map[uint64]openRequest)
		}
		c.lastRequest++
		c.asked[c.lastRequest] = openRequest{sub: s, reply: q.Reply, deadline: q.Deadline}
		address = c.requestAddress(c.lastRequest, q.Deadline)
	}
	if s.mode != ackAuto {
		s.window.issue(s.last + 1)
	}
	if s.held {
		s.waiting = q.Append(s.appendHead(s.waiting), address)
		return ""
	}
	c.out.keep(q.Append(s.appendHead(c.out.tail(s.headRoom()+q.Size())), address))
	return ""
}

// roomForRequest says whether one more request may be open; those refused or past their deadline do not count. c.mu is
// held.
func (c *conn) roomForRequest() bool {
	most := c.srv.cfg.Limits.RPCPending
	if len(c.asked) < most {
		return true
	}
	now := time.Now()
	for number, r := range c.asked {
		if r.reply == "" || now.After(r.deadline) {
			delete(c.asked, number)
		}
	}
	return len(c.asked) < most
}

// requestAddress is the reply-to of a request.
func (c *conn) requestAddress(number uint64, deadline time.Time) string {
	b := append(make([]byte, 0, 64), "/reply/"...)
	b = append(b, c.tokens...)
	b = strconv.AppendUint(b, number, 10)
	b = append(b, '-')
	return string(strconv.AppendInt(b, deadline.UnixMilli(), 10))
}

// findRequest is the number of the open request that a destination answers. late: it was refused because the
// subscription ended, or its deadline is over, and whether it was answered is not known any more.
func (c *conn) findRequest(route router.Route) (number uint64, late bool, err error) {
	unknown := refuse("destination %q: no such request came to this connection", addressName(route))
	rest, ok := strings.CutPrefix(route.Channel, c.tokens)
	if !ok || c.tokens == "" {
		return 0, false, unknown
	}
	first, last, _ := strings.Cut(rest, "-")
	number, err = strconv.ParseUint(first, 10, 64)
	if err != nil {
		return 0, false, unknown
	}
	deadline, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		return 0, false, unknown
	}
	c.mu.Lock()
	r, open := c.asked[number]
	issued := number > 0 && number <= c.lastRequest
	c.mu.Unlock()
	now := time.Now()
	switch {
	case !issued:
		return 0, false, unknown
	case open && r.deadline.UnixMilli() == deadline:
		return number, r.reply == "" || now.After(r.deadline), nil
	case now.UnixMilli() > deadline:
		return number, true, nil
	}
	return 0, false, refuse("destination %q: the request is answered already", addressName(route))
}

// answer sends the one answer to a request. One that comes too late is dropped and counted.
func (c *conn) answer(route router.Route, f *frame.Frame, done func(error)) error {
	number, late, err := c.findRequest(route)
	if err != nil {
		return err
	}
	c.mu.Lock()
	r, open := c.asked[number]
	delete(c.asked, number)
	c.mu.Unlock()
	if late || !open {
		c.srv.lateAnswers.Add(1)
		if done != nil {
			c.sender.Flush(done)
		}
		return nil
	}
	return c.sender.Answer(r.reply, f.Headers, f.Body, done)
}

// refuseOpen answers every request that a subscription leaves open with an error. The subscription takes no more.
func (s *subscription) refuseOpen() {
	c := s.conn
	var replies []string
	now := time.Now()
	c.mu.Lock()
	for number, r := range c.asked {
		if r.sub != s {
			continue
		}
		if r.reply != "" && now.Before(r.deadline) {
			replies = append(replies, r.reply)
		}
		r.reply = "" // An answer may cross the UNSUBSCRIBE.
		c.asked[number] = r
	}
	c.mu.Unlock()
	for _, reply := range replies {
		if err := c.srv.bridge.Refuse(reply, bridge.ResponderGone); err != nil {
			c.log.Debug("a request stays without answer", "err", err)
		}
	}
}
