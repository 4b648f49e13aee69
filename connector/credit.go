package connector

import "math"

// minPull is the least octets that a pull asks for where only the out queue bounds it; one larger message comes alone.
const minPull = 64 << 10

// Credit implements bridge.QueueReceiver. The subscriptions of a connection share what its limits leave.
func (s *subscription) Credit(outstanding int) (messages, octets int) {
	c := s.conn
	limits := &c.srv.cfg.Limits
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.closed || s.held || c.failed.Load() || c.out.closed {
		return 0, 0
	}
	share := max(len(c.queues), 1)
	octets = int(limits.PendingBytes)/2 - c.out.pending()
	least := minPull
	switch {
	case s.explicit:
		if !s.turn(outstanding) {
			c.starved = true
			return 0, 0
		}
		messages = s.prefetch - s.unacked - outstanding
		if limits.Unacked > 0 {
			messages = min(messages, max((limits.Unacked-c.unacked)/share, 1)-outstanding)
		}
		if limits.UnackedBytes > 0 {
			room := int(limits.UnackedBytes) - c.held
			octets, least = min(octets, room), min(least, room)
		}
	case s.prefetch > 0:
		messages = s.prefetch - s.window.open - outstanding
	default:
		messages = math.MaxInt32 // As many as the octets allow.
	}
	if octets <= 0 {
		c.starved = true
		return 0, 0
	}
	return messages, max(octets/share, least)
}

// fits reports whether a message of a queue keeps the connection within limits.unacked and limits.unacked_bytes. One that is
// larger than the latter comes alone. conn.mu is held.
func (c *conn) fits(octets int) bool {
	limits := &c.srv.cfg.Limits
	if limits.Unacked > 0 && c.unacked >= limits.Unacked {
		return false
	}
	return limits.UnackedBytes == 0 || c.unacked == 0 || c.held+octets <= int(limits.UnackedBytes)
}

// turn reports whether the subscription may ask for messages, as far as the limits on unacknowledged ones go. Who waits
// for room goes first: others would take what comes free, and a large message would never have enough. conn.mu is held.
func (s *subscription) turn(outstanding int) bool {
	c := s.conn
	if c.waits != nil && c.waits != s {
		return false
	}
	if s.need > 0 && outstanding > 0 || !c.fits(max(s.need, s.size)) {
		c.waits = s
		return false
	}
	s.served()
	return true
}

// served says that the subscription waits for room no more. conn.mu is held.
func (s *subscription) served() {
	c := s.conn
	s.need = 0
	if c.waits != s {
		return
	}
	c.waits = nil
	c.wakeOthers(s)
}

// wakeOthers tells the other pulls of the connection that there may be room in its limits. c.mu is held.
func (c *conn) wakeOthers(s *subscription) {
	for other := range c.queues {
		if other != s && other.pull != nil {
			other.pull.Wake()
		}
	}
}

// room reports whether a message that has come may be handed over. Subscriptions ask independently of each other, and do not
// know what comes, so there may be none; then nothing else is handed over until what was asked for has come, since a later
// one must not overtake it. conn.mu is held.
func (s *subscription) room(octets int) bool {
	s.size = max(octets, s.size-s.size/1024-1, 0)
	if s.need == 0 && s.conn.fits(octets) {
		return true
	}
	s.need = max(s.need, octets, 1)
	if s.conn.waits == nil {
		s.conn.waits = s
	}
	s.conn.starved = true
	return false
}
