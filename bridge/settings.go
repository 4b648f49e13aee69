package bridge

import (
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Policy says how the subscriptions of a queue share it.
type Policy uint8

const (
	// Shared gives each message to one of the subscriptions, as they have room.
	Shared Policy = iota
	// Exclusive gives all messages to one subscription, as long as that is there.
	Exclusive
	// Prioritized gives a message to a subscription only when none of a higher priority has room.
	Prioritized
)

// QueueSettings are the settings of one queue.
type QueueSettings struct {
	// MaxBytes is its size in octets; 0 is no limit.
	MaxBytes int64
	// MaxAge is how long it keeps a message; 0 is for ever.
	MaxAge time.Duration
	// Policy is how its subscriptions share it.
	Policy Policy
	// AutoDelete lets it vanish with its last subscription.
	AutoDelete bool
	// Keep says that it is declared: it is never deleted and does not count for the limit.
	Keep bool
}

const (
	// group is the one priority group of an exclusive or prioritised queue.
	group = "stomp"
	// closingKey is in the metadata of a stream whose subject is away: which node took it.
	closingKey = "natstomp_closing"
	// autoDeleteKey is in the metadata of the stream of a queue that a subscription made auto-delete.
	autoDeleteKey = "natstomp_auto_delete"
	// onceRoot begins the subjects of the markers which say that a message is in the stream already (DESIGN 4.6).
	onceRoot = "_natstomp.once."
	// closedRoot begins the subject of a stream whose own subject is away.
	closedRoot = "_natstomp.closed."
)

// streamConfig is the stream of a queue.
func (qs *queues) streamConfig(q *queue) jetstream.StreamConfig {
	maxBytes := q.settings.MaxBytes
	if maxBytes == 0 {
		maxBytes = -1
	}
	c := jetstream.StreamConfig{
		Name:               q.stream,
		Replicas:           qs.b.replicas(),
		Description:        "natstomp queue " + q.channel,
		Subjects:           []string{q.subject, onceRoot + q.stream + ".>"},
		Retention:          jetstream.WorkQueuePolicy,
		Storage:            qs.b.cfg.Queues.Storage,
		MaxBytes:           maxBytes,
		MaxAge:             q.settings.MaxAge,
		Discard:            jetstream.DiscardNew,
		Duplicates:         qs.b.cfg.Queues.DedupWindow,
		AllowMsgTTL:        true,
		AllowAtomicPublish: true,
		AllowDirect:        true,
		Metadata:           map[string]string{channelKey: q.channel},
	}
	if c.MaxAge > 0 && c.Duplicates > c.MaxAge {
		c.Duplicates = c.MaxAge // JetStream wants it so.
	}
	q.mu.Lock()
	asked := q.autoDelete && !q.settings.AutoDelete
	q.mu.Unlock()
	if asked {
		c.Metadata[autoDeleteKey] = "true"
	}
	return c
}

// differ says whether a stream must be updated.
func differ(have, want jetstream.StreamConfig) bool {
	return !slices.Equal(have.Subjects, want.Subjects) || have.MaxBytes != want.MaxBytes || have.MaxAge != want.MaxAge ||
		have.Duplicates != want.Duplicates || have.AllowMsgTTL != want.AllowMsgTTL ||
		have.AllowAtomicPublish != want.AllowAtomicPublish || have.AllowDirect != want.AllowDirect ||
		!maps.Equal(own(have.Metadata), own(want.Metadata))
}

// own are the entries of a stream's metadata that natstomp made; the server adds some of its own.
func own(metadata map[string]string) map[string]string {
	mine := make(map[string]string, len(metadata))
	for _, key := range []string{channelKey, closingKey, autoDeleteKey} {
		if v, ok := metadata[key]; ok {
			mine[key] = v
		}
	}
	return mine
}

// consumerConfig is the shared durable. On the embedded server its state is in memory: JetStream writes delivery counts
// of a file late, so the mark must speak for what was before a restart anyway (DESIGN section 4.3). On an external NATS
// it is kept as the stream is.
func (qs *queues) consumerConfig(q *queue) jetstream.ConsumerConfig {
	c := jetstream.ConsumerConfig{
		Durable:       durableName,
		FilterSubject: q.subject,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxDeliver:    -1,
		MaxAckPending: -1,
		MaxWaiting:    maxWaiting,
		MemoryStorage: qs.b.cfg.External == nil,
	}
	switch q.settings.Policy {
	case Exclusive:
		c.PriorityPolicy, c.PriorityGroups, c.PinnedTTL = jetstream.PriorityPolicyPinned, []string{group}, pinTTL
	case Prioritized:
		c.PriorityPolicy, c.PriorityGroups = jetstream.PriorityPolicyPrioritized, []string{group}
	case Shared:
	}
	return c
}
