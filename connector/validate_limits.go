package connector

import "time"

const (
	// maxTransactionFrames leaves room for the marker in a JetStream atomic batch of 1,000 messages.
	maxTransactionFrames = 900
	// maxDestinationOctets is the bound of the destination grammar (DESIGN section 2).
	maxDestinationOctets = 512
	// maxBody leaves room for headers in a JetStream record: the file store takes one above 32 MiB for damage.
	maxBody Size = 30 << 20
)

// limits checks the limits. Those that bound what a client can make natstomp hold cannot be turned off; where 0 is
// accepted it means no limit, and the field's comment says so.
func (v *validation) limits(l Limits) {
	const needed = "it cannot be turned off"
	atLeast(v, "limits.connections", l.Connections, 0, "0 sets no limit")
	atLeast(v, "limits.connections_per_user", l.ConnectionsPerUser, 0, "0 sets no limit")
	atLeast(v, "limits.connect_timeout", l.ConnectTimeout, time.Millisecond, needed)
	atLeast(v, "limits.heartbeat", l.Heartbeat, 0, "0 offers none")
	wholeMillis(v, "limits.heartbeat", l.Heartbeat)
	atLeast(v, "limits.subscriptions", l.Subscriptions, 0, "0 sets no limit")
	atLeast(v, "limits.transactions", l.Transactions, 0, "0 sets no limit")
	within(v, "limits.transaction_frames", l.TransactionFrames, 1, maxTransactionFrames, "more do not fit one JetStream batch")
	atLeast(v, "limits.transaction_bytes", l.TransactionBytes, 1, needed)
	v.unacked(l)
	atLeast(v, "limits.rpc_pending", l.RPCPending, 1, needed)
	atLeast(v, "limits.queues", l.Queues, 0, "0 sets no limit")
	atLeast(v, "limits.durables", l.Durables, 0, "0 sets no limit")
	within(v, "limits.destination", l.Destination, 1, maxDestinationOctets, "longer ones do not fit NATS subjects")
	atLeast(v, "limits.id", l.ID, 1, needed)
	atLeast(v, "limits.headers", l.Headers, 1, needed)
	atLeast(v, "limits.header_line", l.HeaderLine, 1, needed)
	notBelow(v, "limits.passcode", l.Passcode, "limits.header_line", l.HeaderLine, "it is the larger limit for one header")
	notBelow(v, "limits.frame_before_connect", l.FrameBeforeConnect, "limits.passcode", l.Passcode, "a CONNECT must hold its passcode")
	within(v, "limits.body", l.Body, 1, maxBody, "JetStream stores no larger message")
	if atLeast(v, "limits.pending_bytes", l.PendingBytes, 1, needed) {
		notBelow(v, "limits.pending_bytes", l.PendingBytes, "limits.body", l.Body, "one message must fit")
	}
	v.oneOf("limits.slow_consumer", l.SlowConsumer, "close", "drop")
	atLeast(v, "limits.write_stall", l.WriteStall, time.Millisecond, needed)
	atLeast(v, "limits.frames_per_second", l.FramesPerSecond, 0, "0 sets no limit")
	atLeast(v, "limits.publish_window", l.PublishWindow, 1, "1 keeps strict order")
}

// unacked checks the two limits on unacknowledged messages: either may be off, but not both, or one client that never
// acknowledges takes a whole queue.
func (v *validation) unacked(l Limits) {
	count := atLeast(v, "limits.unacked", l.Unacked, 0, "0 sets no limit")
	octets := atLeast(v, "limits.unacked_bytes", l.UnackedBytes, 0, "0 sets no limit")
	if count && octets && l.Unacked == 0 && l.UnackedBytes == 0 {
		v.fault("limits.unacked", "0", "turns off the last limit on unacknowledged messages", "leave limits.unacked or limits.unacked_bytes on")
	}
}

func (v *validation) queues(c Config) {
	q := c.Queues
	atLeast(v, "queues.ack_timeout", q.AckTimeout, time.Millisecond, "")
	atLeast(v, "queues.max_deliveries", q.MaxDeliveries, 1, "")
	atLeast(v, "queues.max_returns", q.MaxReturns, 1, "")
	atLeast(v, "queues.redelivery_delay", q.RedeliveryDelay, 0, "0 redelivers at once")
	notBelow(v, "queues.redelivery_delay_max", q.RedeliveryDelayMax, "queues.redelivery_delay", q.RedeliveryDelay, "it bounds the doubled delay")
	atLeast(v, "queues.prefetch", q.Prefetch, 1, "")
	v.storage("queues.max_bytes", q.MaxBytes, c.Limits.Body, "0 sets no limit")
	notBelow(v, "queues.dedup_window", q.DedupWindow, "nats.publish_timeout", c.NATS.PublishTimeout,
		"a SEND that is retried must be known for as long")
	each(v, "queues.declare", q.Declare, itself, v.queueName)
	each(v, "queues.auto_delete", q.AutoDelete, itself, v.queuePattern)
	if q.IdleDelete != 0 {
		notBelow(v, "queues.idle_delete", q.IdleDelete, "queues.dedup_window", q.DedupWindow, "a queue that is deleted forgets its ids; 0 keeps queues")
	}
	v.storage("queues.delayed_max_bytes", q.DelayedMaxBytes, c.Limits.Body, "0 sets no limit")
	each(v, "queues.settings", q.Settings, func(s QueueSetting) string { return s.Queue }, func(at string, s QueueSetting) {
		v.queuePattern(at+".queue", s.Queue)
		if s.Exclusive && s.Prioritized {
			v.fault(at+".prioritized", "", "cannot go with exclusive", "keep one of them")
		}
		const inherited = "0 keeps what queues says"
		if s.AckTimeout != 0 {
			atLeast(v, at+".ack_timeout", s.AckTimeout, time.Millisecond, inherited)
		}
		atLeast(v, at+".max_deliveries", s.MaxDeliveries, 0, inherited)
		v.storage(at+".max_bytes", s.MaxBytes, c.Limits.Body, inherited)
		v.age(at+".max_age", s.MaxAge)
	})
}

func (v *validation) store(c Config) {
	v.age("store.max_age", c.Store.MaxAge)
	v.storage("store.max_bytes", c.Store.MaxBytes, c.Limits.Body, "0 sets no limit")
}

// storage checks the size of a stream, which must hold the largest body.
func (v *validation) storage(path string, size, body Size, zero string) {
	if size == 0 {
		return
	}
	if atLeast(v, path, size, 0, zero) {
		notBelow(v, path, size, "limits.body", body, "one message must fit; "+zero)
	}
}

// age checks how long a stream keeps a message.
func (v *validation) age(path string, age time.Duration) {
	if age != 0 {
		atLeast(v, path, age, time.Second, "0 keeps messages until they are consumed or pushed out")
	}
}
