package soak_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

func TestMain(m *testing.M) { rig.Main(m, nil) }

// unexpected is the fault of a read that gave another frame than wanted, or none.
func unexpected(f stompclient.Frame, err error, want string) error {
	if err != nil {
		return fmt.Errorf("want %s: %w", want, err)
	}
	return fmt.Errorf("got %s, want %s", f, want)
}

// consumerInfo is the state of the durable of a queue.
func consumerInfo(tb testing.TB, js jetstream.JetStream, channel string) *jetstream.ConsumerInfo {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()
	c, err := js.Consumer(ctx, rig.QueueStream(channel), "stomp")
	if err != nil {
		tb.Fatal(err)
	}
	return c.CachedInfo()
}

// crew runs the goroutines of a test and gathers their faults.
type crew struct {
	wg sync.WaitGroup

	mu   sync.Mutex
	errs []error // guarded by mu
}

// launch runs f on a goroutine.
func (c *crew) launch(f func() error) {
	c.wg.Go(func() {
		if err := f(); err != nil {
			c.mu.Lock()
			c.errs = append(c.errs, err)
			c.mu.Unlock()
		}
	})
}

// wait waits for all goroutines and returns at most ten of their faults.
func (c *crew) wait() error {
	c.wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := c.errs
	if more := len(errs) - 10; more > 0 {
		errs = append(errs[:10:10], fmt.Errorf("and %d more faults", more))
	}
	return errors.Join(errs...)
}
