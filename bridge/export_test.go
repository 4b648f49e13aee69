package bridge

import "time"

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
