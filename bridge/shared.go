package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/router"
)

// Join looks for the queues that an external NATS has. It changes nothing there, and may be called again after an
// error. With an embedded NATS it does nothing.
func (b *Bridge) Join(ctx context.Context) error {
	if b.cfg.External == nil {
		return nil
	}
	probe, err := b.cfg.Router.Parse("/queue/x", router.Send)
	if err != nil {
		return err
	}
	filter := probe.Subject[:len(probe.Subject)-1] + ">"
	list := b.cfg.JS.ListStreams(ctx, jetstream.WithStreamListSubject(filter))
	for info := range list.Info() {
		if q, ok := b.queues.queueOf(info.Config); ok {
			q.list(info)
			b.queues.addListed(q)
		}
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("listing the queues: %w", err)
	}
	b.joined.Store(b.controlGeneration())
	return nil
}

// list notes what was seen of a queue's stream. Its last subscription may have gone with its node.
func (q *queue) list(info *jetstream.StreamInfo) {
	q.listed = true
	q.created.Store(info.Created.UnixNano())
	q.autoDelete = q.autoDelete || info.Config.Metadata[autoDeleteKey] != ""
	q.window.used = true
	q.due = time.Now()
	close(q.ready)
}

// addListed makes a queue known, unless it is known better.
func (qs *queues) addListed(q *queue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if _, ok := qs.known[q.channel]; !ok {
		qs.known[q.channel] = q
	}
}

// settle makes sure that the stream can be a queue, and that the durable is there. Other nodes, and other programs, may do
// the same at the same time or have done it before with other settings: what exists is taken as it is.
func (qs *queues) settle(ctx context.Context, q *queue) error {
	info, err := qs.b.info(ctx, q.stream)
	if err == nil {
		err = qs.prepare(ctx, q, info.Config)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = errDeleting
	}
	if err != nil {
		return fmt.Errorf("preparing stream %s: %w", q.stream, err)
	}
	q.found(info)
	return nil
}

// errDeleting says that a stream is being deleted, or was just now: trying again helps.
var errDeleting = errors.New("the stream is being deleted")

func (qs *queues) prepare(ctx context.Context, q *queue, have jetstream.StreamConfig) error {
	channel := have.Metadata[channelKey]
	if _, closing := have.Metadata[closingKey]; closing && channel == q.channel {
		return errDeleting
	}
	if !slices.Contains(have.Subjects, q.subject) || channel != "" && channel != q.channel {
		return fmt.Errorf("%w: it belongs to %q", ErrQueueName, channel)
	}
	if have.Retention != jetstream.WorkQueuePolicy {
		return fmt.Errorf("%w: it is no work queue", ErrQueueName)
	}
	if err := qs.b.enable(ctx, have, onceRoot+q.stream+".>"); err != nil {
		return err
	}
	if want := qs.b.replicas(); have.Replicas < want {
		qs.b.log.Warn("a queue has fewer replicas than new ones get", "stream", q.stream, "replicas", have.Replicas, "new", want)
	}
	c, err := qs.b.cfg.JS.CreateConsumer(ctx, q.stream, qs.consumerConfig(q))
	if errors.Is(err, jetstream.ErrConsumerExists) {
		return qs.usable(ctx, q)
	}
	if err == nil {
		q.durable.made(c)
	}
	return err
}

// enable switches on what natstomp needs of a stream, and has it take more subjects. Every node wants the same of these,
// so updates do not fight.
func (b *Bridge) enable(ctx context.Context, have jetstream.StreamConfig, subjects ...string) error {
	all := slices.Clone(have.Subjects)
	for _, subject := range subjects {
		if !slices.Contains(all, subject) {
			all = append(all, subject)
		}
	}
	if have.AllowMsgTTL && have.AllowAtomicPublish && have.AllowDirect && len(all) == len(have.Subjects) {
		return nil
	}
	have.AllowMsgTTL, have.AllowAtomicPublish, have.AllowDirect, have.Subjects = true, true, true, all
	if _, err := b.cfg.JS.UpdateStream(ctx, have); err != nil {
		return fmt.Errorf("updating stream %s: %w", have.Name, err)
	}
	return nil
}

// usable says whether a durable that was made differently will do, and gives it the queue's policy.
func (qs *queues) usable(ctx context.Context, q *queue) error {
	c, err := qs.b.cfg.JS.Consumer(ctx, q.stream, durableName)
	if err != nil {
		return err
	}
	q.durable.made(c)
	have, want := c.CachedInfo().Config, qs.consumerConfig(q)
	if have.AckPolicy != jetstream.AckExplicitPolicy || have.FilterSubject != "" && have.FilterSubject != q.subject {
		return fmt.Errorf("consumer %s exists and is none of natstomp: it wants explicit acks and the filter %s", durableName, q.subject)
	}
	if have.PriorityPolicy == want.PriorityPolicy {
		return nil
	}
	have.PriorityPolicy, have.PriorityGroups, have.PinnedTTL = want.PriorityPolicy, want.PriorityGroups, want.PinnedTTL
	if _, err := qs.b.cfg.JS.UpdateConsumer(ctx, q.stream, have); err != nil {
		return fmt.Errorf("giving consumer %s the policy of queues.settings: %w", durableName, err)
	}
	return nil
}

