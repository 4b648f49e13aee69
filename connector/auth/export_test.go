package auth

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"
)

// NewAt is New with a clock, and looks at its files often.
func NewAt(cfg Config, now func() time.Time) (*Service, error) {
	s, err := open(cfg, now)
	if err == nil {
		s.look = 20 * time.Millisecond
	}
	return s, err
}

// NewDamperAt is NewDamper with a clock.
func NewDamperAt(now func() time.Time) *Damper { return newDamper(now) }

// Addresses returns how many addresses d remembers.
func (d *Damper) Addresses() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.full)
}

// Verified returns how many passcodes are remembered, and all octets that stand for them.
func (s *Service) Verified() (n int, octets []byte) {
	s.users.mu.Lock()
	defer s.users.mu.Unlock()
	for _, v := range s.users.verified {
		octets = append(octets, v.digest[:]...)
	}
	return len(s.users.verified), octets
}

// CountChecks counts the passcodes that are checked the expensive way from now on.
func (s *Service) CountChecks() *atomic.Int64 {
	var n atomic.Int64
	compare := s.users.compare
	s.users.compare = func(hash, passcode []byte) error {
		n.Add(1)
		return compare(hash, passcode)
	}
	return &n
}

// Gate is the gate of the package, for tests of its fairness.
type Gate struct{ *gate }

// NewGate returns a gate.
func NewGate(atOnce int) Gate { return Gate{newGate(atOnce)} }

// Waiting returns how many wait.
func (g Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, lane := range g.lanes {
		n += len(lane)
	}
	return n
}

// Lanes returns how many addresses wait.
func (g Gate) Lanes() (lanes, turns int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lanes), len(g.turns)
}

// Enter waits for a turn.
func (g Gate) Enter(ctx context.Context, from netip.Addr) error { return g.enter(ctx, from) }

// Leave passes the turn on.
func (g Gate) Leave() { g.leave() }

// Local is an address.
var Local = netip.MustParseAddr("127.0.0.1")
