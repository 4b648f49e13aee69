package bridge

import "sync/atomic"

// counters count what an outage of NATS costs.
type counters struct {
	drops   atomic.Uint64
	retries atomic.Uint64
}

// Stats is what a Bridge has counted since it was made.
type Stats struct {
	// Drops are SENDs without receipt, of what is not stored, that were dropped because NATS was away.
	Drops uint64
	// Retries are stored messages that were sent to NATS once more, each time.
	Retries uint64
	// GoneStreams are the streams that this node knew and that are gone now.
	GoneStreams int
}

// Stats returns the counters. It is safe for concurrent use.
func (b *Bridge) Stats() Stats {
	return Stats{Drops: b.drops.Load(), Retries: b.retries.Load(), GoneStreams: len(b.Gone())}
}
