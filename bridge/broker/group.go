package broker

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Role says what a connection is for.
type Role int

const (
	// DataRole is that of Broker.Data.
	DataRole Role = iota
	// ControlRole is that of Broker.Control.
	ControlRole
	// WideRole is that of Broker.Wide.
	WideRole
	roles
)

// String returns the name that shows in logs and in the connection's name on the server.
func (r Role) String() string { return [...]string{"data", "control", "wide"}[r] }

const (
	// loyalty is how often a connection tries the server on which the others still are before it leads them away.
	loyalty = 3
	// maxMoves is how often connections are moved onto one server before it is given up, which happens where one
	// address stands for several servers.
	maxMoves = 8
)

// group keeps the connections of a node on one server: what SUBSCRIBE and SEND promise about each other holds through
// one server only. They reconnect for ever, each for itself, but to the server on which the others are, or which all of
// them try next.
type group struct {
	log     *slog.Logger
	members [roles]*member

	mu    sync.Mutex
	home  string     // guarded by mu; host:port of the server to be on
	moves int        // guarded by mu; since all were together
	up    func(Role) // guarded by mu
}

type member struct {
	role Role
	set  **nats.Conn
	link *Link

	// Guarded by group.mu.
	nc        *nats.Conn
	connected bool
	server    string // id of the server
	tried     string // host:port of the latest attempt
	fails     int    // attempts since it was connected
	reason    error  // of the latest failed attempt
}

func newGroup(log *slog.Logger) *group {
	g := &group{log: log}
	for r := range g.members {
		g.members[r] = &member{role: Role(r), link: new(Link)}
	}
	return g
}

// options make a connection a member. urls are the servers of its first attempts.
func (g *group) options(r Role, urls []string) []nats.Option {
	g.mu.Lock()
	home := g.home
	g.mu.Unlock()
	return []nats.Option{
		func(o *nats.Options) error {
			o.Url, o.Servers = "", urls
			if home != "" {
				o.Servers, o.NoRandomize = firstServer(urls, home), true
			}
			return nil
		},
		g.members[r].link.through,
		nats.ReconnectToServer(func(servers []nats.Server, _ nats.ServerInfo) (*nats.Server, time.Duration) {
			return g.pick(r, servers)
		}),
		nats.ConnectHandler(func(nc *nats.Conn) { g.arrived(r, nc, true) }),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			g.log.Info("nats reconnected", "role", r.String(), "url", nc.ConnectedUrlRedacted())
			g.arrived(r, nc, true)
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { g.failed(r, err) }),
		nats.LameDuckModeHandler(func(nc *nats.Conn) { g.leave(nc) }),
	}
}

// add notes a new connection, whose handlers may have run before.
func (g *group) add(r Role, nc *nats.Conn) {
	g.mu.Lock()
	g.members[r].nc = nc
	g.mu.Unlock()
	g.arrived(r, nc, false)
}

// notify has f called after each time a connection is made again; f may be called at once and from any goroutine.
func (g *group) notify(f func(Role)) {
	g.mu.Lock()
	g.up = f
	g.mu.Unlock()
}

// pick chooses the server for the next attempt of a connection that is down. nats.go calls it with that connection's
// lock held.
func (g *group) pick(r Role, servers []nats.Server) (*nats.Server, time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.members[r]
	m.link.broken()
	m.connected = false
	m.fails++
	at := func(host string) int {
		return slices.IndexFunc(servers, func(s nats.Server) bool { return s.URL.Host == host })
	}
	if m.tried == g.home && (!g.inhabited() || m.fails > loyalty) {
		g.home = servers[(at(g.home)+1)%len(servers)].URL.Host
	}
	i := max(at(g.home), 0)
	g.home = servers[i].URL.Host
	m.tried = g.home
	return &servers[i], pause(m.fails, len(servers))
}

