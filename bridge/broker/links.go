package broker

import "github.com/nats-io/nats.go"

// LinkState is the state of one connection to NATS.
type LinkState struct {
	// Role is "data", "control" or "wide".
	Role string
	// Connected says that it is up.
	Connected bool
	// Reconnects counts how often it came back.
	Reconnects uint64
}

// Links returns the state of all connections, always in the same order.
func (b *Broker) Links() []LinkState {
	links := make([]LinkState, 0, 3)
	for _, l := range []struct {
		role string
		nc   *nats.Conn
	}{{"data", b.Data}, {"control", b.Control}, {"wide", b.Wide}} {
		links = append(links, LinkState{Role: l.role, Connected: l.nc.IsConnected(), Reconnects: l.nc.Stats().Reconnects})
	}
	return links
}
