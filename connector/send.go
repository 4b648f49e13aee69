package connector

import (
	"strings"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// maxRoutes bounds the parsed destinations that a session remembers.
const maxRoutes = 256

// Headers of SEND that ask for something this server does not do on the pattern, with what to do instead. DESIGN
// section 1: a header that cannot be honoured is refused, never ignored.
var (
	unsupportedOnQueue = map[string]string{
		"x-dedup-id":          "duplicates are not suppressed yet",
		"_AMQ_DUPL_ID":        "duplicates are not suppressed yet",
		"expires":             "messages of a queue do not expire yet",
		"expiration":          "messages of a queue do not expire yet",
		"x-delay":             "messages of a queue are not delayed yet",
		"AMQ_SCHEDULED_DELAY": "messages of a queue are not delayed yet",
	}
	unsupportedOnTopic = map[string]string{
		"x-dedup-id":          "a topic does not remember messages, use /queue",
		"_AMQ_DUPL_ID":        "a topic does not remember messages, use /queue",
		"x-delay":             "a topic does not keep messages, use /queue",
		"AMQ_SCHEDULED_DELAY": "a topic does not keep messages, use /queue",
	}
)

// send is SEND. Its RECEIPT means what DESIGN section 1 promises for the pattern.
func (c *conn) send(f *frame.Frame) error {
	route, err := c.sendRoute(f)
	if err != nil {
		return err
	}
	if tx, ok := f.Lookup("transaction"); ok {
		return c.sendLater(f, route, string(tx))
	}
	receipt := c.receiptOf(f)
	if route.Pattern == router.Queues {
		number := c.reserve(receipt, bridge.Size(f.Headers, f.Body), nil)
		c.srv.bridge.SendQueue(route, f.Headers, f.Body, func(err error) { c.settle(number, err) })
		return nil
	}
	if err := c.publish(route, f.Headers, f.Body); err != nil {
		return err
	}
	if receipt != "" {
		number := c.reserve(receipt, 0, nil)
		c.srv.bridge.AfterPublish(func(err error) { c.settle(number, err) })
	}
	return nil
}

// publish sends to a topic.
func (c *conn) publish(route router.Route, headers []frame.Header, body []byte) error {
	origin := ""
	if c.noLocal > 0 {
		origin = c.name
	}
	c.published = true
	return c.srv.bridge.PublishTopic(route, headers, body, origin)
}

// sendRoute parses and checks the destination and the headers of a SEND.
func (c *conn) sendRoute(f *frame.Frame) (router.Route, error) {
	destination, err := required(f, "destination")
	if err != nil {
		return router.Route{}, err
	}
	route, ok := c.routes[string(destination)]
	if !ok {
		if route, err = c.parse(destination, router.Send); err != nil {
			return route, err
		}
		if len(c.routes) >= maxRoutes {
			clear(c.routes)
		}
		c.routes[string(destination)] = route
	}
	if to, ok := f.Lookup("reply-to"); ok && (strings.HasPrefix(string(to), "/temp-queue/") || strings.HasPrefix(string(to), "/temp-topic/")) {
		return route, refuse("reply-to %s is not supported yet: subscribe to a topic of your own and name that", printable(string(to)))
	}
	if route.Pattern == router.Queues {
		return route, unsupported(f, unsupportedOnQueue)
	}
	return route, unsupported(f, unsupportedOnTopic)
}

// parse turns a destination into a route of a pattern that is built.
func (c *conn) parse(destination []byte, use router.Use) (router.Route, error) {
	if most := c.srv.cfg.Limits.Destination; most > 0 && len(destination) > most {
		return router.Route{}, refuse("destination too long: limits.destination is %d (got %d)", most, len(destination))
	}
	route, err := c.srv.router.Parse(string(destination), use)
	if err != nil {
		return route, err
	}
	switch route.Pattern {
	case router.Events, router.Queues:
		return route, nil
	case router.Commands, router.Queries:
		if use == router.Subscribe {
			return route, errRPCSubscribe
		}
	}
	return route, refuse("destination %q is not supported yet: this version has /topic and /queue", printable(string(destination)))
}