// inhabited says whether any connection is up. g.mu is held.
func (g *group) inhabited() bool {
	return slices.ContainsFunc(g.members[:], func(m *member) bool { return m.connected })
}

// pause is the time before an attempt: short for the first round over all servers, always with jitter so that the nodes
// of a cluster do not come all at once.
func pause(attempt, servers int) time.Duration {
	jitter := func(d time.Duration) time.Duration {
		return rand.N(d) //nolint:gosec // jitter, not a secret
	}
	switch {
	case attempt <= servers:
		return 10*time.Millisecond + jitter(90*time.Millisecond)
	case attempt < 60:
		return 250*time.Millisecond + jitter(250*time.Millisecond)
	}
	return time.Second + jitter(time.Second)
}

// arrived notes that a connection is up and moves those that are elsewhere.
func (g *group) arrived(r Role, nc *nats.Conn, tell bool) {
	m := g.members[r]
	generation := m.link.Generation()
	server, host := nc.ConnectedServerId(), hostOf(nc.ConnectedUrl())
	if server == "" {
		return // Gone again, it will come back here.
	}
	g.mu.Lock()
	if m.link.Generation() != generation {
		g.mu.Unlock()
		return // See above.
	}
	m.nc, m.connected, m.server, m.tried, m.fails, m.reason = nc, true, server, host, 0, nil
	if !slices.ContainsFunc(g.members[:], func(o *member) bool { return o != m && o.connected && o.tried == g.home }) {
		g.home = host
	}
	strays := g.strays()
	up := g.up
	g.mu.Unlock()
	for _, nc := range strays {
		// Fails only on a closed connection.
		_ = nc.ForceReconnect()
	}
	if tell && up != nil {
		up(r)
	}
}

// strays are the connections that must move so that all are on one server. g.mu is held.
func (g *group) strays() []*nats.Conn {
	var at string // id of the server at home
	for _, m := range g.members {
		if m.connected && m.tried == g.home {
			at = m.server
			break
		}
	}
	var list []*nats.Conn
	apart := false
	for _, m := range g.members {
		if m.connected && m.server != at {
			list = append(list, m.nc)
			// Not twice: it is on its way from now on.
			m.connected = false
		}
		apart = apart || !m.connected
	}
	switch {
	case len(list) == 0 && !apart:
		g.moves = 0
	case len(list) > 0:
		if g.moves++; g.moves > maxMoves {
			if g.moves == maxMoves+1 {
				g.log.Warn("the connections to NATS are on different servers behind one address: a SUBSCRIBE to a wildcard may miss what is sent right after it",
					"address", g.home)
			}
			for _, m := range g.members {
				m.connected = m.connected || slices.Contains(list, m.nc)
			}
			return nil
		}
	}
	return list
}

// failed notes why an attempt failed.
func (g *group) failed(r Role, err error) {
	g.mu.Lock()
	m := g.members[r]
	first := m.reason == nil || m.reason.Error() != err.Error()
	m.reason = err
	g.mu.Unlock()
	if first {
		g.log.Warn("nats cannot be reached", "role", r.String(), "err", err)
	}
}

// leave moves the connections off a server that is about to stop, if there is another.
func (g *group) leave(nc *nats.Conn) {
	if len(nc.Servers()) < 2 {
		return
	}
	host := hostOf(nc.ConnectedUrl())
	g.mu.Lock()
	var list []*nats.Conn
	if host != "" && host == g.home {
		for _, m := range g.members {
			if m.connected && m.tried == host {
				m.connected = false
				list = append(list, m.nc)
			}
		}
	}
	g.mu.Unlock()
	if len(list) > 0 {
		g.log.Info("nats server is going to stop", "url", nc.ConnectedUrlRedacted())
	}
	for _, nc := range list {
		// Fails only on a closed connection.
		_ = nc.ForceReconnect()
	}
}

// reason is why NATS is not reached, nil if that is not known.
func (g *group) reason() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		if m.reason != nil {
			return m.reason
		}
	}
	return nil
}
