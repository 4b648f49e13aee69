package bridge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxRelease bounds the places in the stream that release looks at for one durable. What lies further behind comes
	// after the ack wait.
	maxRelease = 100_000
	// listTimeout bounds a list of streams or consumers at a start. The default is for one call, not for many pages.
	listTimeout = time.Minute
)

// release gives back what was held of the stream's durable subscriptions when the server ended: nobody holds it any
// more, and it must not wait for the ack wait, nor come behind newer messages.
func (s *store) release(ctx context.Context, stream jetstream.Stream) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		if info.NumAckPending > 0 && strings.HasPrefix(info.Name, durablePrefix) {
			if err := s.releaseOne(info); err != nil {
				return err
			}
		}
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("listing the durable subscriptions: %w", err)
	}
	return nil
}

// releaseOne sends a NAK for every place that may be pending. JetStream ignores those that are not; of the reply subject
// it looks at the place in the stream only, and that the delivery is not above the last nor at or below the ack floor.
func (s *store) releaseOne(info *jetstream.ConsumerInfo) error {
	first, last := info.AckFloor.Stream+1, info.Delivered.Stream
	if last-first >= maxRelease {
		s.b.log.Warn("what was held comes again after the ack wait", "stream", info.Stream, "consumer", info.Name)
		return nil
	}
	prefix := "$JS.ACK." + info.Stream + "." + info.Name + ".1."
	suffix := "." + strconv.FormatUint(info.Delivered.Consumer, 10) + "." + strconv.FormatInt(info.Created.UnixNano(), 10) + ".0"
	held := make([]Delivery, 0, last-first+1)
	for place := first; place <= last; place++ {
		held = append(held, Delivery{Reply: prefix + strconv.FormatUint(place, 10) + suffix, Sequence: place})
	}
	if err := s.b.GiveBack(held); err != nil {
		return fmt.Errorf("giving back what %s of %s held: %w", info.Name, info.Stream, err)
	}
	return nil
}
