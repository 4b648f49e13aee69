package connector

import (
	"strconv"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// Headers that a stored topic does not honour, with what to do instead.
var (
	unsupportedOnStore = map[string]string{
		"x-dedup-id":           "a stored topic does not suppress duplicates, use /queue",
		"_AMQ_DUPL_ID":         "a stored topic does not suppress duplicates, use /queue",
		"expires":              "messages of a stored topic are kept for store.max_age",
		"expiration":           "messages of a stored topic are kept for store.max_age",
		"x-delay":              "messages of a stored topic are not delayed, use /queue",
		"AMQ_SCHEDULED_DELAY":  "messages of a stored topic are not delayed, use /queue",
		"AMQ_SCHEDULED_TIME":   "messages of a stored topic are not delayed, use /queue",
		"AMQ_SCHEDULED_PERIOD": "a message is stored once, repeat the SEND",
		"AMQ_SCHEDULED_REPEAT": "a message is stored once, repeat the SEND",
		"AMQ_SCHEDULED_CRON":   "a message is stored once, repeat the SEND",
	}
	notOnStore = map[string]string{
		"selector":                     "selectors are not supported, subscribe to a narrower destination",
		"browser":                      "reading a stored topic takes nothing away, use x-start:first",
		"auto-delete":                  "a subscription that is not durable ends with its connection anyway",
		"activemq.maximumRedeliveries": "a message of a durable subscription comes again until it is acknowledged",
		"activemq.exclusive":           "exclusive consumers are for queues",
		"activemq.priority":            "prioritised consumers are for queues",
		"x-group":                      "the connections that attach to one durable subscription share its messages",
		"no-local":                     "no-local is for topics that are not stored",
	}
	notEphemeral = map[string]string{
		"x-ack-wait": "only a durable subscription waits for an ACK",
	}
	notOnBoundConsumer = map[string]string{
		"x-start":                   "the destination is bound to a consumer, which has its own start",
		"x-stream-offset":           "the destination is bound to a consumer, which has its own start",
		"durable":                   "the destination is bound to a consumer, which is durable by itself",
		"durable-subscription-name": "the destination is bound to a consumer, which is durable by itself",
		"activemq.subscriptionName": "the destination is bound to a consumer, which is durable by itself",
		"activemq.subcriptionName":  "the destination is bound to a consumer, which is durable by itself",
	}
	notOnMixed = map[string]string{
		"x-group":  "the wildcard reaches stored topics, whose messages cannot be shared",
		"no-local": "the wildcard reaches stored topics, whose sender is not known",
	}
)

// kept says whether a SEND to the pattern is stored.
func kept(p router.Pattern) bool { return p == router.Queues || p == router.Store }

// subscribeStore is SUBSCRIBE to stored topics: durable, or ephemeral and ordered.
func (c *conn) subscribeStore(f *frame.Frame, s *subscription) error {
	if err := unsupported(f, notOnStore); err != nil {
		return err
	}
	if to := s.route.Bound; to != nil && to.Consumer != "" {
		if err := unsupported(f, notOnBoundConsumer); err != nil {
			return err
		}
		return c.share(f, s, c.openQueue(bridge.QueueOptions{}))
	}
	start, err := startOf(f)
	if err != nil {
		return err
	}
	id, err := c.durableOf(f)
	if err != nil {
		return err
	}
	if id == nil {
		return c.subscribeOrdered(f, s, start)
	}
	s.durable = *id
	return c.share(f, s, func(route router.Route, view bridge.View, room int, hold bridge.Hold, r bridge.QueueReceiver) (*bridge.QueueSubscription, error) {
		if !c.turn() {
			return nil, errFailed
		}
		return c.srv.bridge.SubscribeDurable(route, *id, start, view, room, hold, r)
	})
}

// subscribeOrdered is an ephemeral subscription. ACK and NACK only move the window of prefetch-count, where that is given.
func (c *conn) subscribeOrdered(f *frame.Frame, s *subscription, start *bridge.Start) error {
	if err := unsupported(f, notEphemeral); err != nil {
		return err
	}
	if start == nil {
		start = &bridge.Start{}
	}
	if s.mode != ackAuto {
		var err error
		if s.prefetch, err = c.ackWindow(f); err != nil {
			return err
		}
	}
	s.held = true
	number := c.reserve(c.receiptOf(f), 0, s.release)
	if err := c.readStored(s, s.route, nil, *start); err != nil {
		c.settle(number, err)
		return errFailed
	}
	c.settle(number, nil)
	return nil
}

// readStored begins to read the stored topics of a route, for the SUBSCRIBE that has the newest slot. It blocks until
// JetStream knows.
func (c *conn) readStored(s *subscription, route router.Route, filters []string, start bridge.Start) error {
	if !c.turn() {
		return errFailed
	}
	view := bridge.View{Version: c.version, Destination: s.destination}
	pull, err := c.srv.bridge.SubscribeOrdered(route, filters, start, view, s)
	if err == nil {
		c.fetches(s, pull)
	}
	return err
}

// fetches notes what fetches the messages of a subscription.
func (c *conn) fetches(s *subscription, p pull) {
	c.mu.Lock()
	s.pull = p
	c.queues[s] = struct{}{}
	c.mu.Unlock()
	c.queueSubs.Add(1)
}

// ackWindow is how many messages an ephemeral subscription in a client mode may have delivered and not acknowledged; 0:
// any number. An ACK has no other effect there, so without prefetch-count nobody who does not acknowledge is held up.
func (c *conn) ackWindow(f *frame.Frame) (int, error) {
	for _, name := range prefetchNames {
		v, ok := f.Lookup(name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(string(v), 10, 31)
		if err != nil {
			return 0, refuse("header %s: %q is not a number", name, printable(string(v)))
		}
		return min(int(n), topicWindowSize), nil
	}
	return 0, nil
}

// DeliverStored implements bridge.StoreReceiver.
func (s *subscription) DeliverStored(tail []byte) bool {
	defer s.recovered()
	c := s.conn
	c.mu.Lock()
	taken := !s.closed && !c.failed.Load() && !c.out.closed
	if taken {
		if s.mode != ackAuto {
			s.window.issue(s.last + 1)
		}
		c.out.keep(append(s.appendHead(c.out.tail(s.headRoom()+len(tail))), tail...))
	}
	c.mu.Unlock()
	if taken {
		c.kick()
	}
	return taken
}