// remake makes the durable of a queue that somebody has deleted. Its stream has all messages.
func (qs *queues) remake(ctx context.Context, q *queue) error {
	info, err := qs.b.info(ctx, q.stream)
	if err != nil {
		return err
	}
	qs.b.log.Warn("the durable of a queue was deleted and is made anew", "stream", q.stream)
	q.mark.set(info.State.LastSeq)
	c, err := qs.b.cfg.JS.CreateOrUpdateConsumer(ctx, q.stream, qs.consumerConfig(q))
	if err == nil {
		q.durable.made(c)
	}
	return err
}

// drop forgets the queue of a stream.
func (qs *queues) drop(stream string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	maps.DeleteFunc(qs.known, func(_ string, q *queue) bool { return q.stream == stream })
}

func (q *queue) isReady() bool {
	select {
	case <-q.ready:
		return true
	default:
		return false
	}
}

// isListed says that only the stream of q was seen so far.
func (q *queue) isListed() bool { return q.isReady() && q.listed }

// replicas is how many copies a new stream has; 0 is the server's default.
func (b *Bridge) replicas() int {
	if b.cfg.External == nil {
		return 0
	}
	return b.cfg.External.Replicas()
}

const (
	// shortAttempt bounds each attempt of persist in the first electionTime, later ones by checkTimeout: who is asked while
	// a leader is being elected never answers.
	shortAttempt = 2 * time.Second
	electionTime = 8 * time.Second
)

// persist makes calls of the JetStream API, in f. On an external NATS it tries again, as long as that is away or busy
// with itself, up to the publish timeout.
func (b *Bridge) persist(f func(context.Context) error) error {
	if b.cfg.External == nil {
		ctx, cancel := b.within(apiTimeout)
		defer cancel()
		return f(ctx)
	}
	ctx, cancel := b.within(b.cfg.PublishTimeout)
	defer cancel()
	began := time.Now()
	for pause := retryLeast / 2; ; pause = min(2*pause, retryMost) {
		limit := shortAttempt
		if time.Since(began) > electionTime {
			limit = checkTimeout
		}
		err := b.attempt(ctx, limit, f)
		if err == nil || !awayFor(err) || b.ending() {
			return err
		}
		b.log.Debug("NATS does not do yet what is asked", "err", err)
		b.pause(pause)
		if ctx.Err() != nil {
			b.log.Warn("NATS did not do in time what was asked", "err", err)
			return fmt.Errorf("%w: %s", ErrTimeout, err.Error())
		}
	}
}

// attempt is one call of f. It does not begin while the link is down, and ends early where an answer was lost.
func (b *Bridge) attempt(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	if !b.cfg.Control.IsConnected() {
		return nats.ErrDisconnected
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	generation := b.controlGeneration()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(careInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if b.controlGeneration() != generation || b.ending() {
				cancel() // No answer comes any more.
				return
			}
		}
	}()
	err := f(ctx)
	cancel()
	<-watched
	if err != nil && b.controlGeneration() != generation {
		return nats.ErrDisconnected
	}
	return err
}

// ErrNoRoom says that NATS cannot reserve the storage of one more stream.
var ErrNoRoom = errors.New("no room for another stream")

// Codes by which JetStream refuses a stream for its size.
var noRoomCodes = []jetstream.ErrorCode{10002, 10028, 10047, 10122}

// roomFault is err, with ErrNoRoom where it says that.
func roomFault(err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && (slices.Contains(noRoomCodes, api.ErrorCode) ||
		api.ErrorCode == codeNoPeers && strings.Contains(api.Description, "insufficient storage")) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return err
}

// awayFor says that JetStream may do later what it could not do now.
func awayFor(err error) bool {
	if errors.Is(err, ErrNoRoom) {
		return false
	}
	if isOutage(err) || errors.Is(err, errDeleting) || errors.Is(err, ErrTimeout) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || // The link broke since it was looked at; nothing was sent.
		errors.Is(err, jetstream.ErrNoStreamResponse) {
		return true
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.Code == 503 || api.Code == 429 ||
		slices.Contains([]jetstream.ErrorCode{codeNotLeader, codeNoPeers}, api.ErrorCode))
}

// Away says that something failed because NATS was away, or did not answer.
func Away(err error) bool {
	return awayFor(err) || errors.Is(err, nats.ErrConnectionDraining)
}

// codeNoPeers is JetStream's refusal of a stream that cannot be placed, which a server that comes back may change.
const codeNoPeers = 10005

// relink brings the pulls back after the control link was away.
func (b *Bridge) relink() {
	b.unseen.forget("")
	for _, p := range b.places.all() {
		for _, f := range p.followers() {
			f.relink()
		}
	}
	if b.auditing.CompareAndSwap(false, true) {
		b.launch(func() {
			defer b.auditing.Store(false)
			b.audit()
		})
	}
}
