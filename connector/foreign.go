package connector

// foreignOnSubscribe are headers of other brokers that ask for something natstomp has under another name, or not at all.
// DESIGN section 1: they are refused with what to use instead, never ignored.
var foreignOnSubscribe = map[string]string{
	// ActiveMQ Classic.
	"activemq.noLocal":                    "use no-local",
	"activemq.retroactive":                "a topic keeps nothing, use /topic-store with x-start",
	"activemq.maximumPendingMessageLimit": "see limits.pending_bytes and limits.slow_consumer",
	// ActiveMQ Artemis.
	"consumer-window-size":    "use prefetch-count, which counts messages",
	"subscription-type":       "the first segment of the destination says it, /queue or /topic",
	"destination-type":        "the first segment of the destination says it, /queue or /topic",
	"durable-subscriber-name": "use durable-subscription-name",
	// RabbitMQ: properties of the queue that it would make.
	"x-queue-name":              "the destination names the queue",
	"x-dead-letter-exchange":    "see queues.max_deliveries",
	"x-dead-letter-routing-key": "see queues.max_deliveries",
	"x-message-ttl":             "use expiration on each SEND, or max_age in queues.settings",
	"x-max-length":              "see max_bytes in queues.settings",
	"x-max-length-bytes":        "see max_bytes in queues.settings",
	"x-overflow":                "a full queue refuses SENDs",
	"x-max-priority":            "messages have no priorities",
	"x-single-active-consumer":  "see exclusive in queues.settings",
	"x-stream-filter":           "use a narrower destination",
}
