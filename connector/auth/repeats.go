package auth

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// repeatTime is how often the refused logins of one source are told.
	repeatTime = time.Minute
	// repeatSources bounds the sources that are told apart; what is more shares one entry for each code.
	repeatSources = 10_000
)

// Repeats decides which refused logins are worth a line of the audit log: of each source and code the first, and then once a
// minute how many more there were. Its memory is bounded. It is safe for concurrent use; make it with NewRepeats.
type Repeats struct {
	tell func(Repeated)

	mu      sync.Mutex
	stopped bool            // guarded by mu
	open    map[repeat]*run // guarded by mu
}

// Repeated are the refused logins of a source that were not told one by one.
type Repeated struct {
	// From is the address of the source, the network of its /64 for IPv6, and not valid for sources that are not told apart.
	From netip.Addr
	// Code is one of the Code constants.
	Code string
	// Count is how many they were since the last line about them.
	Count int
}

// repeat is what is told once.
type repeat struct {
	from netip.Addr
	code string
}

// run is a source that comes again and again.
type run struct {
	count int // not told yet
	timer *time.Timer
}

// NewRepeats returns a Repeats that calls tell from a goroutine of its own, not for two at once of one source.
func NewRepeats(tell func(Repeated)) *Repeats {
	return &Repeats{tell: tell, open: make(map[repeat]*run)}
}

// Refused notes a refused login, and reports whether it is to be told now. If not, tell hears of it within a minute.
func (r *Repeats) Refused(from netip.Addr, code string) (now bool) {
	key := repeat{network(from), code}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return true // Nobody would count it.
	}
	if _, known := r.open[key]; !known && len(r.open) >= repeatSources {
		key.from = netip.Addr{}
	}
	if known := r.open[key]; known != nil {
		known.count++
		return false
	}
	r.open[key] = &run{timer: time.AfterFunc(repeatTime, func() { r.over(key) })}
	return true
}

// over is the end of a minute.
func (r *Repeats) over(key repeat) {
	r.mu.Lock()
	one, count := r.open[key], 0
	if one != nil {
		if count, one.count = one.count, 0; count == 0 {
			delete(r.open, key) // It has stopped.
		}
	}
	r.mu.Unlock()
	if count == 0 {
		return
	}
	r.tell(Repeated{From: key.from, Code: key.code, Count: count})
	r.mu.Lock()
	if !r.stopped {
		one.timer.Reset(repeatTime)
	}
	r.mu.Unlock()
}

// Stop tells what was not told yet. What is refused later is told one by one.
func (r *Repeats) Stop() {
	r.mu.Lock()
	r.stopped = true
	open := r.open
	r.open = nil
	r.mu.Unlock()
	for key, one := range open {
		one.timer.Stop()
		if one.count > 0 {
			r.tell(Repeated{From: key.from, Code: key.code, Count: one.count})
		}
	}
}
