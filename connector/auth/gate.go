package auth

import (
	"context"
	"net/netip"
	"slices"
	"sync"
)

// gate lets a few checks of passwords go on at once, since each costs a core for a tenth of a second. Who waits is served
// in turn by address, so that one that tries passwords in bulk delays the others by one check at most. What it holds is
// bounded by those who wait.
type gate struct {
	mu    sync.Mutex
	free  int                          // guarded by mu
	lanes map[netip.Addr][]chan<- bool // guarded by mu; who waits
	turns []netip.Addr                 // guarded by mu; the keys of lanes, the next first
}

func newGate(atOnce int) *gate {
	return &gate{free: atOnce, lanes: make(map[netip.Addr][]chan<- bool)}
}

// enter waits for a turn. leave must follow unless there is an error.
func (g *gate) enter(ctx context.Context, from netip.Addr) error {
	from = network(from)
	turn := make(chan bool, 1)
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	if len(g.lanes[from]) == 0 {
		g.turns = append(g.turns, from)
	}
	g.lanes[from] = append(g.lanes[from], turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		g.withdraw(from, turn)
		return ctx.Err()
	}
}

// withdraw gives up a place, or the turn that came meanwhile.
func (g *gate) withdraw(from netip.Addr, turn chan bool) {
	g.mu.Lock()
	lane := g.lanes[from]
	i := slices.Index(lane, (chan<- bool)(turn))
	if i >= 0 {
		g.keep(from, slices.Delete(lane, i, i+1))
	}
	g.mu.Unlock()
	if i < 0 {
		g.leave()
	}
}

// keep stores what is left of a lane. g.mu is held.
func (g *gate) keep(from netip.Addr, lane []chan<- bool) {
	if len(lane) > 0 {
		g.lanes[from] = lane
		return
	}
	delete(g.lanes, from)
	g.turns = slices.DeleteFunc(g.turns, func(a netip.Addr) bool { return a == from })
}

// leave passes the turn on.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.turns) == 0 {
		g.free++
		return
	}
	from := g.turns[0]
	lane := g.lanes[from]
	lane[0] <- true // Has room: each is told once.
	g.turns = append(g.turns[1:], from)
	g.keep(from, lane[1:])
}
