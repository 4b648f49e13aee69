package pressure

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// interval is how often the memory is looked at.
	interval = 10 * time.Millisecond
	// collectEvery bounds how often a collection of garbage is asked for.
	collectEvery = 250 * time.Millisecond
	// patience is how long a pause may last without effect before something is let go.
	patience = time.Second
)

// The marks, in parts of the limit. The Go runtime is told to collect harder from soft on; what is in use beyond high
// is no garbage. The rest of the limit is for the code, and for what is on its way when a pause begins: a message that
// NATS has already is copied for each subscriber.
const (
	low  = 0.6
	soft = 0.65
	high = 0.7
	shed = 0.76
	more = 0.04
)

// Config is what a Guard works with. All fields are required.
type Config struct {
	// Limit is the memory, in octets, that the process is to stay below.
	Limit uint64
	// Shed lets go of about so many octets that are queued, the largest queues first, and returns how many it found. The
	// Guard calls it from its own goroutine.
	Shed func(octets uint64) uint64
	// Changed hears of the beginning and the end of each pause, with the memory in use. The Guard calls it from its own
	// goroutine.
	Changed func(paused bool, used uint64)
}

// Guard watches the memory of the process from Start to Stop. Its other methods are safe for concurrent use; a nil Guard
// never pauses.
type Guard struct {
	cfg    Config
	paused atomic.Bool
	used   func() uint64
	gather func()

	mu      sync.Mutex
	resumed chan struct{} // guarded by mu; closed at the end of the pause

	// Owned by the goroutine.
	since     time.Time     // of the pause or the last shedding
	collected time.Time     // when the last collection began
	gathering chan struct{} // closed when the last collection is over; nil once that is known
	shedAt    uint64        // memory in use at the last shedding, 0 once what was let go is collected

	stop, stopped chan struct{}
	restore       int64
}

// New returns a Guard that does nothing until Start.
func New(cfg Config) *Guard {
	return &Guard{
		cfg: cfg, used: inUse, gather: debug.FreeOSMemory,
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
}

// Start begins to watch. A process without a memory limit of its own (GOMEMLIMIT) gets one, until Stop.
func (g *Guard) Start() {
	if g.restore = debug.SetMemoryLimit(-1); g.restore == math.MaxInt64 {
		debug.SetMemoryLimit(int64(g.part(soft)))
	}
	go func() {
		defer close(g.stopped)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-g.stop:
				g.resume()
				return
			case now := <-tick.C:
				g.look(now)
			}
		}
	}()
}

// Stop ends the watching, and a pause. It must follow Start, once; on a nil Guard it does nothing.
func (g *Guard) Stop() {
	if g == nil {
		return
	}
	close(g.stop)
	<-g.stopped
	if g.gathering != nil {
		<-g.gathering
	}
	if g.restore == math.MaxInt64 {
		debug.SetMemoryLimit(g.restore)
	}
}

// Paused says whether nobody should bring more in.
func (g *Guard) Paused() bool { return g != nil && g.paused.Load() }

// Wait returns true when there is no pause, false when over was closed before.
func (g *Guard) Wait(over <-chan struct{}) bool {
	for g.Paused() {
		g.mu.Lock()
		resumed := g.resumed
		g.mu.Unlock()
		if resumed == nil {
			continue // It has just ended, or is just beginning.
		}
		select {
		case <-resumed:
		case <-over:
			return false
		}
	}
	return true
}

// look compares the memory in use with the marks.
func (g *Guard) look(now time.Time) {
	used := g.used()
	if !g.paused.Load() {
		if used < g.part(high) {
			return
		}
		g.pause(now, used)
	}
	g.collect(now)
	switch {
	case used < g.part(low):
		g.resume()
		g.cfg.Changed(false, used)
	case g.shedAt > 0 && used < g.shedAt+g.part(more):
		// What was let go is still counted.
	case used >= g.part(shed) || now.Sub(g.since) >= patience:
		g.since = now
		if g.cfg.Shed(used-g.part(low)) > 0 {
			g.shedAt, g.collected = used, time.Time{}
		}
	}
}

// collect has garbage collected from time to time, which takes longer than the memory may go unwatched.
func (g *Guard) collect(now time.Time) {
	if g.gathering != nil {
		select {
		case <-g.gathering:
			g.gathering = nil
			if !g.collected.IsZero() {
				g.shedAt = 0
			}
		default:
			return
		}
	}
	if now.Sub(g.collected) < collectEvery {
		return
	}
	g.collected = now
	done := make(chan struct{})
	g.gathering = done
	go func() {
		defer close(done)
		g.gather()
	}()
}

func (g *Guard) pause(now time.Time, used uint64) {
	g.mu.Lock()
	g.resumed = make(chan struct{})
	g.mu.Unlock()
	g.paused.Store(true)
	g.since = now
	g.cfg.Changed(true, used)
}

func (g *Guard) resume() {
	g.paused.Store(false)
	g.mu.Lock()
	if g.resumed != nil {
		close(g.resumed)
		g.resumed = nil
	}
	g.mu.Unlock()
}

func (g *Guard) part(of float64) uint64 { return uint64(of * float64(g.cfg.Limit)) }

// inUse is the memory that the Go runtime has from the system: all but the code, its data and what C took.
func inUse() uint64 {
	samples := [...]metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples[:])
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
