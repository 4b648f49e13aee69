package bridge_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/bridge/broker"
	"github.com/natstomp/natstomp/router"
)

// link is the way to a server on TCP, which a test breaks.
type link struct {
	l    net.Listener
	to   string
	deaf atomic.Bool // what the server says is lost
	wg   sync.WaitGroup

	mu    sync.Mutex
	down  bool                  // guarded by mu
	conns map[net.Conn]struct{} // guarded by mu
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{l: l, to: to, conns: map[net.Conn]struct{}{}}
	k.wg.Go(k.accept)
	t.Cleanup(func() {
		_ = l.Close()
		k.breakDown()
		k.wg.Wait()
	})
	return k
}

func (k *link) accept() {
	for {
		c, err := k.l.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", k.to)
		if err != nil || !k.add(c, s) {
			_ = c.Close()
			continue
		}
		k.wg.Go(func() {
			_, _ = io.Copy(s, c) // Ends with either side.
			_ = s.Close()
		})
		k.wg.Go(func() {
			_, _ = io.Copy(ear{k, c}, s) // See above.
			_ = c.Close()
		})
	}
}

// ear hears what the server says.
type ear struct {
	k *link
	c net.Conn
}

func (e ear) Write(p []byte) (int, error) {
	if e.k.deaf.Load() {
		return len(p), nil
	}
	return e.c.Write(p)
}

func (k *link) add(conns ...net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range conns {
		if k.down {
			_ = c.Close()
			continue
		}
		k.conns[c] = struct{}{}
	}
	return !k.down
}

// breakDown ends all connections and lets none be made until restore.
func (k *link) breakDown() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.down = true
	for c := range k.conns {
		_ = c.Close()
	}
	clear(k.conns)
}

func (k *link) restore() {
	k.deaf.Store(false)
	k.mu.Lock()
	k.down = false
	k.mu.Unlock()
}

// remote is a bridge on an external NATS with a link of its own.
type remote struct {
	*rig
	link   *link
	broker *broker.Broker
}

// externalServer is a server on TCP with JetStream.
func externalServer(t *testing.T) *server.Server {
	t.Helper()
	return runNATS(t, server.Options{Host: "127.0.0.1", Port: -1})
}

// newRemote starts a bridge on srv.
func newRemote(t *testing.T, srv *server.Server, change func(*bridge.Config)) *remote {
	t.Helper()
	n := &remote{rig: &rig{t: t}, link: newLink(t, srv.Addr().String())}
	var err error
	if n.router, err = router.New(router.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	if n.nc, err = nats.Connect(srv.ClientURL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.nc.Close)
	if n.js, err = jetstream.New(n.nc); err != nil {
		t.Fatal(err)
	}
	cfg := broker.DefaultConfig()
	cfg.URL = n.link.l.Addr().String()
	b, err := broker.Start(t.Context(), cfg, broker.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	n.broker = b
	n.run(change)
	return n
}

// run starts the bridge, which ends with the test.
func (n *remote) run(change func(*bridge.Config)) {
	n.t.Helper()
	b := n.broker
	cfg := bridge.Config{
		Data: b.Data, Control: b.Control, Wide: b.Wide, JS: b.JS, Router: n.router,
		Logger:         slog.New(slog.DiscardHandler),
		PublishTimeout: patience,
		RequestTimeout: 5 * time.Second,
		Queues:         bridge.QueueConfig{DedupWindow: time.Minute, Settings: size(1 << 20)},
		External: &bridge.External{
			Replicas: b.Replicas, Data: b.Link(broker.DataRole), Control: b.Link(broker.ControlRole),
			Denied: func(bool, bool, string, time.Time) bool { return false },
		},
	}
	if change != nil {
		change(&cfg)
	}
	n.Bridge = bridge.New(cfg)
	if err := n.Start(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
	b.OnLink(func(r broker.Role) { n.LinkUp(r == broker.ControlRole) })
	for _, join := range []func(context.Context) error{b.Join, n.Join} {
		if err := join(n.t.Context()); err != nil {
			n.t.Fatal(err)
		}
	}
	n.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		n.Stop(ctx)
		if err := b.Stop(patience, broker.Marks{}); err != nil {
			n.t.Error(err)
		}
	})
}

// noticed waits until all connections know that the link is down.
func (n *remote) noticed() {
	n.t.Helper()
	eventually(n.t, "connected", func() (got, want any) {
		return n.broker.Data.IsConnected() || n.broker.Control.IsConnected() || n.broker.Wide.IsConnected(), false
	})
}

// begin stores messages i to j-1 and does not wait.
func (n *remote) begin(destination string, i, j int, results chan<- error) {
	n.t.Helper()
	for ; i < j; i++ {
		n.SendQueue(n.message(destination, strconv.Itoa(i), bridge.SendOptions{}), func(err error) { results <- err })
	}
}

// all waits for so many results, none of which may be an error.
func all(t *testing.T, results <-chan error, count int) {
	t.Helper()
	for range count {
		if err := outcome(t, "a message", results); err != nil {
			t.Fatal(err)
		}
	}
}

// bodies are the messages of a stream, in order.
func (n *remote) bodies(stream string) (list []string) {
	n.t.Helper()
	s, err := n.js.Stream(n.t.Context(), stream)
	if err != nil {
		n.t.Fatal(err)
	}
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		m, err := s.GetMsg(n.t.Context(), seq)
		if err != nil {
			n.t.Fatal(err)
		}
		list = append(list, string(m.Data))
	}
	return list
}

// inOrder fails the test unless the stream has each of 0 to count-1 once, in order.
func (n *remote) inOrder(stream string, count int) {
	n.t.Helper()
	got := n.bodies(stream)
	if len(got) != count {
		n.t.Errorf("%d messages stored, want %d", len(got), count)
	}
	for i, body := range got {
		if body != strconv.Itoa(i) {
			n.t.Fatalf("message %d is %s", i, body)
		}
	}
}

// stored waits until the stream has so many messages.
func (n *remote) stored(stream string, count uint64) {
	n.t.Helper()
	eventually(n.t, "messages stored", func() (got, want any) {
		s, err := n.js.Stream(n.t.Context(), stream)
		if err != nil {
			return err, count
		}
		return s.CachedInfo().State.Msgs, count
	})
}
