package bridge

// Stats is what a Bridge has counted since it was made.
type Stats struct {
	// Pulls are the requests to JetStream for messages.
	Pulls uint64
	// Expired are the messages of queues that had expired when they were sent, when their delay was over, or while the server
	// was away.
	Expired uint64
	// DeletedQueues are the queues that this node has deleted since they were idle, or their last subscription had gone.
	DeletedQueues uint64
	// LateReplies are the replies that came after their request was answered, given up or timed out.
	LateReplies uint64
	// Undeliverable are the messages that came for reply addresses of this node that nobody has any more.
	Undeliverable uint64
	// Drops are SENDs without receipt, of what is not stored, that were dropped because NATS was away.
	Drops uint64
	// Retries are stored messages that were sent to NATS once more, each time.
	Retries uint64
	// GoneStreams are the streams that this node knew and that are gone now.
	GoneStreams int
}

// Stats returns the counters.
func (b *Bridge) Stats() Stats {
	return Stats{
		Pulls: b.pulls.Load(), Expired: b.expired.Load(), DeletedQueues: b.deleted.Load(), LateReplies: b.requests.late.Load(),
		Undeliverable: b.addresses.lost.Load(), Drops: b.drops.Load(), Retries: b.retries.Load(), GoneStreams: len(b.Gone()),
	}
}
