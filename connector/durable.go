package connector

import (
	"errors"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// durableNames are the headers that name a durable subscription, on SUBSCRIBE and UNSUBSCRIBE: Artemis's, ActiveMQ's, and
// the spelling that many of ActiveMQ's clients send.
var durableNames = []string{"durable-subscription-name", "activemq.subscriptionName", "activemq.subcriptionName"}

// durableOf is the durable subscription that a frame names, nil if none: by a header of its own, or by durable:true and
// the id as RabbitMQ's clients do.
func (c *conn) durableOf(f *frame.Frame) (*bridge.DurableID, error) {
	durable, err := flag(f, "durable")
	if err != nil {
		return nil, err
	}
	header, name := "", []byte(nil)
	for _, h := range durableNames {
		if v, ok := f.Lookup(h); ok {
			header, name = h, v
			break
		}
	}
	if header == "" {
		if !durable {
			return nil, nil
		}
		header = "id"
		if name, _ = f.Lookup(header); len(name) == 0 {
			return nil, refuse("durable:true on %s needs a header id, which names the durable subscription", f.Command)
		}
	}
	switch most := c.srv.cfg.Limits.ID; {
	case len(name) == 0:
		return nil, refuse("header %s is empty: it names the durable subscription", header)
	case most > 0 && len(name) > most:
		return nil, refuse("header %s too long: limits.id is %d (got %d)", header, most, len(name))
	}
	return &bridge.DurableID{Identity: c.identity, Name: string(name)}, nil
}

// deleteDurable is UNSUBSCRIBE with a durable header: the subscription ends, if this connection has it, and its position is
// deleted. s is nil where it is not attached here.
func (c *conn) deleteDurable(f *frame.Frame, s *subscription, id bridge.DurableID) error {
	route := router.Route{Pattern: router.Store}
	if destination, ok := f.Lookup("destination"); ok && s == nil {
		var err error
		if route, err = c.parse(destination, router.Subscribe); err != nil {
			return err
		}
		if route.Pattern != router.Store {
			return refuse("destination %q has no durable subscriptions", printable(string(destination)))
		}
		if err := c.mayRead(&route, destination); err != nil {
			return err
		}
	}
	if s != nil {
		if s.durable != id {
			return refuse("the subscription is not attached to the durable subscription %s", printable(id.Name))
		}
		route = s.route
		c.remove(s)
	}
	number := c.reserve(c.receiptOf(f), 0, nil)
	c.background(func() {
		if s != nil {
			s.leave()
		}
		err := c.srv.bridge.DeleteDurable(route, id)
		if errors.Is(err, bridge.ErrNoDurable) && s == nil {
			err = refuse("no durable subscription %s exists", printable(id.Name))
		}
		c.settle(number, err)
	})
	return nil
}
