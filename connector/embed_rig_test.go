package connector_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge/broker"
	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// embedded is the configuration of a server without listeners, whose NATS keeps everything in memory.
func embedded(t *testing.T) connector.Config {
	t.Helper()
	c := rig.Config(t.TempDir())
	c.Listeners.TCP.Address = "off"
	c.NATS.Embedded.Durability = broker.DurabilityMemory
	c.Queues.RedeliveryDelay = 10 * time.Millisecond
	return c
}

// server is started for the test, and stopped with it unless the test does that.
func server(t *testing.T, c connector.Config) *connector.Server {
	t.Helper()
	s, err := connector.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.Ready() == nil {
			rig.Shutdown(t, s)
		}
	})
	return s
}

// stompClient is a client of s on a listener that the program brings.
func stompClient(t *testing.T, s *connector.Server) *stompclient.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, connector.ErrStopped) && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	c, err := stompclient.Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Connect("1.2", "login", "ann"); err != nil {
		t.Fatal(err)
	}
	return c
}

// received collects what a listener gets.
type received chan connector.Message

func (r received) handle(_ context.Context, m connector.Message) error {
	r <- m
	return nil
}

func (r received) next(t *testing.T) connector.Message {
	t.Helper()
	select {
	case m := <-r:
		return m
	case <-time.After(rig.Patience):
		t.Fatal("no message came")
		return connector.Message{}
	}
}

func (r received) none(t *testing.T) {
	t.Helper()
	select {
	case m := <-r:
		t.Errorf("got %+v, which must not come", m)
	case <-time.After(100 * time.Millisecond):
	}
}

func subscribe(t *testing.T, s *connector.Server, destination string, headers map[string]string, handle connector.Handler) *connector.Subscription {
	t.Helper()
	l, err := s.Subscribe(t.Context(), destination, headers, handle)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func publish(t *testing.T, s *connector.Server, destination string, headers map[string]string, body string) {
	t.Helper()
	if err := s.Publish(t.Context(), destination, headers, []byte(body)); err != nil {
		t.Fatal(err)
	}
}
