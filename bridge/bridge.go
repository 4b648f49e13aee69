package bridge

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/router"
)

// Config is what a Bridge works with. All fields are required unless a default is named.
type Config struct {
	// Data carries publishes and topic subscriptions, Control pulls and acks, Wide subscriptions that begin with a
	// wildcard. They lead to the same server.
	Data, Control, Wide *nats.Conn
	// JS is JetStream on Control.
	JS jetstream.JetStream
	// Router gives the destinations of wildcard deliveries and knows the reserved subjects.
	Router *router.Router
	// Logger receives faults.
	Logger *slog.Logger
	// PublishTimeout is how long a message may wait for NATS to have it.
	PublishTimeout time.Duration
	// RequestTimeout bounds how long a STOMP responder may take for a request.
	RequestTimeout time.Duration
	// External is set where NATS is not embedded.
	External *External
	// Queues configures /queue.
	Queues QueueConfig
	// Store configures /topic-store.
	Store StoreConfig
}

// QueueConfig configures /queue (DESIGN section 4.3).
type QueueConfig struct {
	// Limit is how many queues may exist through creation by use; 0 is no limit.
	Limit int
	// Settings returns the settings of the queue of a channel. Default: those of the zero value.
	Settings func(channel string) QueueSettings
	// IdleDelete is after what time an empty queue is deleted that nobody uses; 0 is never.
	IdleDelete time.Duration
	// DelayBytes bounds the octets of all messages that wait for their delay to pass; 0 is no limit.
	DelayBytes int64
	// DedupWindow is how long JetStream remembers a message id.
	DedupWindow time.Duration
	// Storage is where messages are kept.
	Storage jetstream.StorageType
	// Marks maps streams to the highest sequence that may have been delivered before this start; a stream that is
	// missing counts with its last sequence (DESIGN section 4.3, redelivered).
	Marks map[string]uint64
	// CleanMarks says that Marks comes from a clean stop.
	CleanMarks bool
	// ForgetMark, if not nil, takes a stream out of Marks for the next start.
	ForgetMark func(stream string) error
}

// Bridge is natstomp's use of one NATS. Its methods are safe for concurrent use.
type Bridge struct {
	cfg      Config
	log      *slog.Logger
	data     *flusher
	control  *flusher
	wide     *flusher
	pubs     *replies
	acks     *replies
	topics   *fanout
	queues   *queues
	store    *store
	bound    *bindings
	delays   *delays
	attached *attachments
	batches  batchID
	unseen   unseen
	closing  atomic.Bool   // the server ends with us
	large    chan struct{} // one token for each pull without bound in octets
	ids      batchID       // of stored messages
	pulls    atomic.Uint64 // See Stats for these five.
	expired  atomic.Uint64
	deleted  atomic.Uint64
	drops    atomic.Uint64
	retries  atomic.Uint64
	api      string // prefix of the subjects of the JetStream API
	care     *care
	places   places
	gone     losses
	words    *words

	joined   atomic.Uint64 // generation of the control link at Join
	auditing atomic.Bool

	requests  *requests
	addresses *addresses

	// wideGate keeps wide filters from opening while a pull is ended; see QueueSubscription.end.
	wideGate sync.RWMutex

	stop    chan struct{}
	life    context.Context // ends when nobody is to wait for NATS any more, at the latest with stop
	endLife context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex
	stopped bool // guarded by mu; no goroutine is started any more
}

// New returns a Bridge that is not started.
func New(cfg Config) *Bridge {
	b := &Bridge{cfg: cfg, log: cfg.Logger, stop: make(chan struct{})}
	b.life, b.endLife = context.WithCancel(context.Background())
	b.data, b.control, b.wide = newFlusher(cfg.Data, cfg.PublishTimeout), newFlusher(cfg.Control, cfg.PublishTimeout), newFlusher(cfg.Wide, cfg.PublishTimeout)
	b.pubs = newReplies(cfg.Data, cfg.PublishTimeout)
	b.acks = newReplies(cfg.Control, cfg.PublishTimeout)
	b.large = make(chan struct{}, maxLarge)
	b.topics = newFanout(b)
	b.queues = newQueues(b)
	b.requests = newRequests(cfg.Data)
	b.addresses = newAddresses(b)
	b.store = &store{b: b}
	b.bound = &bindings{b: b}
	b.delays = newDelays(b)
	b.attached = &attachments{b: b}
	b.batches.prefix, b.ids.prefix = rand.Text()+"-", rand.Text()+"-"
	o := cfg.JS.Options()
	b.api = apiPrefix(o.Domain, o.APIPrefix)
	b.care = newCare()
	b.words = &words{b: b}
	return b
}

// Start begins to listen for replies and, with an embedded NATS, makes the queues that the store holds ready. It returns
// when they are. For an external NATS see Join.
func (b *Bridge) Start(ctx context.Context) error {
	for _, r := range []*replies{b.pubs, b.acks} {
		if err := r.start(); err != nil {
			return err
		}
		b.launch(func() { r.sweep(b.stop) })
	}
	if err := b.requests.start(); err != nil {
		return err
	}
	b.launch(func() { b.requests.run(b.stop) })
	if err := b.addresses.start(); err != nil {
		return err
	}
	for _, f := range []*flusher{b.data, b.control, b.wide} {
		b.launch(func() { f.run(b) })
	}
	b.launch(func() { b.care.run(b) })
	if b.cfg.External == nil {
		if err := b.store.recover(ctx); err != nil {
			return err
		}
	}
	if err := b.queues.start(ctx); err != nil {
		return err
	}
	if b.cfg.External == nil {
		if err := b.delays.recover(ctx); err != nil {
			return err
		}
	}
	b.delays.begin()
	return nil
}

// Stop ends the Bridge after all subscriptions have ended and returns the marks of its queues for the next start, where
// NATS is embedded.
func (b *Bridge) Stop(ctx context.Context) map[string]uint64 {
	b.queues.stop()
	b.delays.stop(ctx)
	var marks map[string]uint64
	if b.cfg.External == nil {
		marks = b.queues.marks(ctx)
	}
	b.endLife()
	close(b.stop)
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.wg.Wait()
	b.queues.presence.stop()
	b.pubs.stop()
	b.acks.stop()
	b.requests.stop()
	b.addresses.stop()
	return marks
}

// launch runs f on a goroutine that Stop joins. False: the bridge has stopped.
func (b *Bridge) launch(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	b.wg.Go(f)
	return true
}

// within is a context that ends after a time, or when nobody is to wait for NATS any more.
func (b *Bridge) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.life, d)
}
