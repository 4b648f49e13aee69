package connector_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge/broker"
	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
)

// TestCloseFinishesWhatIsHandled closes a listener in the middle of a message: that one is acknowledged, the next ones
// are another consumer's at once.
func TestCloseFinishesWhatIsHandled(t *testing.T) {
	s := server(t, embedded(t))
	for n := range 5 {
		publish(t, s, "/queue/work", nil, fmt.Sprint(n))
	}
	begun, finish := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	l := subscribe(t, s, "/queue/work", nil, func(context.Context, connector.Message) error {
		calls.Add(1)
		close(begun)
		<-finish
		return nil
	})
	<-begun
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	select {
	case err := <-closed:
		t.Fatalf("Close returned while the handler ran: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	got := make(received, 10)
	other := subscribe(t, s, "/queue/work", nil, got.handle)
	for n := 1; n < 5; n++ {
		if m := got.next(t); string(m.Body) != fmt.Sprint(n) {
			t.Errorf("got %q, want %d", m.Body, n)
		}
	}
	got.none(t)
	if n := calls.Load(); n != 1 {
		t.Errorf("the closed handler was called %d times, want once", n)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

func TestStopped(t *testing.T) {
	s, err := connector.New(embedded(t))
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		if err := s.Publish(t.Context(), "/topic/x", nil, nil); !errors.Is(err, connector.ErrStopped) {
			t.Errorf("Publish %s: got %v", when, err)
		}
		if _, err := s.Subscribe(t.Context(), "/topic/x", nil, nil); !errors.Is(err, connector.ErrStopped) {
			t.Errorf("Subscribe %s: got %v", when, err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(l); !errors.Is(err, connector.ErrStopped) {
			t.Errorf("Serve %s: got %v", when, err)
		}
		if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
			t.Errorf("%s the listener is open", when)
		}
		if s.Ready() == nil {
			t.Errorf("%s the server is ready", when)
		}
	}
	check("before Start")
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	publish(t, s, "/topic/x", nil, "")
	rig.Shutdown(t, s)
	check("after Shutdown")
}

// TestShutdownLetsHandlersFinish stops a server in the middle of a message.
func TestShutdownLetsHandlersFinish(t *testing.T) {
	c := embedded(t)
	c.NATS.Embedded.Durability = broker.DurabilityOS
	s := server(t, c)
	publish(t, s, "/queue/work", nil, "first")
	publish(t, s, "/queue/work", nil, "second")
	begun, finish := make(chan struct{}), make(chan struct{})
	l := subscribe(t, s, "/queue/work", nil, func(context.Context, connector.Message) error {
		close(begun)
		<-finish
		return nil
	})
	<-begun
	stopped := make(chan struct{})
	go func() { defer close(stopped); rig.Shutdown(t, s) }()
	select {
	case <-stopped:
		t.Fatal("Shutdown did not wait for the handler")
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	<-stopped
	<-l.Done()
	if err := l.Err(); err != nil {
		t.Errorf("Err: got %v", err)
	}
	again := server(t, c)
	got := make(received, 10)
	subscribe(t, again, "/queue/work", nil, got.handle)
	if m := got.next(t); string(m.Body) != "second" {
		t.Errorf("after the restart: got %q", m.Body)
	}
	got.none(t)
}

// TestShutdownCutsStuckHandlers does not wait for ever.
func TestShutdownCutsStuckHandlers(t *testing.T) {
	s := server(t, embedded(t))
	begun := make(chan struct{})
	l := subscribe(t, s, "/topic/x", nil, func(ctx context.Context, _ connector.Message) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	publish(t, s, "/topic/x", nil, "")
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: got %v", err)
	}
	<-l.Done()
	if err := l.Err(); !errors.Is(err, connector.ErrStopped) {
		t.Errorf("Err: got %v", err)
	}
}
