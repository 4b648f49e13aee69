package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	recovered bool // all queues of the store are known; set by recover

	mu    sync.Mutex
	known map[string]*queue // guarded by mu; by channel
}

// queue is one channel's stream with its durable.
type queue struct {
	*place
	channel string
	subject string
	durable *durable

	ready chan struct{} // closed when the making is over
	err   error         // set before ready is closed
}

func newQueues(b *Bridge) *queues {
	return &queues{b: b, known: make(map[string]*queue)}
}

func newQueue(channel, subject string) *queue {
	stream := QueueStream(channel)
	return &queue{
		place:   newPlace(stream),
		channel: channel,
		subject: subject,
		durable: &durable{consumer: consumer{stream: stream, name: durableName}, ackWait: ackWait},
		ready:   make(chan struct{}),
	}
}

// EnsureQueue makes the queue of a route exist, with its durable. It blocks while this takes.
func (b *Bridge) EnsureQueue(route router.Route) error {
	_, err := b.queues.get(route)
	return err
}

// get returns the queue of a route, made if need be. It blocks while that takes; the first caller makes the queue, the
// others wait for it.
func (qs *queues) get(route router.Route) (*queue, error) {
	qs.mu.Lock()
	q, ok := qs.known[route.Channel]
	if ok {
		qs.mu.Unlock()
		<-q.ready
		return q, q.err
	}
	if limit := qs.b.cfg.Queues.Limit; limit > 0 && len(qs.known) >= limit {
		qs.mu.Unlock()
		return nil, fmt.Errorf("%w: %d", ErrQueueLimit, limit)
	}
	q = newQueue(route.Channel, route.Subject)
	qs.known[route.Channel] = q
	qs.mu.Unlock()

	q.err = qs.create(q)
	if q.err != nil {
		qs.mu.Lock()
		delete(qs.known, route.Channel)
		qs.mu.Unlock()
	}
	close(q.ready)
	return q, q.err
}

func (qs *queues) create(q *queue) error {
	ctx, cancel := context.WithTimeout(context.Background(), apiTimeout)
	defer cancel()
	_, err := qs.b.cfg.JS.CreateStream(ctx, qs.streamConfig(q))
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		err = qs.owned(ctx, q)
	}
	if err != nil {
		return fmt.Errorf("creating stream %s: %w", q.stream, err)
	}
	if _, err := qs.b.cfg.JS.CreateOrUpdateConsumer(ctx, q.stream, consumerConfig(q)); err != nil {
		return fmt.Errorf("creating the durable of %s: %w", q.stream, err)
	}
	return nil
}

// owned says whether the stream that has the name of q's is q's: names hold 32 bits of a hash only, and anybody may make
// a stream of any name.
func (qs *queues) owned(ctx context.Context, q *queue) error {
	s, err := qs.b.cfg.JS.Stream(ctx, q.stream)
	if err != nil {
		return err
	}
	if c := s.CachedInfo().Config; c.Metadata[channelKey] != q.channel || !slices.Equal(c.Subjects, []string{q.subject}) {
		return fmt.Errorf("%w: it belongs to %q", ErrQueueName, c.Metadata[channelKey])
	}
	return nil
}

func (qs *queues) streamConfig(q *queue) jetstream.StreamConfig {
	maxBytes := qs.b.cfg.Queues.MaxBytes
	if maxBytes == 0 {
		maxBytes = -1
	}
	return jetstream.StreamConfig{
		Name:               q.stream,
		Description:        "natstomp queue " + q.channel,
		Subjects:           []string{q.subject},
		Retention:          jetstream.WorkQueuePolicy,
		Storage:            qs.b.cfg.Queues.Storage,
		MaxBytes:           maxBytes,
		Discard:            jetstream.DiscardNew,
		Duplicates:         qs.b.cfg.Queues.DedupWindow,
		AllowMsgTTL:        true,
		AllowAtomicPublish: true,
		Metadata:           map[string]string{channelKey: q.channel},
	}
}

