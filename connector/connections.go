package connector

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/natstomp/natstomp/connector/internal/admin"
)

// Connection is an open session as Connections returns it. It holds no secret.
type Connection struct {
	// ID names the connection; no other one, on any node, has it.
	ID string
	// Session is what CONNECTED showed the client.
	Session string
	// Login is the client's identity, or in auth.mode none the login header of CONNECT, which the client made up.
	Login string
	// Remote is the client's address.
	Remote string
	// Version is the STOMP version: "1.0", "1.1" or "1.2".
	Version string
	// Transport is "tcp", "tls", "ws" or "wss", and "local" for Server.Subscribe.
	Transport string
	// ConnectedAt is when CONNECTED was sent.
	ConnectedAt time.Time
	// Subscriptions are in the order in which they were made.
	Subscriptions []ConnectionSubscription
	// Pending is the octets that wait to be written.
	Pending int
	// PendingReceipts is the frames that wait for their effect on NATS.
	PendingReceipts int
	// Unacked is the messages that the client holds.
	Unacked int
	// FramesIn, FramesOut, OctetsIn and OctetsOut count since the connection was accepted, without TLS and WebSocket framing.
	FramesIn, FramesOut, OctetsIn, OctetsOut uint64
}

// ConnectionSubscription is one subscription of a Connection.
type ConnectionSubscription struct {
	// ID is the client's id, empty where a 1.0 client gave none.
	ID string
	// Destination is what the client subscribed with.
	Destination string
	// Pattern is "events", "events_store", "queues", "commands", "queries" or "reply", "temp_queue" or "temp_topic".
	Pattern string
	// Channel is the destination's channel in dot form.
	Channel string
	// Ack is "auto", "client" or "client-individual".
	Ack string
	// Unacked is the messages that the client holds.
	Unacked int
	// Dropped is the messages that limits.slow_consumer dropped.
	Dropped uint64
}

// Connections returns the sessions that have had CONNECTED and are open, the oldest first. Those of this node only.
func (s *Server) Connections() []Connection {
	s.mu.Lock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	list := make([]Connection, 0, len(conns))
	for _, c := range conns {
		if shown, ok := c.show(); ok {
			list = append(list, shown)
		}
	}
	slices.SortFunc(list, func(a, b Connection) int {
		return cmp.Or(a.ConnectedAt.Compare(b.ConnectedAt), strings.Compare(a.ID, b.ID))
	})
	return list
}

// Disconnect ends the session with that Connection.ID: the client gets an ERROR, and what it held goes to others. It
// returns false if there is no such session on this node. It does not wait for the end.
func (s *Server) Disconnect(id string) bool {
	for _, c := range s.sessions() {
		if c.id != id {
			continue
		}
		c.mu.Lock()
		session := c.shown.session
		c.mu.Unlock()
		c.audit.Info("client.kicked", "session", session)
		c.revoke(errKicked)
		return true
	}
	return false
}

// identity is what a connection is shown as. It is empty until CONNECTED.
type identity struct {
	session, login string
	connectedAt    time.Time
}

// show describes a session; false before CONNECTED.
func (c *conn) show() (Connection, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown.connectedAt.IsZero() {
		return Connection{}, false
	}
	list := make([]*subscription, 0, len(c.subs))
	for _, s := range c.subs {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *subscription) int { return cmp.Compare(a.index, b.index) })
	subs := make([]ConnectionSubscription, len(list))
	for i, s := range list {
		subs[i] = ConnectionSubscription{
			ID: s.shownID(), Destination: s.asked, Pattern: s.route.Pattern.String(), Channel: s.route.Channel,
			Ack: s.mode.String(), Unacked: s.unacked, Dropped: s.dropped,
		}
	}
	return Connection{
		ID: c.id, Session: c.shown.session, Login: c.shown.login, Remote: c.net.RemoteAddr().String(),
		Version: c.version.String(), Transport: c.via.String(), ConnectedAt: c.shown.connectedAt,
		Subscriptions: subs,
		Pending:       c.out.pending(), PendingReceipts: c.receipts.open(), Unacked: c.unacked,
		FramesIn: total(c.traffic.received[:]), FramesOut: total(c.traffic.sent[:]),
		OctetsIn: c.traffic.octetsIn.Load(), OctetsOut: c.traffic.octetsOut.Load(),
	}, true
}

// shownID is the client's id, empty where a 1.0 client gave none.
func (s *subscription) shownID() string {
	if strings.HasPrefix(s.key, "\x00") {
		return ""
	}
	return s.key
}

// enroll makes a subscription known. Only the reader changes c.subs, and reads it freely; it takes the lock to change it,
// so that others may read with it.
func (c *conn) enroll(s *subscription) {
	c.mu.Lock()
	c.subs[s.key] = s
	c.mu.Unlock()
	c.byIndex[s.index] = s
}

// withdraw undoes enroll.
func (c *conn) withdraw(s *subscription) {
	c.mu.Lock()
	delete(c.subs, s.key)
	c.mu.Unlock()
	delete(c.byIndex, s.index)
}

// adminConnections is Connections as the admin listener shows them.
func (s *Server) adminConnections() []admin.Connection {
	list := s.Connections()
	shown := make([]admin.Connection, len(list))
	for i, c := range list {
		subs := make([]admin.Subscription, len(c.Subscriptions))
		for i, s := range c.Subscriptions {
			subs[i] = admin.Subscription{
				ID: s.ID, Filter: s.Destination, Pattern: s.Pattern, Channel: s.Channel, Ack: s.Ack, Unacked: s.Unacked, Dropped: s.Dropped,
			}
		}
		shown[i] = admin.Connection{
			ID: c.ID, ClientID: c.Session, Username: c.Login, RemoteAddr: c.Remote, Version: c.Version, Transport: c.Transport,
			ConnectedAt: c.ConnectedAt, Subscriptions: subs,
			PendingBytes: c.Pending, PendingReceipts: c.PendingReceipts, Unacked: c.Unacked,
			FramesIn: c.FramesIn, FramesOut: c.FramesOut, BytesIn: c.OctetsIn, BytesOut: c.OctetsOut,
		}
	}
	return shown
}
