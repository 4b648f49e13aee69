package bridge_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen at once; only a failing one waits that long.
const patience = 20 * time.Second

// rig is a bridge on a real server of its own.
type rig struct {
	*bridge.Bridge
	t      *testing.T
	nc     *nats.Conn // a native client
	js     jetstream.JetStream
	router *router.Router
}

func newRig(t *testing.T, change func(*bridge.Config)) *rig {
	t.Helper()
	return newNode(t, startNATS(t), change)
}

// newNode is one of several bridges on one server.
func newNode(t *testing.T, srv *server.Server, change func(*bridge.Config)) *rig {
	t.Helper()
	conn := func() *nats.Conn {
		nc, err := nats.Connect("", nats.InProcessServer(srv))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	g := &rig{t: t, nc: conn()}
	var err error
	if g.js, err = jetstream.New(g.nc); err != nil {
		t.Fatal(err)
	}
	control := conn()
	js, err := jetstream.New(control)
	if err != nil {
		t.Fatal(err)
	}
	cfg := bridge.Config{
		Data: conn(), Control: control, Wide: conn(), JS: js,
		Logger:         slog.New(slog.DiscardHandler),
		PublishTimeout: patience,
		Queues:         bridge.QueueConfig{DedupWindow: time.Minute, Storage: jetstream.FileStorage},
		Store:          bridge.StoreConfig{Subjects: "stomp.store.>"},
	}
	if change != nil {
		change(&cfg)
	}
	if cfg.Router == nil {
		if cfg.Router, err = router.New(router.DefaultConfig()); err != nil {
			t.Fatal(err)
		}
	}
	g.router = cfg.Router
	g.Bridge = bridge.New(cfg)
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		g.Stop(ctx)
	})
	return g
}

// startNATS is a server in this process only, with JetStream.
func startNATS(t *testing.T) *server.Server {
	t.Helper()
	return runNATS(t, server.Options{DontListen: true, MaxPayload: 2 << 20})
}

// runNATS starts a server with JetStream until the test's end.
func runNATS(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.JetStream, o.StoreDir, o.NoSigs, o.NoLog = true, t.TempDir(), true, true
	srv, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(patience) {
		t.Fatal("NATS is not ready")
	}
	return srv
}

func (g *rig) route(destination string, use router.Use) router.Route {
	g.t.Helper()
	r, err := g.router.Parse(destination, use)
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

// outcome waits for a done function's result.
func outcome(t *testing.T, what string, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatalf("%s: no answer", what)
		return nil
	}
}

// send stores one message and waits for the PubAck.
func (g *rig) send(destination, body string, headers ...frame.Header) error {
	g.t.Helper()
	c := make(chan error, 1)
	g.SendQueue(g.message(destination, body, bridge.SendOptions{}, headers...), func(err error) { c <- err })
	return outcome(g.t, "SendQueue", c)
}

func (g *rig) message(destination, body string, o bridge.SendOptions, headers ...frame.Header) bridge.Send {
	g.t.Helper()
	return bridge.Send{Route: g.route(destination, router.Send), Headers: headers, Body: []byte(body), Options: o}
}

func header(name, value string) frame.Header {
	return frame.Header{Name: []byte(name), Value: []byte(value)}
}
