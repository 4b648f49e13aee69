package pressure

import "time"

// Gathered waits until a collection that goes on is over.
func (g *Guard) Gathered() {
	if g.gathering != nil {
		<-g.gathering
	}
}

// Fake makes g see memory that a test sets, and look when the test says so.
func (g *Guard) Fake(used func() uint64, gather func()) { g.used, g.gather = used, gather }

// Look is one look, at a moment.
func (g *Guard) Look(now time.Time) { g.look(now) }
