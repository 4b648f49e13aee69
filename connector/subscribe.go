package connector

import (
	"strconv"
	"strings"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// maxGone bounds the ended subscriptions that a session remembers.
const maxGone = 256

// maxAckWait bounds x-ack-wait.
const maxAckWait = 24 * time.Hour

// primaryPrefix is what MESSAGE shows whatever alias was used (DESIGN section 2, egress).
var primaryPrefix = map[router.Pattern]string{
	router.Events: "/topic/", router.Store: "/topic-store/", router.Queues: "/queue/",
	router.Commands: "/command/", router.Queries: "/query/",
	router.Reply: "/reply/", router.TempQueue: "/temp-queue/", router.TempTopic: "/temp-topic/",
}

// Headers of SUBSCRIBE that this server does not honour on the pattern, with what to do instead.
var (
	notOnTopic = map[string]string{
		"selector":                     "selectors are not supported, subscribe to a narrower destination",
		"durable-subscription-name":    "a topic keeps nothing, durable subscriptions are on /topic-store",
		"activemq.subscriptionName":    "a topic keeps nothing, durable subscriptions are on /topic-store",
		"activemq.subcriptionName":     "a topic keeps nothing, durable subscriptions are on /topic-store",
		"x-start":                      "a topic keeps nothing, use /topic-store",
		"x-stream-offset":              "a topic keeps nothing, use /topic-store",
		"browser":                      "only queues can be browsed",
		"activemq.maximumRedeliveries": "nothing is redelivered on a topic",
	}
	notOnQueue = map[string]string{
		"selector":                     "selectors are not supported, use one queue per kind of message",
		"activemq.maximumRedeliveries": "the server decides, see queues.max_deliveries",
		"durable-subscription-name":    "a queue is durable by itself, durable subscriptions are on /topic-store",
		"activemq.subscriptionName":    "a queue is durable by itself, durable subscriptions are on /topic-store",
		"x-start":                      "a queue has no start, use /topic-store",
		"x-stream-offset":              "a queue has no start, use /topic-store",
		"x-group":                      "the consumers of a queue share it anyway",
		"no-local":                     "no-local is for topics",
	}
)

// subscribe is SUBSCRIBE. Its RECEIPT precedes the first MESSAGE.
func (c *conn) subscribe(f *frame.Frame) error {
	destination, err := required(f, "destination")
	if err != nil {
		return err
	}
	if string(destination) == refreshDestination {
		return refuse("destination %s takes a SEND with a new token, nothing comes from it", refreshDestination)
	}
	key, err := c.subscriptionKey(f, destination)
	if err != nil {
		return err
	}
	if old := c.subs[key]; old != nil && (!old.implicit || old.destination != string(destination)) {
		return refuse("subscription %s is in use on this connection", printable(strings.TrimPrefix(key, "\x00")))
	}
	if err := unsupported(f, foreignOnSubscribe); err != nil {
		return err
	}
	if err := c.roomForSubscription(); err != nil {
		return err
	}
	route, err := c.parse(destination, router.Subscribe)
	if err != nil {
		return err
	}
	if err := c.mayRead(&route, destination); err != nil {
		return err
	}
	s, err := c.newSubscription(f, key, route, string(destination))
	if err != nil {
		return err
	}
	switch route.Pattern {
	case router.Queues:
		err = c.subscribeQueue(f, s)
	case router.Store:
		err = c.subscribeStore(f, s)
	case router.Commands, router.Queries:
		err = c.subscribeResponder(f, s)
	case router.Reply, router.TempQueue, router.TempTopic:
		err = c.subscribeLocal(f, s)
	default:
		err = c.subscribeTopic(f, s)
	}
	if err != nil {
		return err
	}
	c.enroll(s)
	return c.mayRead(&s.route, destination) // Again: from now on recheck knows it.
}

func (c *conn) roomForSubscription() error {
	if most := c.srv.cfg.Limits.Subscriptions; most > 0 && len(c.subs) >= most {
		return refuse("too many subscriptions: limits.subscriptions is %d", most)
	}
	return nil
}

// subscriptionKey is the id; STOMP 1.0 may do without and is then known by its destination.
func (c *conn) subscriptionKey(f *frame.Frame, destination []byte) (string, error) {
	id, ok := f.Lookup("id")
	switch {
	case ok && len(id) > 0:
		return string(id), nil
	case c.version == frame.V10 && destination != nil:
		return "\x00" + string(destination), nil
	}
	_, err := required(f, "id")
	if err != nil && c.version == frame.V10 {
		err = refuse("%s needs a header id or destination", f.Command)
	}
	return "", err
}

func (c *conn) newSubscription(f *frame.Frame, key string, route router.Route, destination string) (*subscription, error) {
	c.lastIndex++
	s := &subscription{conn: c, index: c.lastIndex, route: route, destination: egress(route, destination, key), key: key, asked: destination}
	ack, given := f.Lookup("ack")
	switch {
	case !given || string(ack) == "auto":
		s.mode = ackAuto
	case string(ack) == "client":
		s.mode = ackClient
	case string(ack) == "client-individual":
		s.mode = ackIndividual
	default:
		return nil, refuse("header ack: %q is not auto, client or client-individual", printable(string(ack)))
	}
	s.begin()
	return s, nil
}

// egress is the destination header of the subscription's messages; empty: made from each message's subject. A 1.0
// subscriber without id gets exactly what it subscribed with.
func egress(route router.Route, destination, key string) string {
	switch {
	case strings.HasPrefix(key, "\x00"):
		return destination
	case route.Wildcard:
		return ""
	}
	rest := strings.TrimPrefix(destination, "/")
	if first, channel, ok := strings.Cut(rest, "/"); ok && isPrefix[first] {
		rest = channel
	}
	if route.Topic {
		return primaryPrefix[router.Events] + rest
	}
	return primaryPrefix[route.Pattern] + rest
}

// isPrefix has the first segments that select a pattern that is built.
var isPrefix = map[string]bool{
	"topic": true, "events": true, "topic-store": true, "store": true, "events-store": true, "queue": true, "queues": true,
	"command": true, "commands": true, "query": true, "queries": true,
	"reply": true, "temp-queue": true, "temp-topic": true,
}

func (c *conn) subscribeTopic(f *frame.Frame, s *subscription) error {
	if err := unsupported(f, notOnTopic); err != nil {
		return err
	}
	if durable, err := flag(f, "durable"); err != nil {
		return err
	} else if durable {
		return refuse("header durable on SUBSCRIBE is not supported: %s", notOnTopic["durable-subscription-name"])
	}
	group, err := groupName(f)
	if err != nil {
		return err
	}
	if s.noLocal, err = flag(f, "no-local"); err != nil {
		return err
	}
	if s.noLocal {
		c.noLocal++
	}
	if s.noLocal && group != "" {
		return refuse("headers x-group and no-local on SUBSCRIBE exclude each other: what this member does not take no other would get")
	}
	if s.route.Mixed {
		if err := unsupported(f, notOnMixed); err != nil {
			return err
		}
	}
	receipt := c.receiptOf(f)
	s.held = receipt != "" || s.route.Mixed
	number := c.reserve(receipt, 0, s.release)
	if s.route.Mixed {
		part, filters := c.srv.router.StoredPart(s.route)
		if err := c.readStored(s, part, filters, bridge.Start{}); err != nil {
			c.settle(number, err)
			return errFailed
		}
	}
	live := make(chan struct{})
	s.topic = c.srv.bridge.SubscribeTopic(s.route, group, bridge.View{Version: c.version, Destination: s.destination}, s,
		func(err error) {
			c.settle(number, err)
			close(live)
		})
	if !s.topic.Ordered() {
		<-live // The SENDs that may follow must not overtake.
	}
	return nil
}

// groupName reads x-group, which becomes a NATS queue group.
func groupName(f *frame.Frame) (string, error) {
	v, ok := f.Lookup("x-group")
	if !ok {
		return "", nil
	}
	const most = 64
	if len(v) == 0 || len(v) > most {
		return "", refuse("header x-group needs 1 to %d characters", most)
	}
	for _, b := range v {
		if b <= ' ' || b >= 0x7f || b == '*' || b == '>' {
			return "", refuse("header x-group: only printable ASCII without blank, * and >")
		}
	}
	return string(v), nil
}

func (c *conn) subscribeQueue(f *frame.Frame, s *subscription) error {
	if err := unsupported(f, notOnQueue); err != nil {
		return err
	}
	if browser, err := flag(f, "browser"); err != nil {
		return err
	} else if browser {
		return c.subscribeBrowser(f, s)
	}
	set := c.srv.cfg.Queues.queueSetting(s.route.Channel)
	options, err := c.queueOptions(f, s.route, set)
	if err != nil {
		return err
	}
	s.ackWait, s.maxDeliveries = set.AckTimeout, set.MaxDeliveries
	return c.share(f, s, c.openQueue(options))
}

// opener starts the pull of a subscription whose messages are settled on JetStream.
type opener func(router.Route, bridge.View, int, bridge.Hold, bridge.QueueReceiver) (*bridge.QueueSubscription, error)

// openQueue starts the pull of a subscription on a queue, or on a consumer that exists.
func (c *conn) openQueue(o bridge.QueueOptions) opener {
	return func(route router.Route, view bridge.View, room int, hold bridge.Hold, r bridge.QueueReceiver) (*bridge.QueueSubscription, error) {
		return c.srv.bridge.SubscribeQueue(route, view, room, hold, o, r)
	}
}

// share is SUBSCRIBE to what several clients may share: a queue, a durable subscription, a consumer that exists.
func (c *conn) share(f *frame.Frame, s *subscription, open opener) error {
	var err error
	if s.prefetch, err = c.prefetch(f); err != nil {
		return err
	}
	if s.ackWait == 0 {
		s.ackWait, s.maxDeliveries = c.srv.cfg.Queues.AckTimeout, c.srv.cfg.Queues.MaxDeliveries
	}
	if wait, ok, err := milliseconds(f, "x-ack-wait", time.Second, maxAckWait); err != nil {
		return err
	} else if ok {
		s.ackWait = wait
	}
	s.explicit = true
	s.pending = make(map[uint64]pendingAck)
	receipt := c.receiptOf(f)
	s.held = true
	number := c.reserve(receipt, 0, s.release)
	hold := bridge.Hold{Check: holdCheck(s.ackWait), Delay: s.redeliveryDelay}
	view := bridge.View{Version: c.version, Destination: s.destination}
	pull, err := open(s.route, view, s.prefetch, hold, s)
	if err != nil {
		c.settle(number, err)
		return errFailed
	}
	c.fetches(s, pull)
	c.settle(number, nil)
	return nil
}

// holdCheck is how often holding times are looked at: a tenth of them, within bounds.
func holdCheck(ackWait time.Duration) time.Duration {
	return min(max(ackWait/10, 100*time.Millisecond), 5*time.Second)
}

// prefetchNames are the headers for it, RabbitMQ's and ActiveMQ's.
var prefetchNames = []string{"prefetch-count", "activemq.prefetchSize"}

// prefetch is how many messages the subscription may hold (RabbitMQ's prefetch-count, ActiveMQ's prefetchSize).
func (c *conn) prefetch(f *frame.Frame) (int, error) {
	most := c.srv.cfg.Limits.Unacked
	if most == 0 {
		most = 1 << 16
	}
	for _, name := range prefetchNames {
		v, ok := f.Lookup(name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(string(v), 10, 31)
		if err != nil {
			return 0, refuse("header %s: %q is not a number", name, printable(string(v)))
		}
		if n == 0 {
			return most, nil // RabbitMQ: no limit.
		}
		return min(int(n), most), nil
	}
	return min(c.srv.cfg.Queues.Prefetch, most), nil
}

// unsubscribe is UNSUBSCRIBE. Its RECEIPT follows the last MESSAGE; what the client held is then on its way back.
func (c *conn) unsubscribe(f *frame.Frame) error {
	destination, _ := f.Lookup("destination")
	key, err := c.subscriptionKey(f, destination)
	s := c.subs[key] // No key, no subscription.
	if s == nil || s.route.Pattern == router.Store {
		if durable, derr := c.durableOf(f); derr != nil {
			return derr
		} else if durable != nil {
			return c.deleteDurable(f, s, *durable)
		}
	}
	if err != nil {
		return err
	}
	if s == nil {
		return refuse("no subscription %s on this connection", printable(strings.TrimPrefix(key, "\x00")))
	}
	c.remove(s)
	number := c.reserve(c.receiptOf(f), 0, nil)
	c.background(func() {
		s.leave()
		c.settle(number, nil)
	})
	return nil
}

// remember keeps which messages an ended subscription has delivered in a client mode: an ACK may cross the UNSUBSCRIBE.
func (c *conn) remember(s *subscription) {
	c.mu.Lock()
	last := s.last
	c.mu.Unlock()
	if s.mode == ackAuto || last == 0 {
		return
	}
	if len(c.gone) >= maxGone {
		clear(c.gone)
	}
	c.gone[s.index] = last
}

// remove takes a subscription off the connection: it delivers nothing more.
func (c *conn) remove(s *subscription) {
	c.remember(s)
	c.forget(s)
	s.close()
}
