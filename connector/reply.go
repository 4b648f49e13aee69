package connector

import (
	"bytes"
	"strings"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// local names a destination that exists on its connection only: /reply, /temp-queue or /temp-topic.
type local struct {
	pattern router.Pattern
	channel string
}

func localOf(route router.Route) local { return local{route.Pattern, route.Channel} }

// isLocal says whether a pattern is local to a connection.
func isLocal(p router.Pattern) bool {
	return p == router.Reply || p == router.TempQueue || p == router.TempTopic
}

// notOnReply are the headers of SUBSCRIBE that a local destination does not honour.
var notOnReply = map[string]string{
	"selector":                     "selectors are not supported",
	"durable-subscription-name":    "a reply address ends with its connection",
	"activemq.subscriptionName":    "a reply address ends with its connection",
	"activemq.subcriptionName":     "a reply address ends with its connection",
	"x-start":                      "a reply address keeps nothing",
	"x-stream-offset":              "a reply address keeps nothing",
	"browser":                      "only queues can be browsed",
	"activemq.maximumRedeliveries": "nothing is redelivered on a reply address",
	"x-group":                      "a reply address belongs to one subscription",
	"no-local":                     "no-local is for topics",
}

// subscribeLocal is SUBSCRIBE to a local destination: nothing of it reaches NATS, and it is live at once. One that a
// reply-to of this connection brought into being is taken over.
func (c *conn) subscribeLocal(f *frame.Frame, s *subscription) error {
	if err := unsupported(f, notOnReply); err != nil {
		return err
	}
	if durable, err := flag(f, "durable"); err != nil {
		return err
	} else if durable && s.route.Pattern == router.Reply {
		return refuse("header durable on SUBSCRIBE is not supported: %s", notOnReply["durable-subscription-name"])
	}
	if old := c.locals[localOf(s.route)]; old != nil {
		if !old.implicit {
			return refuse("destination %s is subscribed already on this connection", printable(s.destination))
		}
		c.forget(old)
		c.mu.Lock()
		old.heir = s
		c.mu.Unlock()
		if s.address = old.address; s.address != nil {
			s.address.Redirect(s.view(), s)
		}
	}
	c.putLocal(s)
	c.done(c.receiptOf(f))
	return nil
}

// view is how the subscription's messages are written.
func (s *subscription) view() bridge.View {
	return bridge.View{Version: s.conn.version, Destination: s.destination}
}

// replyTo is the reply-to header of a frame; nil without.
func replyTo(f *frame.Frame) *frame.Header {
	for i := range f.Headers {
		if string(f.Headers[i].Name) == "reply-to" {
			return &f.Headers[i]
		}
	}
	return nil
}

// isPrivate says whether a destination, as written, names a local pattern.
func isPrivate(destination []byte) bool {
	first, _, more := bytes.Cut(bytes.TrimPrefix(destination, []byte{'/'}), []byte{'/'})
	return more && (string(first) == "reply" || string(first) == "temp-queue" || string(first) == "temp-topic")
}

// openReplyTo makes the reply-to of a SEND to others usable for them: a local destination of this connection is
// replaced by an address that any node routes here. What is no local destination passes as it is.
func (c *conn) openReplyTo(f *frame.Frame) error {
	h := replyTo(f)
	if h == nil || !isPrivate(h.Value) {
		return nil
	}
	route, err := c.srv.router.Parse(string(h.Value), router.Send)
	if err != nil {
		return err
	}
	if route.Pattern == router.Reply && bridge.IsAddress(route.Channel) {
		return nil // Somebody else's, passed on.
	}
	s, err := c.localFor(h.Value, route)
	if err != nil {
		return err
	}
	h.Value = []byte(s.reachable().String())
	return nil
}

// localFor is the subscription that a reply-to names. A /temp-queue or /temp-topic that is not subscribed comes into
// being with a private subscription whose id is the destination, as in RabbitMQ.
func (c *conn) localFor(destination []byte, route router.Route) (*subscription, error) {
	if s := c.locals[localOf(route)]; s != nil {
		return s, nil
	}
	if route.Pattern == router.Reply {
		return nil, refuse("header reply-to: %s is not subscribed on this connection", printable(string(destination)))
	}
	key := string(destination)
	if _, taken := c.subs[key]; taken {
		return nil, refuse("header reply-to: subscription %s is in use on this connection", printable(key))
	}
	if err := c.roomForSubscription(); err != nil {
		return nil, err
	}
	c.lastIndex++
	s := &subscription{conn: c, index: c.lastIndex, route: route, destination: egress(route, key, key), key: key, asked: key, implicit: true}
	s.begin()
	c.enroll(s)
	c.putLocal(s)
	return s, nil
}

func (c *conn) putLocal(s *subscription) {
	if c.locals == nil {
		c.locals = make(map[local]*subscription)
	}
	c.locals[localOf(s.route)] = s
}

// reachable is the address of a local subscription, made when it is first needed.
func (s *subscription) reachable() *bridge.Address {
	if s.address == nil {
		s.address = s.conn.srv.bridge.OpenAddress(s.view(), s)
	}
	return s.address
}

// forget takes a subscription off the connection.
func (c *conn) forget(s *subscription) {
	c.withdraw(s)
	if isLocal(s.route.Pattern) {
		delete(c.locals, localOf(s.route))
	}
	if s.noLocal {
		c.noLocal--
	}
}

// acceptReply hands over the answer to a request. false: the subscription has ended. An answer is never left out: where
// it finds no room the connection ends (limits.pending_bytes).
func (s *subscription) acceptReply(tail []byte, shared bool) bool {
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
		c.tooSlow()
		return false
	}
	s.put(tail, shared)
	return true
}

// sendLocal is SEND to /reply, /temp-queue or /temp-topic: an answer, or a message to this connection's own address.
func (c *conn) sendLocal(route router.Route, f *frame.Frame, done func(error)) error {
	channel, err := c.addressOf(route)
	if err != nil {
		return err
	}
	if channel == "" {
		return c.answer(route, f, done)
	}
	return c.sender.Address(channel, f.Headers, f.Body, done)
}

// checkLocal says whether a SEND to a local destination could be carried out now.
func (c *conn) checkLocal(route router.Route) error {
	channel, err := c.addressOf(route)
	if err == nil && channel == "" {
		_, _, err = c.findRequest(route)
	}
	return err
}

// addressOf is the address that a SEND to a local destination goes to; empty for a request that this connection is to
// answer.
func (c *conn) addressOf(route router.Route) (string, error) {
	switch {
	case route.Pattern == router.Reply && bridge.IsAddress(route.Channel):
		return route.Channel, nil
	case route.Pattern == router.Reply && strings.HasPrefix(route.Channel, requestMark):
		return "", nil
	}
	if s := c.locals[localOf(route)]; s != nil && route.Pattern != router.Reply {
		return s.reachable().Channel(), nil
	}
	if route.Pattern == router.Reply {
		return "", refuse("destination %q: only the reply-to of a MESSAGE can be answered", addressName(route))
	}
	return "", refuse("destination %q is not subscribed on this connection; answer to the reply-to of a MESSAGE", addressName(route))
}

// addressName is a local destination as text.
func addressName(route router.Route) string {
	return printable(primaryPrefix[route.Pattern] + route.Channel)
}
