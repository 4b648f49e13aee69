package broker_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/bridge/broker"
)

// logText gathers a log.
type logText struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// eventually polls a condition that must come true.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-tick.C {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// threeServers are servers that know nothing of each other, with JetStream, by address.
func threeServers(t *testing.T) (servers []*server.Server, list string) {
	t.Helper()
	for range 3 {
		srv, address := serveNATS(t, "")
		servers = append(servers, srv)
		list += "," + address
	}
	return servers, list[1:]
}

// together says whether all connections of b are up and on one server.
func together(b *broker.Broker) error {
	if err := b.Ready(); err != nil {
		return err
	}
	for _, nc := range []*nats.Conn{b.Control, b.Wide} {
		if nc.ConnectedServerId() != b.Data.ConnectedServerId() {
			return errors.New("the connections are on different servers")
		}
	}
	return nil
}

func TestConnectionsMoveTogether(t *testing.T) {
	servers, list := threeServers(t)
	b, err := external(t, func(c *broker.Config) { c.URL = list })
	if err != nil {
		t.Fatal(err)
	}
	if err := together(b); err != nil {
		t.Fatal(err)
	}
	for range 2 { // Two of the three go away, one after the other.
		home := b.Data.ConnectedServerId()
		for _, srv := range servers {
			if srv.ID() == home {
				srv.Shutdown()
			}
		}
		eventually(t, func() error {
			if b.Data.ConnectedServerId() == home {
				return errors.New("still there")
			}
			return together(b)
		})
	}
}

// TestOneConnectionBreaks has one connection of the three end: it comes back to the server on which the others are.
func TestOneConnectionBreaks(t *testing.T) {
	_, list := threeServers(t)
	b, err := external(t, func(c *broker.Config) { c.URL = list })
	if err != nil {
		t.Fatal(err)
	}
	home := b.Data.ConnectedServerId()
	for i, nc := range []*nats.Conn{b.Data, b.Control, b.Wide} {
		role := broker.Role(i)
		before := b.Link(role).Generation()
		if err := nc.ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			if b.Link(role).Generation() == before {
				return errors.New("not reconnected")
			}
			return together(b)
		})
		if got := b.Data.ConnectedServerId(); got != home {
			t.Errorf("%s: all moved to %s, want them to stay on %s", role, got, home)
		}
	}
}

// TestLameDuck has the server announce that it will stop: all connections move on.
func TestLameDuck(t *testing.T) {
	servers, list := threeServers(t)
	b, err := external(t, func(c *broker.Config) { c.URL = list })
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan broker.Role, 16)
	b.OnLink(func(r broker.Role) { told <- r })
	home := b.Data.ConnectedServerId()
	for _, srv := range servers {
		if srv.ID() == home {
			go srv.LameDuckShutdown()
		}
	}
	eventually(t, func() error {
		if b.Data.ConnectedServerId() == home {
			return errors.New("still there")
		}
		return together(b)
	})
	seen := map[broker.Role]bool{}
	for len(seen) < 3 {
		select {
		case r := <-told:
			seen[r] = true
		case <-time.After(20 * time.Second):
			t.Fatalf("told of %v, want all three", seen)
		}
	}
}
