package connector_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

func TestProgramAndClientOnOneTopic(t *testing.T) {
	s := server(t, embedded(t))
	c := stompClient(t, s)
	if err := c.Send(stompclient.New("SUBSCRIBE", "id", "1", "destination", "/topic/a.b", "receipt", "r")); err != nil {
		t.Fatal(err)
	}
	if f, err := c.Read(rig.Patience); err != nil || f.Get("receipt-id") != "r" {
		t.Fatalf("got %v, %v", f, err)
	}
	got := make(received, 10)
	l := subscribe(t, s, "/topic/a/>", nil, got.handle)

	odd := "line\nand:colon\\\r"
	publish(t, s, "/topic/a/b", map[string]string{"odd": odd}, "from Go")
	f, err := c.Read(rig.Patience)
	if err != nil || string(f.Body) != "from Go" || f.Get("odd") != odd || f.Get("destination") != "/topic/a.b" {
		t.Errorf("the client got %v, %v", f, err)
	}
	if m := got.next(t); string(m.Body) != "from Go" || m.Destination != "/topic/a/b" || len(m.Headers) != 1 || m.Headers["odd"] != odd {
		t.Errorf("the program got %+v", m)
	}
	if err := c.Send(stompclient.New("SEND", "destination", "/topic/a/c").WithBody([]byte("from the client"))); err != nil {
		t.Fatal(err)
	}
	if m := got.next(t); string(m.Body) != "from the client" || m.Destination != "/topic/a/c" {
		t.Errorf("the program got %+v", m)
	}
	if err := l.Close(); err != nil || l.Err() != nil {
		t.Errorf("Close: %v, Err: %v", err, l.Err())
	}
	publish(t, s, "/topic/a/b", nil, "")
	got.none(t)
	if err := l.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestQueueOfAProgram(t *testing.T) {
	s := server(t, embedded(t))
	var calls atomic.Int32
	got := make(received, 10)
	l := subscribe(t, s, "/queue/orders", nil, func(_ context.Context, m connector.Message) error {
		got <- m
		switch calls.Add(1) {
		case 1:
			return errors.New("not now")
		case 2:
			panic("nor now")
		}
		return nil
	})
	publish(t, s, "/queue/orders", map[string]string{"table": "7"}, "coffee")
	for n := range 3 {
		m := got.next(t)
		if string(m.Body) != "coffee" || m.Headers["table"] != "7" {
			t.Errorf("got %+v", m)
		}
		if want := map[bool]string{false: "", true: "true"}[n > 0]; m.Headers["redelivered"] != want {
			t.Errorf("redelivered of delivery %d: got %q, want %q", n+1, m.Headers["redelivered"], want)
		}
		if want := fmt.Sprint(n + 1); m.Headers["x-delivery-count"] != want {
			t.Errorf("x-delivery-count: got %s, want %s", m.Headers["x-delivery-count"], want)
		}
	}
	got.none(t)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestStoredTopicOfAProgram replays, and goes on where a durable name was.
func TestStoredTopicOfAProgram(t *testing.T) {
	s := server(t, embedded(t))
	for n := range 3 {
		publish(t, s, "/topic-store/news", nil, fmt.Sprint(n))
	}
	got := make(received, 10)
	all := subscribe(t, s, "/topic-store/news", map[string]string{"x-start": "first"}, got.handle)
	for n := range 3 {
		if m := got.next(t); string(m.Body) != fmt.Sprint(n) || m.Headers["x-seq"] != fmt.Sprint(n+1) {
			t.Errorf("got %+v, want %d", m, n)
		}
	}
	if err := all.Close(); err != nil {
		t.Error(err)
	}
	durable := map[string]string{"durable-subscription-name": "reader", "x-start": "first"}
	var calls atomic.Int32
	first := subscribe(t, s, "/topic-store/news", durable, func(ctx context.Context, m connector.Message) error {
		if calls.Add(1) == 2 {
			return errors.New("not this one")
		}
		return got.handle(ctx, m)
	})
	if m := got.next(t); string(m.Body) != "0" {
		t.Errorf("got %+v", m)
	}
	if m := got.next(t); string(m.Body) != "2" {
		t.Errorf("got %+v", m)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	subscribe(t, s, "/topic-store/news", durable, got.handle)
	if m := got.next(t); string(m.Body) != "1" || m.Headers["redelivered"] != "true" {
		t.Errorf("got %+v", m)
	}
	got.none(t)
}

func TestRefusals(t *testing.T) {
	s := server(t, embedded(t))
	nothing := func(context.Context, connector.Message) error { return nil }
	for _, tt := range []struct {
		name string
		do   func() error
		want string
		told bool // A *ClientError.
	}{
		{"destination", func() error { return s.Publish(t.Context(), "/topic//x", nil, nil) }, "/topic//x", true},
		{"wildcard", func() error { return s.Publish(t.Context(), "/topic/*", nil, nil) }, "wildcard", true},
		{"receipt", func() error { return s.Publish(t.Context(), "/topic/x", map[string]string{"receipt": "1"}, nil) }, "header receipt cannot be given", false},
		{"NUL", func() error { return s.Publish(t.Context(), "/topic/x", map[string]string{"a": "\x00"}, nil) }, `header "a"`, false},
		{"too large", func() error { return s.Publish(t.Context(), "/topic/x", nil, make([]byte, 5<<20)) }, "limits.body", true},
		{"selector", func() error {
			_, err := s.Subscribe(t.Context(), "/topic/x", map[string]string{"selector": "a=1"}, nothing)
			return err
		}, "selector", true},
		{"id", func() error {
			_, err := s.Subscribe(t.Context(), "/topic/x", map[string]string{"id": "a"}, nothing)
			return err
		}, "header id cannot be given", false},
		{"queue wildcard", func() error {
			_, err := s.Subscribe(t.Context(), "/queue/>", nil, nothing)
			return err
		}, "/queue/>", true},
	} {
		err := tt.do()
		var told *connector.ClientError
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, &told) != tt.told {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Publish(ended, "/topic/x", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: got %v", err)
	}
	if _, err := s.Subscribe(ended, "/topic/x", nil, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: got %v", err)
	}
	publish(t, s, "/topic/x", nil, "and the server goes on")
}

// TestSlowHandler shows that a handler may take longer than a socket that does not read.
func TestSlowHandler(t *testing.T) {
	c := embedded(t)
	c.Limits.WriteStall = 20 * time.Millisecond
	s := server(t, c)
	got := make(received, 100)
	subscribe(t, s, "/topic/x", nil, func(ctx context.Context, m connector.Message) error {
		if string(m.Body) == "0" {
			time.Sleep(10 * c.Limits.WriteStall) // The time is what is tested.
		}
		return got.handle(ctx, m)
	})
	for n := range 100 {
		publish(t, s, "/topic/x", nil, fmt.Sprint(n))
	}
	for n := range 100 {
		if m := got.next(t); string(m.Body) != fmt.Sprint(n) {
			t.Fatalf("got %q, want %d", m.Body, n)
		}
	}
}

// TestSlowConsumerIsTold overflows a listener of a topic.
func TestSlowConsumerIsTold(t *testing.T) {
	c := embedded(t)
	c.Limits.Body, c.Limits.PendingBytes = 64<<10, 256<<10
	s := server(t, c)
	release := make(chan struct{})
	l := subscribe(t, s, "/topic/x", nil, func(context.Context, connector.Message) error {
		<-release
		return nil
	})
	body := strings.Repeat("x", 60<<10)
	for range 100 { // Many more than it takes: each is on NATS when Publish returns, but may be on its way to the listener.
		publish(t, s, "/topic/x", nil, body)
	}
	close(release)
	<-l.Done()
	var told *connector.ClientError
	if err := l.Err(); !errors.As(err, &told) || told.Text != "slow consumer" {
		t.Errorf("Err: got %v", err)
	}
	if err := l.Close(); !errors.As(err, &told) {
		t.Errorf("Close: got %v", err)
	}
}

// TestLocalSessionsTakeNoSlot publishes and subscribes while clients have all slots, also faster than clients may.
func TestLocalSessionsTakeNoSlot(t *testing.T) {
	c := embedded(t)
	c.Limits.Connections, c.Limits.FramesPerSecond = 1, 2
	s := server(t, c)
	stompClient(t, s)
	got := make(received, 100)
	subscribe(t, s, "/topic/x", nil, got.handle)
	for range 50 {
		publish(t, s, "/topic/x", nil, "")
	}
	for range 50 {
		got.next(t)
	}
}

func TestPublishFromMany(t *testing.T) {
	s := server(t, embedded(t))
	var seen sync.Map
	var count atomic.Int32
	all := make(chan struct{})
	const publishers, each = 32, 50
	for range 3 {
		subscribe(t, s, "/queue/many", nil, func(_ context.Context, m connector.Message) error {
			if _, twice := seen.Swap(string(m.Body), true); twice {
				t.Errorf("%s came twice", m.Body)
			}
			if count.Add(1) == publishers*each {
				close(all)
			}
			return nil
		})
	}
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for n := range each {
				if err := s.Publish(t.Context(), "/queue/many", nil, fmt.Appendf(nil, "%d-%d", p, n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case <-all:
	case <-time.After(rig.Patience):
		t.Errorf("got %d messages, want %d", count.Load(), publishers*each)
	}
}
