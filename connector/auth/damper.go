package auth

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// freeRefusals is how many refused logins per second an address has answered at once.
	freeRefusals = 5
	// maxDelay is how late the others are answered.
	maxDelay = time.Second
	// dampedAddresses bounds the addresses that are remembered; what is more shares one entry.
	dampedAddresses = 10_000
)

// Damper says how late to answer a refused login, so that passcodes cannot be tried fast. Its memory is bounded. It is
// safe for concurrent use; make it with NewDamper.
type Damper struct {
	now func() time.Time

	mu    sync.Mutex
	full  map[netip.Addr]time.Time // guarded by mu; when all of the address's refusals are paid for
	swept time.Time                // guarded by mu; when the addresses were last looked through
}

// NewDamper returns a Damper that has seen nothing.
func NewDamper() *Damper { return newDamper(time.Now) }

func newDamper(now func() time.Time) *Damper {
	return &Damper{now: now, full: make(map[netip.Addr]time.Time)}
}

// Refused notes a refused login from an address and returns how late to answer it: 0 for the first five of a second,
// then more and more, up to one second. IPv6 addresses count by their /64, of which one host has all.
func (d *Damper) Refused(from netip.Addr) time.Duration {
	const each = time.Second / freeRefusals
	key := network(from)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	full, known := d.full[key]
	if !known && len(d.full) >= dampedAddresses {
		if now.Sub(d.swept) >= time.Second {
			d.forget(now)
		}
		if len(d.full) >= dampedAddresses {
			key = netip.Addr{} // Strangers share one entry while so many addresses attack.
			full = d.full[key]
		}
	}
	if full.Before(now) {
		full = now
	}
	// More than the largest delay is not held against an address: what it did then is forgotten within two seconds.
	full = full.Add(each)
	if most := now.Add(time.Second + maxDelay); full.After(most) {
		full = most
	}
	d.full[key] = full
	return max(0, full.Sub(now)-time.Second)
}

// forget drops the addresses whose refusals are paid for. d.mu is held.
func (d *Damper) forget(now time.Time) {
	d.swept = now
	for key, full := range d.full {
		if !full.After(now) {
			delete(d.full, key)
		}
	}
}

// network is what of an address one attacker has alone.
func network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a
	}
	return p.Addr()
}
