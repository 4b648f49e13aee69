package connector

import (
	"net"
	"time"
)

// ErrorText is what a client is told of a fault, and whether it is more than the log's.
func ErrorText(err error) (text string, known bool) {
	e, known := clientError(err)
	return e.Text, known
}

// Admit serves a client on a connection of the test's own, such as one without any buffer.
func (s *Server) Admit(nc net.Conn) { s.admit(nc, "") }

// Sessions is how many sessions are not over. What one held is back in its queues when it is not counted any more.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// TakeStarved says whether a pull found the limits of its connection used up since the last call.
func (s *Server) TakeStarved() bool {
	found := false
	s.eachConn(func(c *conn) {
		found = found || c.starved
		c.starved = false
	})
	return found
}

// Held is the most messages, and the most octets of messages, that one session has taken from queues and not settled.
func (s *Server) Held() (messages, octets int) {
	s.eachConn(func(c *conn) {
		messages, octets = max(messages, c.unacked), max(octets, c.held)
	})
	return messages, octets
}

// LateAcks is how many ACKs came for messages that were with somebody else already.
func (s *Server) LateAcks() uint64 { return s.lateAcks.Load() }

// LookAtTheClock has every session look whether its time is over, as a timer does that is too early: the clock was set back.
func (s *Server) LookAtTheClock() {
	for _, c := range s.sessions() {
		c.expire()
	}
}

// eachConn calls f for every session, with its lock held.
func (s *Server) eachConn(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.mu.Lock()
		f(c)
		c.mu.Unlock()
	}
}

// PutClockBack makes every session's end come so much later than its timer, which fires now.
func (s *Server) PutClockBack(by time.Duration) {
	var conns []*conn
	s.eachConn(func(c *conn) {
		c.who.Expires = time.Now().Add(by)
		conns = append(conns, c)
	})
	for _, c := range conns {
		c.expire()
	}
}
