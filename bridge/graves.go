package bridge

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// graveStream keeps, on an external NATS, which queues natstomp has deleted there because nobody used them: a node
	// that was away then must not take such a queue for lost.
	graveStream = "natstomp_deleted"
	// graveRoot begins its subjects: then the queue's stream. The body says when that was created, in ns since the epoch.
	graveRoot = "_natstomp.deleted."
	// graveAge and graveBytes bound what is kept.
	graveAge   = 30 * 24 * time.Hour
	graveBytes = 16 << 20
)

// graves are the queues that some node has deleted.
type graves struct {
	b    *Bridge
	made atomic.Bool // the stream exists
}

// open makes the stream at its first use.
func (g *graves) open(ctx context.Context) error {
	if g.b.cfg.External == nil || g.made.Load() {
		return nil
	}
	err := g.create(ctx)
	g.made.Store(err == nil)
	return err
}

// dig notes, before it is done, that the stream of a queue is deleted.
func (g *graves) dig(ctx context.Context, stream *jetstream.StreamInfo) error {
	m := &nats.Msg{
		Subject: graveRoot + stream.Config.Name,
		Data:    strconv.AppendInt(nil, stream.Created.UnixNano(), 10),
	}
	answer, err := g.b.cfg.Data.RequestMsgWithContext(ctx, m)
	if err == nil {
		err = pubAck(answer)
	}
	if err != nil {
		g.made.Store(false) // It is looked for again.
		return fmt.Errorf("storing in %s: %w", graveStream, err)
	}
	return nil
}

// fill takes the note back: the stream was not deleted.
func (g *graves) fill(ctx context.Context, stream string) error {
	if g.b.cfg.External == nil {
		return nil
	}
	s, err := g.b.cfg.JS.Stream(ctx, graveStream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(graveRoot+stream))
	}
	return err
}

func (g *graves) create(ctx context.Context) error {
	_, err := g.b.cfg.JS.CreateStream(ctx, jetstream.StreamConfig{
		Name:              graveStream,
		Description:       "natstomp: queues that were deleted for not being used",
		Subjects:          []string{graveRoot + "*"},
		Retention:         jetstream.LimitsPolicy,
		Storage:           g.b.cfg.Queues.Storage,
		Replicas:          g.b.replicas(),
		Discard:           jetstream.DiscardOld,
		MaxMsgsPerSubject: 1,
		MaxAge:            graveAge,
		MaxBytes:          graveBytes,
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return fmt.Errorf("creating stream %s: %w", graveStream, err)
	}
	return nil
}

// has says whether natstomp has deleted the stream that this node knew for a queue, or one that came after it, which it
// would not have made otherwise.
func (g *graves) has(ctx context.Context, q *queue) (bool, error) {
	if g.b.cfg.External == nil {
		return false, nil
	}
	s, err := g.b.cfg.JS.Stream(ctx, graveStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m, err := s.GetLastMsgForSubject(ctx, graveRoot+q.stream)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	created, err := strconv.ParseInt(string(m.Data), 10, 64)
	return err == nil && created >= q.created.Load(), err
}
