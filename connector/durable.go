package connector

import (
	"errors"
	"strings"

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
	destination, named := f.Lookup("destination")
	switch {
	case s != nil && s.durable != id:
		return refuse("the subscription is not attached to the durable subscription %s", printable(id.Name))
	case s != nil:
		route = s.route
		c.remove(s)
	case named:
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
	number := c.reserve(c.receiptOf(f), 0, nil)
	c.background(func() {
		var err error
		if s != nil {
			s.leave()
		} else {
			err = c.mayDelete(route, named, id)
		}
		if err == nil {
			err = c.srv.bridge.DeleteDurable(route, id)
		}
		if errors.Is(err, bridge.ErrNoDurable) && s == nil {
			err = refuse("no durable subscription %s exists", printable(id.Name))
		}
		c.settle(number, err)
	})
	return nil
}

// mayDelete says whether a durable subscription that is not attached here can be deleted: it must be one to the destination
// that the client named, or its own has to be one that the session may read.
func (c *conn) mayDelete(route router.Route, named bool, id bridge.DurableID) error {
	if named {
		err := c.srv.bridge.CheckDurable(route, id)
		if errors.Is(err, bridge.ErrDurableFilter) {
			err = refuse("the durable subscription %s has another destination", printable(id.Name))
		}
		return err
	}
	if c.rights.Load() == nil {
		return nil
	}
	var err error
	if route.Channel, err = c.srv.bridge.DurableChannel(id); err != nil {
		return err
	}
	return c.mayRead(&route, []byte(primaryPrefix[router.Store]+strings.ReplaceAll(route.Channel, ".", "/")))
}
