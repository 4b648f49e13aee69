package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/router"
)

var (
	// ErrNotThere says that the stream or consumer that a destination is bound to does not exist. It is never made.
	ErrNotThere = errors.New("what the destination is bound to does not exist")
	// ErrNotShared says that the consumer that a destination is bound to cannot be used: it is no pull consumer with
	// explicit acks.
	ErrNotShared = errors.New("the consumer is not a pull consumer with explicit acks")
	// ErrNoSubject says that nothing tells on which subject to store: neither the binding nor its stream names just one.
	ErrNoSubject = errors.New("the binding names no subject")
	// ErrNoConsumer says that a queue's binding names no consumer to read from.
	ErrNoConsumer = errors.New("the binding names no consumer")
)

// bindings are the streams that destinations are bound to (DESIGN section 2).
type bindings struct {
	b        *Bridge
	places   makings[*place]
	subjects makings[string] // those that the binding does not name, by destination
}

// place returns the stream of a binding, which may be one that only its subject tells.
func (bs *bindings) place(to *router.Binding) (*place, error) {
	name := to.Stream
	if name == "" {
		name = " " + to.Subject // No stream's name.
	}
	return bs.places.get(name, func() (*place, error) { return bs.find(to) })
}

func (bs *bindings) find(to *router.Binding) (*place, error) {
	p := newPlace(bs.b, to.Stream)
	p.bound = true
	if to.Stream == "" {
		return p, nil
	}
	var s jetstream.Stream
	err := bs.b.persist(func(ctx context.Context) (err error) {
		s, err = bs.b.cfg.JS.Stream(ctx, to.Stream)
		return err
	})
	if err != nil {
		return nil, notThere(to, err)
	}
	p.found(s.CachedInfo())
	return p, nil
}

// notThere turns the answers that say so into ErrNotThere, or into ErrNotShared.
func notThere(to *router.Binding, err error) error {
	if errors.Is(err, jetstream.ErrNotPullConsumer) {
		err = ErrNotShared
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrConsumerNotFound) {
		err = ErrNotThere
	}
	return fmt.Errorf("binding of %s: %w", to.Destination, err)
}

// target returns where a SEND to a bound destination is stored.
func (bs *bindings) target(route router.Route) (*place, string, error) {
	p, err := bs.place(route.Bound)
	if err != nil || route.Subject != "" {
		return p, route.Subject, err
	}
	subject, err := bs.subjects.get(route.Bound.Destination, func() (string, error) { return bs.onlySubject(route.Bound) })
	return p, subject, err
}

// onlySubject is the one subject that the bound consumer, or the stream, takes.
func (bs *bindings) onlySubject(to *router.Binding) (string, error) {
	var candidates [][]string
	err := bs.b.persist(func(ctx context.Context) error {
		s, err := bs.b.cfg.JS.Stream(ctx, to.Stream)
		if err != nil {
			return err
		}
		candidates = [][]string{s.CachedInfo().Config.Subjects}
		if to.Consumer != "" {
			c, err := s.Consumer(ctx, to.Consumer)
			if err != nil {
				return err
			}
			cfg := c.CachedInfo().Config
			candidates = slices.Insert(candidates, 0, []string{cfg.FilterSubject}, cfg.FilterSubjects)
		}
		return nil
	})
	if err != nil {
		return "", notThere(to, err)
	}
	for _, list := range candidates {
		if len(list) == 1 && list[0] != "" && !strings.ContainsAny(list[0], "*>") {
			return list[0], nil
		}
	}
	return "", fmt.Errorf("binding of %s: %w", to.Destination, ErrNoSubject)
}

// durable returns the consumer that a destination is bound to.
func (bs *bindings) durable(to *router.Binding) (*durable, error) {
	if to.Consumer == "" {
		return nil, fmt.Errorf("binding of %s: %w", to.Destination, ErrNoConsumer)
	}
	p, err := bs.place(to)
	if err != nil {
		return nil, err
	}
	var c jetstream.Consumer
	err = bs.b.persist(func(ctx context.Context) (err error) {
		c, err = bs.b.cfg.JS.Consumer(ctx, to.Stream, to.Consumer)
		return err
	})
	if err != nil {
		return nil, notThere(to, err)
	}
	cfg := c.CachedInfo().Config
	if cfg.AckPolicy != jetstream.AckExplicitPolicy {
		return nil, fmt.Errorf("binding of %s: %w", to.Destination, ErrNotShared)
	}
	d := &durable{
		consumer: consumer{
			stream: to.Stream, name: to.Consumer,
			maxBatch: cfg.MaxRequestBatch, maxBytes: cfg.MaxRequestMaxBytes, maxExpires: cfg.MaxRequestExpires,
		},
		place:   p,
		ackWait: cfg.AckWait,
		lost:    ErrNotThere,
	}
	d.made(c)
	for _, wait := range cfg.BackOff {
		d.ackWait = min(d.ackWait, wait)
	}
	return d, nil
}
