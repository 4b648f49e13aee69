package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/router"
)

var (
	// ErrNoDurable says that a durable subscription does not exist, or no longer.
	ErrNoDurable = errors.New("no such durable subscription")
	// ErrDurableFilter says that a durable subscription exists for another destination.
	ErrDurableFilter = errors.New("the durable subscription has another destination")
	// ErrDurableStart says that a durable subscription began elsewhere.
	ErrDurableStart = errors.New("the durable subscription has another start")
	// ErrDurableLimit says that making one more durable subscription would pass the limit.
	ErrDurableLimit = errors.New("too many durable subscriptions")
)

const (
	// durablePrefix begins the consumer names of durable subscriptions.
	durablePrefix = "d_"
	// Where a consumer's metadata keeps whose subscription it is, its name and where it began.
	identityKey = "natstomp_identity"
	nameKey     = "natstomp_name"
	startKey    = "natstomp_start"
)

// durable is a consumer that subscriptions share, natives' too.
type durable struct {
	consumer
	born    atomic.Int64 // when it was made, in ns since the epoch
	place   *place
	filter  string                      // the subjects that a durable subscription is for; empty: all of the consumer
	policy  Policy                      // how the subscriptions share it
	least   uint64                      // nothing before is delivered
	since   time.Time                   // nothing stored earlier is delivered
	ackWait time.Duration               // after what time a message comes back that nobody speaks for
	lost    error                       // what its loss means; nil: ErrNoStream
	remake  func(context.Context) error // makes the consumer again that somebody deleted; nil: its loss is final
	sizes   sizes
}

func (d *durable) id() consumerID { return consumerID{d.stream, d.name, d.born.Load()} }

// made notes which consumer of its name it is.
func (d *durable) made(c jetstream.Consumer) { d.born.Store(c.CachedInfo().Created.UnixNano()) }

// gone is what a subscription is told when the consumer does not exist any more.
func (d *durable) gone() error {
	if d.lost != nil {
		return d.lost
	}
	return ErrNoStream
}

// verify returns nil if the consumer is there, gone's error if it is gone for good, and any other if that is not known.
func (d *durable) verify() error {
	b := d.place.b
	if err := d.place.verify(); err != nil {
		return err
	}
	ctx, cancel := b.within(checkTimeout)
	defer cancel()
	c, err := b.cfg.JS.Consumer(ctx, d.stream, d.name)
	if err == nil && errors.Is(d.lost, ErrNoDurable) && c.CachedInfo().Created.UnixNano() != d.born.Load() {
		return d.gone() // Another one of its name, perhaps to another destination.
	}
	if !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	if d.remake == nil {
		return d.gone()
	}
	return d.remake(ctx)
}

// early says whether a message came before the start, which a server may take for the end of its stream where it lies in
// the future.
func (d *durable) early(sequence uint64, stored time.Time) bool {
	return sequence < d.least || stored.Before(d.since)
}

// foreign says whether a message is none of the durable subscription's: it was deleted, and one of its name made for
// another destination.
func (d *durable) foreign(subject string) bool {
	return d.filter != "" && !router.Match(d.filter, subject)
}

// DurableID names a durable subscription. Both parts together do.
type DurableID struct {
	// Identity is whose it is.
	Identity string
	// Name is what the client calls it.
	Name string
}

// consumer is the name on NATS (DESIGN section 2, names on NATS).
func (id DurableID) consumer() string {
	sum := sha256.Sum256([]byte(strconv.Itoa(len(id.Identity)) + ":" + id.Identity + id.Name))
	return durablePrefix + hex.EncodeToString(sum[:8])
}

// SubscribeDurable starts to pull messages of the route's channels for a durable subscription, which is made if there is
// none of that name. An empty start means: as it is, or Start's default when it is made. The rest is as with SubscribeQueue.
func (b *Bridge) SubscribeDurable(route router.Route, id DurableID, start *Start, view View, room int, hold Hold, r QueueReceiver) (*QueueSubscription, error) {
	heard := b.attached.heard()
	d, err := b.attach(route, id, start)
	if err != nil {
		return nil, err
	}
	s, err := b.share(&QueueSubscription{d: d, view: view.of(route), receiver: r, hold: hold}, room)
	if err == nil {
		b.attached.put(s, heard)
	}
	return s, err
}

