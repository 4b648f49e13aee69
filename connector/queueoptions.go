package connector

import (
	"strconv"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// maxPriority bounds the priority of a consumer: NATS has so many levels.
const maxPriority = 9

// notOnBoundQueue has what a queue that is bound to somebody's consumer cannot be asked for.
var notOnBoundQueue = map[string]string{
	"auto-delete":        "the destination is bound to a stream that is not deleted",
	"activemq.exclusive": "the destination is bound to a consumer, which has its own policy",
	"activemq.priority":  "the destination is bound to a consumer, which has its own policy",
	"x-priority":         "the destination is bound to a consumer, which has its own policy",
}

// queueOptions reads what a SUBSCRIBE asks of its queue. Exclusive and prioritised are settings of the queue: a client can
// only agree with them.
func (c *conn) queueOptions(f *frame.Frame, route router.Route, set QueueSetting) (o bridge.QueueOptions, err error) {
	if route.Bound != nil {
		return o, unsupported(f, notOnBoundQueue)
	}
	if o.AutoDelete, err = flag(f, "auto-delete"); err != nil {
		return o, err
	}
	if o.AutoDelete && c.srv.declared[route.Channel] {
		return o, refuse("header auto-delete on SUBSCRIBE is not supported: queues.declare keeps this queue")
	}
	exclusive, err := flag(f, "activemq.exclusive")
	if err != nil {
		return o, err
	}
	if exclusive && !set.Exclusive {
		return o, refuse("header activemq.exclusive on SUBSCRIBE is not supported: set exclusive for the queue in queues.settings")
	}
	o.Priority, err = priority(f, set.Prioritized)
	return o, err
}

// priority is that of a consumer, in ActiveMQ's header or RabbitMQ's.
func priority(f *frame.Frame, prioritized bool) (int, error) {
	for _, name := range []string{"activemq.priority", "x-priority"} {
		v, ok := f.Lookup(name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(string(v), 10, 8)
		switch {
		case err != nil || n > maxPriority:
			return 0, refuse("header %s: %q is not a number from 0 to %d", name, printable(string(v)), maxPriority)
		case n > 0 && !prioritized:
			return 0, refuse("header %s on SUBSCRIBE is not supported: set prioritized for the queue in queues.settings", name)
		}
		return int(n), nil
	}
	return 0, nil
}
