package connector

import (
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// keepAlive finds peers that vanished: idle and interval of TCP's probes, 3 of them (DESIGN section 3).
	keepAlive = 15 * time.Second
	// refusedRoom is how many connections above the limit are held to be told so; more are closed at once.
	refusedRoom = 256
	// acceptPause is the pause after a failed accept, such as for want of descriptors.
	acceptPause = 50 * time.Millisecond
)

// accept serves the clients of one listener until it is closed.
func (s *Server) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			s.log.Error("accept failed", "err", err)
			time.Sleep(acceptPause)
			continue
		}
		s.admit(nc, "")
	}
}

// admit starts the session of a new socket. The slot below limits.connections is taken here; who gets none is told so
// at the handshake.
func (s *Server) admit(nc net.Conn, token string) {
	raw := nc
	for over, ok := raw.(interface{ NetConn() net.Conn }); ok; over, ok = raw.(interface{ NetConn() net.Conn }) {
		raw = over.NetConn()
	}
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{ // A socket that is gone shows at the first read.
			Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 3,
		})
	}
	s.mu.Lock()
	c, why := s.enter(nc, token)
	s.mu.Unlock()
	if c == nil {
		s.turnedAway[why].Add(1)
		_ = nc.Close() // Nobody was promised anything.
		return
	}
	s.wg.Go(func() {
		defer s.forget(c)
		c.serve()
	})
}

// enter makes the session of a new socket and gives it a slot, or tells why there is none for it. s.mu is held.
func (s *Server) enter(nc net.Conn, token string) (*conn, rejection) {
	local := transportOf(nc) == viaLocal // Needs no slot.
	limit := s.cfg.Limits.Connections
	refused := !local && limit > 0 && s.taken >= limit
	switch {
	case s.stopping.Load():
		return nil, rejectedStopping
	case refused && len(s.conns)-s.taken-s.locals >= refusedRoom:
		return nil, rejectedFlood
	}
	c := newConn(s, nc, token, refused)
	s.conns[c] = struct{}{}
	s.accepted[c.via]++
	switch {
	case local:
		s.locals++
	case refused:
		s.turnedAway[rejectedLimit].Add(1)
	default:
		s.taken++
	}
	return c, 0
}

func (s *Server) forget(c *conn) {
	s.freeSlot(c)
	s.mu.Lock()
	delete(s.conns, c)
	s.past.add(&c.traffic, c.via)
	if c.via == viaLocal {
		s.locals--
	}
	s.mu.Unlock()
	s.metrics.Ended(time.Since(c.began))
	close(c.ended)
}

// seat gives a session that has an identity one of that user's connections.
func (s *Server) seat(c *conn) error {
	limit := s.cfg.Limits.ConnectionsPerUser
	c.mu.Lock()
	user := c.who.Name
	c.mu.Unlock()
	if limit == 0 || user == "" || c.via == viaLocal {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user] >= limit {
		return &ClientError{
			Text:   fmt.Sprintf("connection limit reached for this user: limits.connections_per_user is %d", limit),
			reason: "connection_limit",
		}
	}
	s.users[user]++
	c.user = user
	return nil
}

// freeSlot gives back the slot of a session that only waits for its peer to close.
func (s *Server) freeSlot(c *conn) {
	s.mu.Lock()
	if c.user != "" {
		if s.users[c.user]--; s.users[c.user] == 0 {
			delete(s.users, c.user)
		}
		c.user = "" // It has none any more.
	}
	if !c.refused && c.via != viaLocal {
		s.taken--
		c.refused = true // It has none any more.
	}
	s.mu.Unlock()
}
