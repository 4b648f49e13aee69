package connector_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
)

// TestMessagesHeldAtShutdownAreNotHandedRound: what one session gives back must not go to another that ends next, and
// so on through all of them.
func TestMessagesHeldAtShutdownAreNotHandedRound(t *testing.T) {
	const holders, each = 5, 10
	store := t.TempDir()
	g := start(t, on(store))
	p := g.dial()
	var all []*client
	for range holders {
		c := g.dial()
		c.subscribe("/queue/held", "client", "prefetch-count", "10")
		p.store("/queue/held", numbered(each, 0)...)
		for range each {
			c.Next("MESSAGE")
		}
		all = append(all, c)
	}
	for range holders { // These have room.
		c := g.dial()
		c.subscribe("/queue/held", "client")
		all = append(all, c)
	}
	p.store("/queue/other", numbered(1, 0)...)
	stopped := make(chan struct{})
	go func() { defer close(stopped); g.Stop() }()
	for _, c := range append(all, p) {
		c.Refused("server shutting down") // Nothing else comes before.
	}
	<-stopped

	g = start(t, on(store))
	c := g.dial()
	c.subscribe("/queue/held", "client")
	for range holders {
		for want := range each {
			f := c.Next("MESSAGE")
			if got := number(t, f); got != want {
				t.Fatalf("got message %d, want %d", got, want)
			}
			if f.Get("redelivered") != "true" || f.Get("x-delivery-count") != "1" {
				t.Errorf("%s: want redelivered:true and x-delivery-count:1", f)
			}
		}
	}
	c.subscribeAs("2", "/queue/other", "client")
	f := c.Next("MESSAGE")
	if v, has := f.Lookup("redelivered"); has {
		t.Errorf("redelivered:%s on a message that nobody has had", v)
	}
}

// TestFailedStartKeepsTheMarks: what may have been delivered before must be flagged at the first start that succeeds,
// and what was not must not, however many fail in between.
func TestFailedStartKeepsTheMarks(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	failures := []struct {
		name  string
		start func(t *testing.T, cfg connector.Config) error
	}{
		{"port in use", func(t *testing.T, cfg connector.Config) error {
			cfg.Listeners.TCP.Address = taken.Addr().String()
			return startOnly(t.Context(), t, cfg)
		}},
		{"marks cannot be saved", func(t *testing.T, cfg connector.Config) error {
			obstacle := filepath.Join(cfg.NATS.Embedded.StoreDir, marksFile+".new")
			if err := os.Mkdir(obstacle, 0o700); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(obstacle)
			return startOnly(t.Context(), t, cfg)
		}},
		{"given up", func(t *testing.T, cfg connector.Config) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return startOnly(ctx, t, cfg)
		}},
	}
	for _, tt := range []struct {
		name  string
		leave func(t *testing.T, store string)
		want  [2]bool // redelivered on the message that was delivered, on the one that was not
	}{
		{"clean stop", func(*testing.T, string) {}, [2]bool{true, false}},
		{"crash", crashed, [2]bool{true, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := t.TempDir()
			g := start(t, on(store))
			c := g.dial()
			c.store("/queue/marks", numbered(2, 0)...)
			c.subscribe("/queue/marks", "client", "prefetch-count", "1")
			c.inOrder(0, 0)
			g.Stop()
			tt.leave(t, store)
			for _, failure := range failures {
				if err := failure.start(t, rig.Config(store)); err == nil {
					t.Fatalf("%s: the start did not fail", failure.name)
				}
			}
			g = start(t, on(store))
			d := g.dial()
			d.subscribe("/queue/marks", "client")
			for i, want := range tt.want {
				f := d.Next("MESSAGE")
				if got := f.Get("redelivered") == "true"; number(t, f) != i || got != want {
					t.Errorf("%s: want message %d with redelivered %t", f, i, want)
				}
			}
		})
	}
}

// on has a server use that store.
func on(store string) func(*connector.Config) {
	return func(c *connector.Config) { c.NATS.Embedded.StoreDir = store }
}

// marksFile is where a store keeps what was delivered.
const marksFile = "natstomp-marks.json"

// crashed makes a store look as a killed process leaves it.
func crashed(t *testing.T, store string) {
	t.Helper()
	path := filepath.Join(store, marksFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dirty := strings.Replace(string(text), `"clean":true`, `"clean":false`, 1)
	if dirty == string(text) {
		t.Fatalf("the stop was not clean: %s", text)
	}
	if err := os.WriteFile(path, []byte(dirty), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startOnly starts a server that must not come up.
func startOnly(ctx context.Context, t *testing.T, cfg connector.Config) error {
	t.Helper()
	s, err := connector.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err = s.Start(ctx); err == nil {
		_ = s.Shutdown(ctx) // The test has failed already.
	}
	return err
}
