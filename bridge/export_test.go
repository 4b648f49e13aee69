package bridge

import (
	"time"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// OpenRequests is how many requests wait, in the map and in the queue of deadlines.
func (b *Bridge) OpenRequests() (inMap, inQueue int) {
	b.requests.mu.Lock()
	defer b.requests.mu.Unlock()
	return len(b.requests.pending), len(b.requests.queue)
}

// SealedAt is the address that stands for a native reply subject since then.
func (b *Bridge) SealedAt(subject string, then time.Time) string {
	return addressPath + b.addresses.node + "." + b.addresses.seal(subject, then)
}

// Inbox is where replies to requests go, up to the token.
func (b *Bridge) Inbox() string { return b.requests.prefix }

// SubscribeConsumer pulls from any consumer in the way of a subscription on a queue.
func (b *Bridge) SubscribeConsumer(stream, name string, room int, r QueueReceiver) (*QueueSubscription, error) {
	view := View{Version: frame.V12, Destination: "/queue/x"}
	hold := Hold{Check: time.Second, Delay: func(Delivery) time.Duration { return 0 }}
	d := &durable{consumer: consumer{stream: stream, name: name}, place: newPlace(b, stream), ackWait: ackWait}
	return b.share(&QueueSubscription{d: d, view: view, receiver: r, hold: hold}, room)
}

// FlushControl returns when the server has handled what was sent to consumers.
func (b *Bridge) FlushControl() { _ = b.control.wait(leaveTimeout) }

// Strays is how many messages are remembered because of deliveries that nobody saw.
func (b *Bridge) Strays() int {
	b.unseen.mu.Lock()
	defer b.unseen.mu.Unlock()
	return len(b.unseen.of)
}

// PublishTopic sends to a topic, on a Sender of its own.
func (b *Bridge) PublishTopic(route router.Route, headers []frame.Header, body []byte, origin string) error {
	return b.NewSender().Topic(route, headers, body, origin, nil)
}

// AfterPublish calls done when NATS has everything that was sent before.
func (b *Bridge) AfterPublish(done func(error)) { b.NewSender().Flush(done) }

// PositionOf is what the reply subject of a delivery tells.
func PositionOf(reply string) (consumer string, sequence, number, count, pending uint64, stored time.Time, ok bool) {
	p, ok := positionOf(reply)
	return p.consumer, p.sequence, p.number, p.count, p.pending, p.stored, ok
}
