package connector

import (
	"time"

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
		"AMQ_SCHEDULED_TIME":   "use x-delay, which counts from the SEND",
		"AMQ_SCHEDULED_PERIOD": "a message is delivered once, repeat the SEND",
		"AMQ_SCHEDULED_REPEAT": "a message is delivered once, repeat the SEND",
		"AMQ_SCHEDULED_CRON":   "a message is delivered once, repeat the SEND",
		"JMSXGroupID":          "use one queue for each group, or an exclusive queue (queues.settings)",
		"_AMQ_GROUP_ID":        "use one queue for each group, or an exclusive queue (queues.settings)",
	}
	unsupportedOnBound = map[string]string{
		"x-delay":             "the destination is bound to a stream (destinations.bindings), and natstomp delays messages of its own queues",
		"AMQ_SCHEDULED_DELAY": "the destination is bound to a stream (destinations.bindings), and natstomp delays messages of its own queues",
	}
	unsupportedOnTopic = map[string]string{
		"x-dedup-id":           "a topic does not remember messages, use /queue",
		"_AMQ_DUPL_ID":         "a topic does not remember messages, use /queue",
		"x-delay":              "a topic does not keep messages, use /queue",
		"AMQ_SCHEDULED_DELAY":  "a topic does not keep messages, use /queue",
		"AMQ_SCHEDULED_TIME":   "a topic does not keep messages, use /queue",
		"AMQ_SCHEDULED_PERIOD": "a topic does not keep messages, repeat the SEND",
		"AMQ_SCHEDULED_REPEAT": "a topic does not keep messages, repeat the SEND",
		"AMQ_SCHEDULED_CRON":   "a topic does not keep messages, repeat the SEND",
	}
)

// send is SEND. Its RECEIPT means what DESIGN section 1 promises for the pattern.
func (c *conn) send(f *frame.Frame) error {
	if to, _ := f.Lookup("destination"); string(to) == refreshDestination {
		return c.refresh(f)
	}
	route, err := c.sendRoute(f)
	if err != nil {
		return err
	}
	s := bridge.Send{Route: route, Headers: f.Headers, Body: f.Body}
	if route.Pattern == router.Queues {
		if s.Options, err = c.sendOptions(f); err != nil {
			return err
		}
	}
	if tx, ok := f.Lookup("transaction"); ok {
		return c.sendLater(f, s, string(tx))
	}
	receipt := c.receiptOf(f)
	if kept(route.Pattern) {
		number := c.reserve(receipt, bridge.Size(f.Headers, f.Body), nil)
		begun := time.Now()
		c.srv.bridge.SendQueue(s, func(err error) {
			c.srv.stored[route.Pattern].Done(begun, err)
			c.settle(number, err)
		})
		return nil
	}
	if receipt == "" {
		return c.publish(route, f, nil)
	}
	number := c.reserve(receipt, len(f.Body), nil)
	if err := c.publish(route, f, func(err error) { c.settle(number, err) }); err != nil {
		c.settle(number, err)
		return errFailed
	}
	return nil
}

// publish sends what is not stored: to a topic, a request, an answer. done, if not nil, is called when NATS has it, or
// with the error that prevented it, unless an error is returned.
func (c *conn) publish(route router.Route, f *frame.Frame, done func(error)) error {
	c.published = true
	switch route.Pattern {
	case router.Commands, router.Queries:
		err := c.request(route, f)
		if err == nil && done != nil {
			c.sender.Flush(done)
		}
		return err
	case router.Reply, router.TempQueue, router.TempTopic:
		return c.sendLocal(route, f, done)
	}
	origin := ""
	if c.noLocal > 0 {
		origin = c.name
	}
	return c.sender.Topic(route, f.Headers, f.Body, origin, done)
}

// checkUnstored says whether a SEND that a transaction holds could be carried out now.
func (c *conn) checkUnstored(route router.Route, f *frame.Frame) error {
	switch route.Pattern {
	case router.Commands, router.Queries:
		_, err := c.wishOf(f)
		return err
	case router.Reply, router.TempQueue, router.TempTopic:
		return c.checkLocal(route)
	}
	return nil
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
		if route.Pattern != router.Reply { // Used once or a few times.
			c.cacheRoute(destination, route)
		}
	}
	if err := c.mayWrite(&route, destination); err != nil {
		return route, err
	}
	switch route.Pattern {
	case router.Queues:
		if err = unsupported(f, unsupportedOnQueue); err == nil && route.Bound != nil {
			err = unsupported(f, unsupportedOnBound)
		}
	case router.Store:
		err = unsupported(f, unsupportedOnStore)
	case router.Commands, router.Queries:
		return route, unsupported(f, notOnRequest)
	default:
		err = unsupported(f, unsupportedOnTopic)
	}
	if err == nil {
		err = c.openReplyTo(f)
	}
	return route, err
}

func (c *conn) cacheRoute(destination []byte, route router.Route) {
	if len(c.routes) >= maxRoutes {
		clear(c.routes)
	}
	c.routes[string(destination)] = route
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
	if use == router.Subscribe && !c.srv.cfg.RPC.StompResponders && (route.Pattern == router.Commands || route.Pattern == router.Queries) {
		return route, errRPCSubscribe
	}
	return route, nil
}