// attach returns the durable subscription, made if need be.
func (b *Bridge) attach(route router.Route, id DurableID, start *Start) (*durable, error) {
	p, err := b.stored(route)
	if err != nil {
		return nil, err
	}
	d := &durable{consumer: consumer{stream: p.stream, name: id.consumer()}, place: p, ackWait: ackWait, lost: ErrNoDurable}
	var c jetstream.Consumer
	err = b.persist(func(ctx context.Context) (err error) {
		c, err = b.cfg.JS.Consumer(ctx, p.stream, d.name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			c, err = b.makeDurable(ctx, p, route, id, start)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("attaching to %s of %s: %w", d.name, p.stream, err)
	}
	cfg := c.CachedInfo().Config
	d.filter = filterOf(route)
	d.made(c)
	d.least = cfg.OptStartSeq
	if cfg.OptStartTime != nil {
		d.since = *cfg.OptStartTime
	}
	return d, id.same(cfg, route, start)
}

// makeDurable makes the consumer of a durable subscription. Where another node was faster it returns that one.
func (b *Bridge) makeDurable(ctx context.Context, p *place, route router.Route, id DurableID, start *Start) (jetstream.Consumer, error) {
	if err := b.roomForDurable(ctx, p.stream); err != nil {
		return nil, err
	}
	if start == nil {
		start = &Start{}
	}
	cfg := jetstream.ConsumerConfig{
		Durable:       id.consumer(),
		Description:   "natstomp durable subscription",
		FilterSubject: filterOf(route),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxDeliver:    -1,
		MaxAckPending: -1,
		MaxWaiting:    maxWaiting,
		Metadata:      map[string]string{identityKey: id.Identity, nameKey: id.Name, startKey: start.String()},
	}
	start.apply(&cfg)
	c, err := b.cfg.JS.CreateConsumer(ctx, p.stream, cfg)
	if errors.Is(err, jetstream.ErrConsumerExists) || errors.Is(err, jetstream.ErrConsumerNameAlreadyInUse) {
		c, err = b.cfg.JS.Consumer(ctx, p.stream, cfg.Durable)
	}
	return c, err
}

// roomForDurable holds the durable subscriptions of a stream to their limit.
func (b *Bridge) roomForDurable(ctx context.Context, stream string) error {
	limit := b.cfg.Store.Durables
	if limit == 0 {
		return nil
	}
	s, err := b.cfg.JS.Stream(ctx, stream)
	if err != nil {
		return err
	}
	names := s.ConsumerNames(ctx)
	n := 0
	for name := range names.Name() {
		if strings.HasPrefix(name, durablePrefix) {
			n++
		}
	}
	if err := names.Err(); err != nil {
		return err
	}
	if n >= limit {
		return fmt.Errorf("%w: %d", ErrDurableLimit, limit)
	}
	return nil
}

// same says whether the consumer that exists is what the client asks for.
func (id DurableID) same(have jetstream.ConsumerConfig, route router.Route, start *Start) error {
	switch {
	case have.Metadata[identityKey] != id.Identity || have.Metadata[nameKey] != id.Name:
		return fmt.Errorf("consumer %s is another's", have.Durable)
	case have.FilterSubject != filterOf(route):
		return ErrDurableFilter
	case start != nil && have.Metadata[startKey] != start.String():
		return ErrDurableStart
	}
	return nil
}

// DurableChannel returns the channel, in dot form, of a durable subscription to stored topics of natstomp's own stream:
// what a session needs the right to read to delete it without naming its destination.
func (b *Bridge) DurableChannel(id DurableID) (string, error) {
	route := router.Route{Pattern: router.Store}
	have, err := b.durableConfig(route, id)
	if err != nil {
		return "", err
	}
	channel, ok := strings.CutPrefix(have.FilterSubject, strings.TrimSuffix(b.cfg.Store.Subjects, ">"))
	if !ok {
		return "", ErrDurableFilter
	}
	return channel, nil
}

// CheckDurable returns nil if a durable subscription is one to the destination of route.
func (b *Bridge) CheckDurable(route router.Route, id DurableID) error {
	have, err := b.durableConfig(route, id)
	if err != nil {
		return err
	}
	return id.same(have, route, nil)
}

func (b *Bridge) durableConfig(route router.Route, id DurableID) (have jetstream.ConsumerConfig, err error) {
	p, err := b.stored(route)
	if err != nil {
		return have, err
	}
	err = b.persist(func(ctx context.Context) error {
		c, err := b.cfg.JS.Consumer(ctx, p.stream, id.consumer())
		if err == nil {
			have = c.CachedInfo().Config
		}
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		err = ErrNoDurable
	}
	return have, err
}

// DeleteDurable removes a durable subscription to a destination like route; its position is gone with it. Other
// attachments are told that they lost it.
func (b *Bridge) DeleteDurable(route router.Route, id DurableID) error {
	p, err := b.stored(route)
	if err != nil {
		return err
	}
	tries := 0
	err = b.persist(func(ctx context.Context) error {
		tries++
		return b.cfg.JS.DeleteConsumer(ctx, p.stream, id.consumer())
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		if tries > 1 {
			err = nil // It was deleted, the answer got lost.
		} else {
			err = ErrNoDurable
		}
	}
	if err == nil {
		c := consumer{stream: p.stream, name: id.consumer()}
		b.attached.tell(c.key())
	}
	return err
}
