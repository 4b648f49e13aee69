package broker

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Link tells apart what went to NATS before a connection broke from what went after it came back. nats.go alone does
// not: a publish that was about to happen when the connection broke happens on the next one, and overtakes what was
// lost with the first. A Link has a broken connection stay down until no publish of its time is under way any more. Its
// methods are safe for concurrent use.
type Link struct {
	generation atomic.Uint64
	under      [2]atomic.Int64 // publishes under way, of even and of odd generations
	live       atomic.Bool     // a connection was made in this generation
}

// Generation changes when the connection has broken, before it can carry anything again. For the embedded server it is
// always 0.
func (l *Link) Generation() uint64 { return l.generation.Load() }

// Enter returns the generation for a publish that follows. Leave must follow that.
func (l *Link) Enter() (generation uint64) {
	for {
		generation = l.generation.Load()
		l.under[generation%2].Add(1)
		if l.generation.Load() == generation {
			return generation
		}
		l.under[generation%2].Add(-1)
	}
}

// Leave ends what Enter began.
func (l *Link) Leave(generation uint64) { l.under[generation%2].Add(-1) }

// broken begins a new generation, once for each connection that was made.
func (l *Link) broken() {
	if l.live.CompareAndSwap(true, false) {
		l.generation.Add(1)
	}
}

// errStraggler has an attempt to connect fail.
var errStraggler = errors.New("a publish of the broken connection is under way")

// dialer makes the connections of a link.
type dialer struct {
	link *Link
	next nats.CustomDialer
}

// Dial implements nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	if before := d.link.generation.Load() + 1; d.link.under[before%2].Load() > 0 {
		return nil, errStraggler // It waits for nats.go's lock, which is held here: the next attempt comes soon.
	}
	c, err := d.next.Dial(network, address)
	if err == nil {
		d.link.live.Store(true)
	}
	return c, err
}

// through has a connection made by the link's dialer, around the one that it would have.
func (l *Link) through(o *nats.Options) error {
	next := o.CustomDialer
	if next == nil {
		timeout := o.Timeout
		if timeout <= 0 {
			timeout = 2 * time.Second
		}
		next = &net.Dialer{Timeout: timeout}
	}
	o.CustomDialer = dialer{l, next}
	return nil
}
