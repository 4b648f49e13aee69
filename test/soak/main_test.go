package soak_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// patience is how long a test waits for what must come. It says nothing about how fast that is, except that it is
// shorter than the ack wait of the queues (30 s): nothing may wait for that.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	// The race detector would let each process sleep for a second at its end.
	if err := os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0")); err != nil {
		panic(err)
	}
	code := m.Run()
	testserver.Clean()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// connect opens a STOMP 1.2 connection that the test's end closes.
func connect(tb testing.TB, srv *testserver.Server, nameValue ...string) *stompclient.Conn {
	tb.Helper()
	c, err := open(srv, nameValue...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// open opens a STOMP 1.2 connection, which the caller closes.
func open(srv *testserver.Server, nameValue ...string) (*stompclient.Conn, error) {
	c, err := stompclient.Dial(srv.TCPAddr)
	if err != nil {
		return nil, err
	}
	if _, err := c.Connect("1.2", nameValue...); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// receipted sends a frame with a receipt and waits for it. The connection must be one on which nothing else comes.
func receipted(c *stompclient.Conn, f stompclient.Frame) error {
	const id = "asked"
	f.Headers = append(f.Headers[:len(f.Headers):len(f.Headers)], stompclient.Header{Name: "receipt", Value: id})
	if err := c.Send(f); err != nil {
		return fmt.Errorf("sending %s: %w", f, err)
	}
	got, err := c.Read(patience)
	if err != nil || got.Command != "RECEIPT" || got.Get("receipt-id") != id {
		return unexpected(got, err, fmt.Sprintf("the receipt of %s", f))
	}
	return nil
}

// ask is receipted for the goroutine of the test.
func ask(tb testing.TB, c *stompclient.Conn, f stompclient.Frame) {
	tb.Helper()
	if err := receipted(c, f); err != nil {
		tb.Fatal(err)
	}
}

func subscribe(id, destination string, nameValue ...string) stompclient.Frame {
	return stompclient.New("SUBSCRIBE", append([]string{"id", id, "destination", destination}, nameValue...)...)
}

func send(destination string, body []byte, nameValue ...string) stompclient.Frame {
	return stompclient.New("SEND", append([]string{"destination", destination}, nameValue...)...).WithBody(body)
}

// message reads one frame that must be a MESSAGE.
func message(c *stompclient.Conn, timeout time.Duration) (stompclient.Frame, error) {
	f, err := c.Read(timeout)
	if err == nil && f.Command != "MESSAGE" {
		err = unexpected(f, nil, "a MESSAGE")
	}
	return f, err
}

// unexpected is the fault of a read that gave another frame than wanted, or none.
func unexpected(f stompclient.Frame, err error, want string) error {
	if err != nil {
		return fmt.Errorf("want %s: %w", want, err)
	}
	return fmt.Errorf("got %s, want %s", f, want)
}

// native is a NATS client of its own, beside natstomp.
func native(tb testing.TB, srv *testserver.Server) (*nats.Conn, jetstream.JetStream) {
	tb.Helper()
	nc, err := nats.Connect(srv.NATSURL, nats.Timeout(patience))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		tb.Fatal(err)
	}
	return nc, js
}

// queueStream is the name of the stream of a queue's channel in dot form, as the documentation has it.
func queueStream(channel string) string {
	name := regexp.MustCompile(`[^A-Za-z0-9_-]`).ReplaceAllString(strings.ReplaceAll(channel, ".", "_"), "-")
	sum := sha256.Sum256([]byte(channel))
	return fmt.Sprintf("Q_%s_%x", name[:min(len(name), 60)], sum[:4])
}

// consumerInfo is the state of the durable of a queue.
func consumerInfo(tb testing.TB, js jetstream.JetStream, channel string) *jetstream.ConsumerInfo {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := js.Consumer(ctx, queueStream(channel), "stomp")
	if err != nil {
		tb.Fatal(err)
	}
	return c.CachedInfo()
}

// until polls a condition that must come true, and fails the test with what it says otherwise.
func until(tb testing.TB, condition func() error) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %v", patience, err)
		}
	}
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
