package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// streamStep does what a native program does with streams and consumers of its own.
func (r *runner) streamStep(ctx context.Context, js jetstream.JetStream, st step) error {
	words := make([]string, len(st.words))
	for i, w := range st.words {
		words[i] = r.expand(w)
	}
	switch words[0] {
	case "count": // Acks without a receipt take their time.
		return poll(func() error { return count(ctx, js, words[1], words[2]) })
	case "gone":
		return poll(func() error { return gone(ctx, js, words[1]) })
	case "waiting":
		return poll(func() error { return waiting(ctx, js, words[1], words[2]) })
	case "stream":
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: words[1], Subjects: words[2:]})
		return err
	case "consumer":
		_, err := js.CreateConsumer(ctx, words[1], jetstream.ConsumerConfig{
			Durable: words[2], FilterSubjects: words[3:], AckPolicy: jetstream.AckExplicitPolicy,
		})
		return err
	case "next":
		st.words = st.words[2:]
		return r.nextOf(ctx, js, words[1], words[2], st)
	case "remove":
		if err := js.DeleteConsumer(ctx, words[1], words[2]); !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
		return js.DeleteStream(ctx, words[1])
	}
	return fmt.Errorf("script: unknown step js %s", words[0])
}

// nextOf takes one message of a consumer, and acks it.
func (r *runner) nextOf(ctx context.Context, js jetstream.JetStream, stream, name string, st step) error {
	consumer, err := js.Consumer(ctx, stream, name)
	if err != nil {
		return err
	}
	m, err := consumer.Next(jetstream.FetchMaxWait(patience))
	if err != nil {
		return fmt.Errorf("pulling from %s of %s: %w", name, stream, err)
	}
	if err := r.matchNATS(st, m.Headers(), m.Data()); err != nil {
		return err
	}
	return m.DoubleAck(ctx)
}
