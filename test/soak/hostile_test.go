package soak_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestHostileBytes sends what no client should: each case must be answered by an ERROR that names the fault, and a
// close, and must have no effect. Others are served meanwhile, and every slot of limits.connections comes back.
func TestHostileBytes(t *testing.T) {
	const slots = 100
	srv := testserver.Start(t, "--limits-connections", fmt.Sprint(slots))
	nc, js := rig.Native(t, srv.NATSURL)
	effects, err := nc.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	healthy := newEcho(t, srv)
	idle := healthy.measure(t, func() { quiet(t, healthy, 200) })
	all := attacks()
	healthy.serves(t, fmt.Sprintf("%d attacks", len(all)), idle, func() {
		// More at once than is polite, but within the slots.
		next := atomic.Int64{}
		var team crew
		for range 40 {
			team.launch(func() error {
				for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
					if err := all[i].run(srv); err != nil {
						return fmt.Errorf("%s %s: %w", all[i].version, all[i].name, err)
					}
				}
				return nil
			})
		}
		if err := team.wait(); err != nil {
			t.Error(err)
		}
		wantSlots(t, srv, slots, 1)
	})
	if _, err := js.Stream(context.Background(), rig.QueueStream("side.effect")); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a SEND behind a refused CONNECT made a queue (%v)", err)
	}
	wantNoEffects(t, effects)
}

// run sends the octets and reads the answer.
func (a attack) run(srv *testserver.Server) error {
	c, err := stompclient.Dial(srv.TCPAddr)
	if err != nil {
		return err
	}
	var writer crew
	defer writer.wait() // Whether all could be written is up to the server.
	defer c.Close()
	if a.version != "" {
		if _, err := c.Connect(a.version); err != nil {
			return err
		}
	}
	writer.launch(func() error {
		err := c.Write([]byte(a.octets))
		if err == nil && a.leaves {
			err = c.NetConn().(*net.TCPConn).CloseWrite()
		}
		return err
	})
	if a.want != "" {
		f, err := c.Read(rig.Patience)
		if err != nil {
			return fmt.Errorf("want an ERROR: %w", err)
		}
		if f.Command != "ERROR" || !strings.Contains(f.Get("message"), a.want) {
			return fmt.Errorf("got %s, want an ERROR with %q", f, a.want)
		}
		if got := string(f.Body); got != f.Get("message") {
			return fmt.Errorf("the ERROR's body is %q, its message %q", got, f.Get("message"))
		}
	}
	return c.ExpectClose(rig.Patience)
}

// wantNoEffects looks at all that NATS saw.
func wantNoEffects(t *testing.T, effects *nats.Subscription) {
	t.Helper()
	for {
		m, err := effects.NextMsg(100 * time.Millisecond)
		if err != nil {
			return // All seen: what is here was sent before.
		}
		first, _, _ := strings.Cut(m.Subject, ".")
		if first != "echo" && !strings.HasPrefix(first, "$") && !strings.HasPrefix(first, "_INBOX") {
			t.Errorf("NATS got a message on %q", m.Subject)
		}
		if strings.HasPrefix(m.Subject, "$JS.API.STREAM.DELETE") || strings.HasPrefix(m.Subject, "$SYS") || strings.HasPrefix(m.Subject, "$KV") {
			t.Errorf("NATS got a message on %q", m.Subject)
		}
	}
}

// wantSlots opens connections until no more are admitted: with those that are open already there must be so many.
func wantSlots(t *testing.T, srv *testserver.Server, slots, taken int) {
	t.Helper()
	var conns []*stompclient.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for n := taken; n < slots; n++ {
		rig.Until(t, func() error {
			c, err := rig.Open(srv.TCPAddr)
			if err != nil {
				return fmt.Errorf("with %d of %d connections open: %w", n, slots, err)
			}
			conns = append(conns, c)
			return nil
		})
	}
	c, err := stompclient.Dial(srv.TCPAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if f, err := c.Connect("1.2"); err == nil || f.Get("message") != "connection limit reached" {
		t.Errorf("connection %d: got %s (%v), want the ERROR connection limit reached", slots+1, f, err)
	}
}

// echo is a healthy client that sends to itself all the time.
type echo struct {
	conn *rig.Client
	stop chan struct{}
	took []time.Duration
	sent atomic.Int64
}

func newEcho(t *testing.T, srv *testserver.Server) *echo {
	t.Helper()
	e := &echo{conn: rig.Connect(t, srv.TCPAddr)}
	e.conn.AskFrame(rig.Subscribe("e", "/topic/echo"))
	return e
}

// measure runs while and returns the 99th percentile of the echo's time meanwhile.
func (e *echo) measure(t *testing.T, while func()) time.Duration {
	t.Helper()
	e.took, e.stop = nil, make(chan struct{})
	var team crew
	team.launch(e.run)
	while()
	close(e.stop)
	if err := team.wait(); err != nil {
		t.Fatalf("a healthy client: %v", err)
	}
	return quantile(e.took, 0.99)
}

// serves wants the echo during an attack to take not much longer than idle, in one of three attempts: an attack that
// keeps others from being served does so each time, other work on the machine does not.
func (e *echo) serves(t *testing.T, name string, idle time.Duration, attack func()) {
	t.Helper()
	for attempt := 1; !t.Failed(); attempt++ {
		loaded := e.measure(t, attack)
		t.Logf("%s: a healthy client's echo at p99 took %v before, %v meanwhile", name, idle, loaded)
		if loaded <= idle+allowance {
			return
		}
		if attempt == 3 {
			t.Errorf("%s: a healthy client's echo took %v at p99, want at most %v more than the %v before", name, loaded, allowance, idle)
		}
	}
}

func (e *echo) run() error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		start := time.Now()
		if err := e.conn.Send(rig.Send("/topic/echo", []byte("echo"))); err != nil {
			return err
		}
		if _, err := e.conn.Expect("MESSAGE", rig.Patience); err != nil {
			return err
		}
		e.took = append(e.took, time.Since(start))
		e.sent.Add(1)
		select {
		case <-e.stop:
			return nil
		case <-tick.C:
		}
	}
}

// quiet waits for so many echoes.
func quiet(t *testing.T, e *echo, count int64) {
	t.Helper()
	before := e.sent.Load()
	rig.Until(t, func() error {
		if n := e.sent.Load() - before; n < count {
			return fmt.Errorf("%d echoes, want %d", n, count)
		}
		return nil
	})
}
