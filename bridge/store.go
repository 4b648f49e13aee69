package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/router"
)

const (
	// storeStream holds the messages of all stored topics (DESIGN section 2, names on NATS).
	storeStream = "STORE"
	// storeKey marks the stream as natstomp's own.
	storeKey = "natstomp_store"
)

// ErrForeignStore says that the stream for stored topics is somebody else's and holds other subjects.
var ErrForeignStore = errors.New("the stream for stored topics holds other subjects")

// StoreConfig configures /topic-store (DESIGN section 4.2). Storage and duplicate window are those of the queues.
type StoreConfig struct {
	// MaxAge is how long a message is kept; 0 is for ever.
	MaxAge time.Duration
	// MaxBytes is the size of the stream in octets, which drops its oldest messages; 0 is no limit.
	MaxBytes int64
	// Subjects are the subjects of all stored topics, such as "stomp.store.>".
	Subjects string
	// Durables is how many durable subscriptions a stream may have; 0 is no limit.
	Durables int
}

// store is the stream of the stored topics.
type store struct {
	b *Bridge
	makings[*place]
	mark uint64 // What was stored before this start; set by recover.
}

// stored returns the stream of a stored topic, made if need be.
func (b *Bridge) stored(route router.Route) (*place, error) {
	if route.Bound != nil {
		return b.bound.place(route.Bound)
	}
	return b.store.open()
}

// filterOf is the subject of a route's messages in their stream.
func filterOf(route router.Route) string {
	if route.Subject == "" {
		return ">" // Bound to a whole stream.
	}
	return route.Subject
}

// place returns where a SEND is stored, and on which subject.
func (b *Bridge) place(route router.Route) (p *place, subject string, err error) {
	switch {
	case route.Bound != nil:
		return b.bound.target(route)
	case route.Pattern == router.Store:
		p, err = b.store.open()
		return p, route.Subject, err
	}
	q, err := b.queues.get(route, true)
	if err != nil {
		return nil, "", err
	}
	return q.place, q.subject, nil
}

// SamePlace says whether SENDs to the routes are stored in one stream.
func SamePlace(a, b router.Route) bool {
	switch {
	case a.Bound != nil && b.Bound != nil:
		return a.Bound.Stream == b.Bound.Stream && (a.Bound.Stream != "" || a.Subject == b.Subject)
	case a.Bound != nil || b.Bound != nil || a.Pattern != b.Pattern:
		return false
	}
	return a.Pattern == router.Store || a.Channel == b.Channel
}

// recover finds the stream of an earlier start, gives it today's settings, and gives back what was held.
func (s *store) recover(ctx context.Context) error {
	stream, err := s.b.cfg.JS.Stream(ctx, storeStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for stream %s: %w", storeStream, err)
	}
	s.mark = s.b.unclean(stream.CachedInfo())
	if _, err = s.open(); errors.Is(err, ErrForeignStore) {
		s.b.log.Warn("stored topics cannot be used", "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	return s.release(ctx, stream)
}

// unclean is up to which sequence a stream's messages may have been delivered without the consumers' state saying so:
// JetStream writes that late, so only a clean stop saves all of it.
func (b *Bridge) unclean(info *jetstream.StreamInfo) uint64 {
	if b.cfg.Queues.CleanMarks {
		return 0
	}
	return info.State.LastSeq
}

// open returns the stream, made or brought up to date at first use.
func (s *store) open() (*place, error) {
	if s.b.gone.has(storeStream) {
		return nil, ErrNoStream
	}
	return s.get(storeStream, s.create)
}

func (s *store) create() (*place, error) {
	want := s.config()
	var info *jetstream.StreamInfo
	err := s.b.persist(func(ctx context.Context) error {
		_, err := s.b.cfg.JS.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			err = s.adopt(ctx, want)
		}
		if err == nil {
			info, err = s.b.info(ctx, storeStream)
		}
		return roomFault(err)
	})
	if err != nil {
		return nil, fmt.Errorf("making stream %s: %w", storeStream, err)
	}
	p := newPlace(s.b, storeStream)
	p.found(info)
	p.mark.set(s.mark)
	return p, nil
}

func (s *store) config() jetstream.StreamConfig {
	cfg := &s.b.cfg
	maxBytes := cfg.Store.MaxBytes
	if maxBytes == 0 {
		maxBytes = -1
	}
	window := cfg.Queues.DedupWindow
	if cfg.Store.MaxAge > 0 {
		window = min(window, cfg.Store.MaxAge) // JetStream allows no more.
	}
	return jetstream.StreamConfig{
		Name:               storeStream,
		Replicas:           s.b.replicas(),
		Description:        "natstomp stored topics",
		Subjects:           []string{cfg.Store.Subjects},
		Retention:          jetstream.LimitsPolicy,
		Storage:            cfg.Queues.Storage,
		MaxAge:             cfg.Store.MaxAge,
		MaxBytes:           maxBytes,
		Discard:            jetstream.DiscardOld,
		Duplicates:         window,
		AllowMsgTTL:        true,
		AllowAtomicPublish: true,
		AllowDirect:        true,
		Metadata:           map[string]string{storeKey: "1"},
	}
}

// adopt uses the stream that exists: ours is brought up to date, somebody else's is left alone.
func (s *store) adopt(ctx context.Context, want jetstream.StreamConfig) error {
	stream, err := s.b.cfg.JS.Stream(ctx, storeStream)
	if err != nil {
		return err
	}
	have := stream.CachedInfo().Config
	ours := have.Metadata[storeKey] != ""
	same := slices.Equal(have.Subjects, want.Subjects)
	switch {
	case !ours && slices.Contains(have.Subjects, want.Subjects[0]):
		return nil
	case !ours:
		return fmt.Errorf("%w: %v", ErrForeignStore, have.Subjects)
	case s.b.cfg.External != nil:
		return s.b.enable(ctx, have) // Its limits are whoever's who made it first.
	case same && have.MaxAge == want.MaxAge && have.MaxBytes == want.MaxBytes && have.Duplicates == want.Duplicates &&
		have.AllowMsgTTL == want.AllowMsgTTL && have.AllowAtomicPublish == want.AllowAtomicPublish:
		return nil
	}
	want.Storage, want.Replicas = have.Storage, have.Replicas
	_, err = s.b.cfg.JS.UpdateStream(ctx, want)
	return err
}