// consumerConfig is the shared durable. Its state is in memory: JetStream writes delivery counts of a file late, so the
// mark must speak for what was before a restart anyway (DESIGN section 4.3).
func consumerConfig(q *queue) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       durableName,
		FilterSubject: q.subject,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxDeliver:    -1,
		MaxAckPending: -1,
		MaxWaiting:    maxWaiting,
		MemoryStorage: true,
	}
}

// recover finds the queues of the store and makes their durables anew.
func (qs *queues) recover(ctx context.Context) error {
	list := qs.b.cfg.JS.ListStreams(ctx)
	for info := range list.Info() {
		channel := info.Config.Metadata[channelKey]
		if channel == "" || !strings.HasPrefix(info.Config.Name, queueStreamPrefix) {
			continue
		}
		route, err := qs.b.cfg.Router.Parse("/queue/"+channel, router.Send)
		if err != nil || QueueStream(channel) != info.Config.Name {
			continue // Somebody's copy of one of our streams.
		}
		q := newQueue(channel, route.Subject)
		q.durable.mark = qs.markOf(info)
		q.err = qs.revive(ctx, q, info.Config)
		close(q.ready)
		qs.mu.Lock()
		qs.known[channel] = q
		qs.mu.Unlock()
		if q.err != nil {
			return q.err
		}
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("listing the queues: %w", err)
	}
	qs.recovered = true
	return nil
}

func (qs *queues) markOf(info *jetstream.StreamInfo) uint64 {
	if mark, ok := qs.b.cfg.Queues.Marks[info.Config.Name]; ok && qs.b.cfg.Queues.CleanMarks {
		return mark
	}
	return info.State.LastSeq
}

// revive gives a stored queue today's settings and a new durable.
func (qs *queues) revive(ctx context.Context, q *queue, have jetstream.StreamConfig) error {
	want := qs.streamConfig(q)
	if !slices.Equal(have.Subjects, want.Subjects) || have.MaxBytes != want.MaxBytes || have.Duplicates != want.Duplicates ||
		have.AllowMsgTTL != want.AllowMsgTTL || have.AllowAtomicPublish != want.AllowAtomicPublish {
		want.Storage = have.Storage
		if _, err := qs.b.cfg.JS.UpdateStream(ctx, want); err != nil {
			return fmt.Errorf("updating stream %s: %w", q.stream, err)
		}
	}
	err := qs.b.cfg.JS.DeleteConsumer(ctx, q.stream, durableName)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("removing the old durable of %s: %w", q.stream, err)
	}
	if _, err := qs.b.cfg.JS.CreateConsumer(ctx, q.stream, consumerConfig(q)); err != nil {
		return fmt.Errorf("creating the durable of %s: %w", q.stream, err)
	}
	return nil
}

// marks stops all delivery and returns what was delivered, by stream. A queue that cannot tell is left out, so that at
// the next start everything in it counts as delivered.
func (qs *queues) marks(ctx context.Context) map[string]uint64 {
	qs.mu.Lock()
	list := make([]*queue, 0, len(qs.known))
	for _, q := range qs.known {
		list = append(list, q)
	}
	qs.mu.Unlock()
	marks := make(map[string]uint64, len(list))
	if !qs.recovered && qs.b.cfg.Queues.CleanMarks {
		maps.Copy(marks, qs.b.cfg.Queues.Marks) // A start that was given up leaves what it did not come to as it was.
	}
	for _, q := range list {
		<-q.ready
		delete(marks, q.stream)
		if q.err != nil {
			continue
		}
		// Paused first: native readers of the durable must get nothing that the mark does not cover.
		if _, err := qs.b.cfg.JS.PauseConsumer(ctx, q.stream, durableName, time.Now().Add(time.Hour)); err != nil {
			qs.b.log.Warn("queue could not be paused", "stream", q.stream, "err", err)
			continue
		}
		c, err := qs.b.cfg.JS.Consumer(ctx, q.stream, durableName)
		if err != nil {
			qs.b.log.Warn("queue's mark is unknown", "stream", q.stream, "err", err)
			continue
		}
		marks[q.stream] = max(q.durable.mark, c.CachedInfo().Delivered.Stream)
	}
	return marks
}

// batchID makes the ids of atomic batches: a random start per process, then a counter.
type batchID struct {
	prefix string
	n      atomic.Uint64
}
