package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/router"
)

const (
	// ackWait is after what time a message comes back from a node that died.
	ackWait = 30 * time.Second
	// maxWaiting is how many pulls may wait at one queue: more than any node has subscriptions on it.
	maxWaiting = 65_536
	// apiTimeout bounds one call of the JetStream API.
	apiTimeout = 10 * time.Second
)

// ErrQueueLimit says that creating one more queue by use would pass the limit.
var ErrQueueLimit = errors.New("too many queues")

// ErrQueueName says that the stream of a queue cannot be made since another queue's, or somebody's, has its name.
var ErrQueueName = errors.New("stream name is taken")

// queues are the queues that this node knows.
type queues struct {
	b         *Bridge
	presence  *presence
	graves    *graves
	wake      chan struct{} // tells the collector that a queue has lost its last subscription
	halted    sync.WaitGroup
	life      context.Context // ends when the collector is to end
	endLife   context.CancelFunc
	closing   atomic.Int64 // queues whose subject is away
	recovered bool         // all queues of the store are known; set by recover

	mu    sync.Mutex
	known map[string]*queue // guarded by mu; by channel
}

// queue is one channel's stream with its durable.
type queue struct {
	*place
	channel  string
	subject  string
	durable  *durable
	settings QueueSettings

	ready  chan struct{} // closed when the making is over
	err    error         // set before ready is closed
	listed bool          // set before ready is closed; the stream was seen, the durable was not looked for

	mu         sync.Mutex
	parked     []*parcel     // guarded by mu; met the stream without subject
	resolving  bool          // guarded by mu; somebody finds out why
	autoDelete bool          // guarded by mu; a subscription asked for it
	visited    bool          // guarded by mu; the collector looks at it
	due        time.Time     // guarded by mu; when the collector looks again; zero: it need not
	patience   time.Duration // guarded by mu; the pause before the look after that
}

func newQueues(b *Bridge) *queues {
	life, endLife := context.WithCancel(b.life)
	return &queues{
		b:        b,
		presence: newPresence(b),
		graves:   &graves{b: b},
		wake:     make(chan struct{}, 1),
		life:     life,
		endLife:  endLife,
		known:    make(map[string]*queue),
	}
}

func (qs *queues) newQueue(channel, subject string) *queue {
	p := newPlace(qs.b, QueueStream(channel))
	q := &queue{
		place:   p,
		channel: channel,
		subject: subject,
		durable: &durable{consumer: consumer{stream: p.stream, name: durableName}, place: p, ackWait: ackWait},
		ready:   make(chan struct{}),
	}
	q.queue = q
	q.durable.remake = func(ctx context.Context) error { return qs.remake(ctx, q) }
	if settings := qs.b.cfg.Queues.Settings; settings != nil {
		q.settings = settings(channel)
	}
	q.durable.policy = q.settings.Policy
	q.autoDelete = q.settings.AutoDelete
	if idle := qs.b.cfg.Queues.IdleDelete; idle > 0 {
		q.due = time.Now().Add(idle)
	}
	return q
}

// EnsureQueue makes the queue of a route exist, with its durable. It blocks while this takes. The queue does not count
// for the limit.
func (b *Bridge) EnsureQueue(route router.Route) error {
	_, err := b.queues.get(route, false)
	return err
}

// get returns the queue of a route, made if need be. It blocks while that takes; the first caller makes the queue, the
// others wait for it. limited: the limit on queues applies.
func (qs *queues) get(route router.Route, limited bool) (*queue, error) {
	q, listed, known, err := qs.place(route, limited)
	if err != nil {
		return nil, err
	}
	if known {
		<-q.ready
		return q, q.err
	}
	q.err = qs.create(q, listed)
	if q.err != nil {
		qs.mu.Lock()
		delete(qs.known, route.Channel)
		if listed != nil && !listed.window.gone() {
			qs.known[route.Channel] = listed
		}
		qs.mu.Unlock()
	}
	close(q.ready)
	return q, q.err
}

// place returns the queue of a route as it is known, or a new one that the caller must make, with the one that it takes
// the place of, if one was listed. Where the limit is reached it waits for queues that are being deleted.
func (qs *queues) place(route router.Route, limited bool) (q, listed *queue, known bool, err error) {
	limit := qs.b.cfg.Queues.Limit
	for until := time.Now().Add(closeTime); ; {
		if qs.b.gone.hasQueue(route.Channel) {
			return nil, nil, false, ErrNoStream
		}
		closing := qs.closing.Load() > 0 // Before the count: what is forgotten in between has made room.
		qs.mu.Lock()
		q, known = qs.known[route.Channel]
		full := limited && limit > 0 && !known && qs.count() >= limit
		if known && q.isListed() {
			listed, known = q, false
		}
		if !full && !known {
			q = qs.newQueue(route.Channel, route.Subject)
			qs.known[route.Channel] = q
		}
		qs.mu.Unlock()
		if !full {
			return q, listed, known, nil
		}
		if !closing || time.Now().After(until) {
			return nil, nil, false, fmt.Errorf("%w: %d", ErrQueueLimit, limit)
		}
		qs.b.pause(lookInterval)
	}
}

