package bridge

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// External is what a Bridge must know about a NATS that is not embedded.
type External struct {
	// Replicas is how many copies new streams have.
	Replicas func() int
	// Data and Control are the links of those connections.
	Data, Control Link
	// Denied says that NATS has refused, since that time, to publish or to subscribe to a subject; wide that it was over
	// Wide, else over Data.
	Denied func(wide, publish bool, subject string, since time.Time) bool
}

// Link tells apart what went over a connection before and after it broke.
type Link interface {
	// Generation changes when the connection has broken, before it can carry anything again.
	Generation() uint64
	// Enter returns the generation for a publish that follows; until Leave, the connection stays down if it breaks.
	Enter() (generation uint64)
	// Leave ends what Enter began.
	Leave(generation uint64)
}

// unbroken is the link to an embedded NATS.
type unbroken struct{}

func (unbroken) Generation() uint64 { return 0 }
func (unbroken) Enter() uint64      { return 0 }
func (unbroken) Leave(uint64)       {}

// ErrDenied says that NATS does not let natstomp's login publish or subscribe to a subject.
var ErrDenied = errors.New("denied by NATS")

// careInterval is how often what waits for NATS is looked at.
const careInterval = 100 * time.Millisecond

// charge is something that waits for NATS.
type charge interface {
	// tend does what is due and says whether anything is left to wait for. It runs on one goroutine for all charges.
	tend(now time.Time) (more bool)
}

// care looks after what an outage of NATS has stopped.
type care struct {
	wake chan struct{}

	mu      sync.Mutex
	charges map[charge]struct{} // guarded by mu
	relink  bool                // guarded by mu; the control link is there again
}

func newCare() *care {
	return &care{wake: make(chan struct{}, 1), charges: make(map[charge]struct{})}
}

// add takes c in. It may be called again and again.
func (c *care) add(x charge) {
	c.mu.Lock()
	c.charges[x] = struct{}{}
	first := len(c.charges) == 1
	c.mu.Unlock()
	if first {
		c.hurry()
	}
}

// hurry has all charges looked at now.
func (c *care) hurry() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *care) run(b *Bridge) {
	tick := time.NewTicker(careInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.wake:
		case <-b.stop:
			return
		}
		c.round()
		if c.takeRelink() {
			b.relink()
		}
	}
}

func (c *care) round() {
	c.mu.Lock()
	round := c.charges
	c.charges = make(map[charge]struct{}, len(round))
	c.mu.Unlock()
	now := time.Now()
	for x := range round {
		if x.tend(now) {
			c.mu.Lock()
			c.charges[x] = struct{}{}
			c.mu.Unlock()
		}
	}
}

func (c *care) takeRelink() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	relink := c.relink
	c.relink = false
	return relink
}

// LinkUp says that a link is there again after an outage; control says that it is Control. It does not block.
func (b *Bridge) LinkUp(control bool) {
	if control {
		b.care.mu.Lock()
		b.care.relink = true
		b.care.mu.Unlock()
	}
	b.care.hurry()
}

// Abandon ends all waiting for NATS: what waits fails with ErrStopped. It is for a stop while NATS is away.
func (b *Bridge) Abandon() {
	b.endLife()
	for _, r := range []*replies{b.pubs, b.acks} {
		r.expire(func(expiry) bool { return true }, ErrStopped)
	}
	b.care.hurry()
}

// givenUp says that nothing waits for NATS any more.
func (b *Bridge) givenUp() bool {
	return b.life.Err() != nil
}

// ending says that the Bridge is stopped, or waits no more.
func (b *Bridge) ending() bool {
	select {
	case <-b.stop:
		return true
	default:
		return b.givenUp()
	}
}

// errAway says that the link to NATS is down, or broke under a publish, which may have arrived.
var errAway = errors.New("NATS is away")

func isOutage(err error) bool { return errors.Is(err, errAway) || errors.Is(err, nats.ErrDisconnected) }

// linkFault tells a publish that failed for the link, whatever its socket said, from others.
func linkFault(err error) error {
	if err == nil {
		return nil
	}
	for _, other := range []error{nats.ErrConnectionClosed, nats.ErrConnectionDraining, nats.ErrBadSubject, nats.ErrHeadersNotSupported} {
		if errors.Is(err, other) {
			return err
		}
	}
	return fmt.Errorf("%w: %s", errAway, err.Error()) // Not wrapped: a fault of this link is none of the client's.
}

// denied is ErrDenied where NATS has refused a subject since that time, and nil otherwise.
func (b *Bridge) denied(wide, publish bool, subject string, since time.Time) error {
	if b.cfg.External != nil && b.cfg.External.Denied(wide, publish, subject, since) {
		return fmt.Errorf("%w: %s", ErrDenied, subject)
	}
	return nil
}

// dataLink is the link of Data, controlLink that of Control.
func (b *Bridge) dataLink() Link {
	if b.cfg.External == nil {
		return unbroken{}
	}
	return b.cfg.External.Data
}

func (b *Bridge) controlLink() Link {
	if b.cfg.External == nil {
		return unbroken{}
	}
	return b.cfg.External.Control
}

func (b *Bridge) controlGeneration() uint64 { return b.controlLink().Generation() }

// apiPrefix is where the JetStream API is.
func apiPrefix(domain, prefix string) string {
	switch {
	case domain != "":
		return "$JS." + domain + ".API."
	case prefix == "":
		return "$JS.API."
	case prefix[len(prefix)-1] == '.':
		return prefix
	}
	return prefix + "."
}