// count is how many queues count for the limit. qs.mu is held.
func (qs *queues) count() (n int) {
	for _, q := range qs.known {
		if !q.settings.Keep {
			n++
		}
	}
	return n
}

func (qs *queues) list() []*queue {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	list := make([]*queue, 0, len(qs.known))
	for _, q := range qs.known {
		list = append(list, q)
	}
	return list
}

// create makes a queue. listed, if not nil, is what was seen of it: then it is not made if it is gone, unless natstomp
// has deleted it.
func (qs *queues) create(q, listed *queue) error {
	err := qs.b.persist(func(ctx context.Context) error {
		if err := qs.makeStream(ctx, q, listed); err != nil {
			return err
		}
		if qs.b.cfg.External != nil {
			return qs.settle(ctx, q)
		}
		c, err := qs.b.cfg.JS.CreateOrUpdateConsumer(ctx, q.stream, qs.consumerConfig(q))
		if err != nil {
			return fmt.Errorf("creating the durable of %s: %w", q.stream, err)
		}
		q.durable.made(c)
		qs.b.places.put(q.place)
		return nil
	})
	if listed != nil && errors.Is(err, ErrNoStream) {
		qs.b.miss(q.stream, "NATS has no such stream")
	}
	return err
}

func (qs *queues) makeStream(ctx context.Context, q, listed *queue) error {
	if listed != nil {
		q.created.Store(listed.created.Load())
		here, err := qs.await(ctx, q)
		if here || err != nil {
			return err
		}
	}
	for made := false; !made; {
		if err := qs.presence.catchUp(); err != nil {
			return fmt.Errorf("making %s: %w", q.stream, err)
		}
		err := error(nil)
		if len(qs.presence.closers(q.stream)) == 0 {
			_, err = qs.b.cfg.JS.CreateStream(ctx, qs.streamConfig(q))
			if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				return fmt.Errorf("creating stream %s: %w", q.stream, roomFault(err))
			}
			made = err == nil
		}
		if !made {
			made, err = qs.await(ctx, q)
		}
		if err != nil && !errors.Is(err, ErrNoStream) {
			return fmt.Errorf("waiting for stream %s: %w", q.stream, err)
		}
	}
	return nil
}

// start makes the queues of the store ready and begins to collect idle ones.
func (qs *queues) start(ctx context.Context) error {
	if err := qs.presence.start(qs.onGone); err != nil {
		return err
	}
	qs.b.launch(qs.presence.run)
	if qs.b.cfg.External == nil {
		if err := qs.recover(ctx); err != nil {
			return err
		}
	}
	qs.halted.Go(qs.collect)
	return nil
}

// stop ends the collecting.
func (qs *queues) stop() {
	qs.endLife()
	qs.halted.Wait()
}

// recover finds the queues of the store and makes their durables anew.
func (qs *queues) recover(ctx context.Context) error {
	missing := maps.Clone(qs.b.cfg.Queues.Marks)
	stored, err := qs.stored(ctx)
	if err != nil {
		return err
	}
	var fault atomic.Pointer[error]
	sideBySide(stored, func(info *jetstream.StreamInfo) {
		q, ok := qs.queueOf(info.Config)
		if !ok || fault.Load() != nil {
			return
		}
		q.mark.set(qs.markOf(info))
		q.err = qs.revive(ctx, q, info.Config)
		qs.add(q)
		if q.err != nil {
			fault.CompareAndSwap(nil, &q.err)
		}
	})
	if err := fault.Load(); err != nil {
		return *err
	}
	for _, info := range stored {
		delete(missing, info.Config.Name)
	}
	for stream := range missing {
		qs.b.miss(stream, "the store had it when it was stopped last")
	}
	qs.recovered = true
	return nil
}

// stored lists all streams of the server, before anything is done with one: the list has a time limit as a whole.
func (qs *queues) stored(ctx context.Context) (infos []*jetstream.StreamInfo, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list := qs.b.cfg.JS.ListStreams(ctx)
	for info := range list.Info() {
		infos = append(infos, info)
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("listing the queues: %w", err)
	}
	return infos, nil
}

// queueOf is the queue whose stream that is; false if it is none.
func (qs *queues) queueOf(stream jetstream.StreamConfig) (*queue, bool) {
	channel := stream.Metadata[channelKey]
	if channel == "" || !strings.HasPrefix(stream.Name, queueStreamPrefix) {
		return nil, false
	}
	route, err := qs.b.cfg.Router.Parse("/queue/"+channel, router.Send)
	if err != nil || QueueStream(channel) != stream.Name {
		return nil, false // Somebody's copy of one of our streams.
	}
	return qs.newQueue(channel, route.Subject), true
}

// add makes a queue known that is there.
func (qs *queues) add(q *queue) {
	qs.b.places.put(q.place)
	close(q.ready)
	qs.mu.Lock()
	qs.known[q.channel] = q
	qs.mu.Unlock()
}

func (qs *queues) markOf(info *jetstream.StreamInfo) uint64 {
	if mark, ok := qs.b.cfg.Queues.Marks[info.Config.Name]; ok && qs.b.cfg.Queues.CleanMarks {
		return mark
	}
	return info.State.LastSeq
}

// revive gives a stored queue today's settings and a new durable. Its last consumer went with the last process.
func (qs *queues) revive(ctx context.Context, q *queue, have jetstream.StreamConfig) error {
	if have.Metadata[autoDeleteKey] != "" {
		q.autoDelete = true
	}
	if owner, closing := have.Metadata[closingKey]; closing && qs.alive(owner) {
		if here, err := qs.await(ctx, q); err != nil || !here {
			return err
		}
	} else if want := qs.streamConfig(q); closing || differ(have, want) {
		want.Storage = have.Storage
		if _, err := qs.b.cfg.JS.UpdateStream(ctx, want); err != nil {
			return fmt.Errorf("updating stream %s: %w", q.stream, err)
		}
	}
	err := qs.b.cfg.JS.DeleteConsumer(ctx, q.stream, durableName)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("removing the old durable of %s: %w", q.stream, err)
	}
	c, err := qs.b.cfg.JS.CreateConsumer(ctx, q.stream, qs.consumerConfig(q))
	if err != nil {
		return fmt.Errorf("creating the durable of %s: %w", q.stream, err)
	}
	q.durable.made(c)
	q.window.used = true
	q.due = time.Now()
	return nil
}

// vanishes says that the messages of a queue are in memory only: the next start must not miss its stream. One that was
// made with another nats.embedded.durability is where it was.
func (qs *queues) vanishes(ctx context.Context, q *queue) bool {
	if qs.b.cfg.Queues.Storage != jetstream.MemoryStorage {
		return false
	}
	info, err := qs.b.info(ctx, q.stream)
	return err == nil && info.Config.Storage == jetstream.MemoryStorage
}

// marks stops all delivery and returns what was delivered, by stream. A queue that cannot tell is left out, so that at
// the next start everything in it counts as delivered.
func (qs *queues) marks(ctx context.Context) map[string]uint64 {
	list := qs.list()
	marks := make(map[string]uint64, len(list))
	if !qs.recovered && qs.b.cfg.Queues.CleanMarks {
		maps.Copy(marks, qs.b.cfg.Queues.Marks) // A start that was given up leaves what it did not come to as it was.
	}
	for _, stream := range qs.b.gone.names() {
		marks[stream] = qs.b.cfg.Queues.Marks[stream] // It is missed at the next start too.
	}
	var mu sync.Mutex // Guards marks.
	sideBySide(list, func(q *queue) {
		<-q.ready
		if qs.b.gone.has(q.stream) {
			return
		}
		mark, known := qs.lastMark(ctx, q)
		mu.Lock()
		defer mu.Unlock()
		delete(marks, q.stream)
		if known {
			marks[q.stream] = mark
		}
	})
	return marks
}

// lastMark stops the delivery of a queue and returns what was delivered.
func (qs *queues) lastMark(ctx context.Context, q *queue) (mark uint64, known bool) {
	if q.err != nil || qs.vanishes(ctx, q) {
		return 0, false
	}
	// Paused first: native readers of the durable must get nothing that the mark does not cover.
	if _, err := qs.b.cfg.JS.PauseConsumer(ctx, q.stream, durableName, time.Now().Add(time.Hour)); err != nil {
		qs.b.log.Warn("queue could not be paused", "stream", q.stream, "err", err)
		return 0, false
	}
	c, err := qs.b.cfg.JS.Consumer(ctx, q.stream, durableName)
	if err != nil {
		qs.b.log.Warn("queue's mark is unknown", "stream", q.stream, "err", err)
		return 0, false
	}
	return max(q.mark.sequence(), c.CachedInfo().Delivered.Stream), true
}

// sideBySide calls f for each of a list, for several at once: f waits for NATS, whose answers are long in coming where the
// machine is busy, and there may be thousands of queues.
func sideBySide[T any](list []T, f func(T)) {
	const most = 32
	places := make(chan struct{}, most)
	var wg sync.WaitGroup
	for _, one := range list {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			f(one)
		})
	}
	wg.Wait()
}
