package field_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestReportHeartbeatsEndWithTheirConnection holds FR-044, FR-054 and FR-056: whenever a connection with heart-beats
// breaks, also before it is one, in the middle of CONNECT or before CONNECTED is read, nothing of it goes on running.
func TestReportHeartbeatsEndWithTheirConnection(t *testing.T) {
	cfg := connector.DefaultConfig()
	cfg.Listeners.TCP.Address, cfg.Listeners.WS.Address, cfg.Listeners.Admin.Address = "127.0.0.1:0", "127.0.0.1:0", "off"
	cfg.NATS.Embedded.StoreDir, cfg.NATS.Embedded.Listen, cfg.NATS.Embedded.Durability = t.TempDir(), "off", "os"
	cfg.Limits.Heartbeat = 100 * time.Millisecond
	server, err := connector.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{}
	for _, l := range server.Status().Listeners {
		addresses[l.Name] = l.Address
	}
	ends := []func(*stompclient.Conn) error{
		func(*stompclient.Conn) error { return nil },
		func(c *stompclient.Conn) error { return c.Write([]byte("CONNECT\nheart-beat:100,")) },
		func(c *stompclient.Conn) error {
			return c.Write([]byte("CONNECT\naccept-version:1.2\nheart-beat:100,100\n\n\x00"))
		},
		func(c *stompclient.Conn) error {
			_, err := c.Connect("1.2", "heart-beat", "100,100")
			return err
		},
		func(c *stompclient.Conn) error {
			_, err := c.Connect("1.1", "heart-beat", "0,100")
			return errors.Join(err, c.Send(stompclient.New("SUBSCRIBE", "id", "1", "destination", "/queue/gone")), c.ReadBeat(rig.Patience))
		},
	}
	round := func(count int) {
		var wg sync.WaitGroup
		for i := range count {
			wg.Go(func() {
				if err := comeAndGo(addresses, i, ends[i/4%len(ends)]); err != nil {
					t.Errorf("connection %d: %v", i, err)
				}
			})
		}
		wg.Wait()
	}
	round(40)
	rig.Until(t, func() error { return connections(server, 0) })
	before := runtime.NumGoroutine()
	for range 5 {
		round(40)
	}
	rig.Until(t, func() error {
		// What the test itself left, such as timers of sockets, is in both figures.
		if got := runtime.NumGoroutine(); got > before {
			return fmt.Errorf("%d goroutines, want %d as before; %w", got, before, connections(server, 0))
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

func connections(server *connector.Server, want int) error {
	if got := len(server.Connections()); got != want {
		return fmt.Errorf("%d connections, want %d", got, want)
	}
	return nil
}

// comeAndGo opens a connection, does what is to be done, and breaks it in one of two ways.
func comeAndGo(addresses map[string]string, i int, do func(*stompclient.Conn) error) error {
	var c *stompclient.Conn
	var err error
	if i%2 == 0 {
		c, err = stompclient.Dial(addresses["tcp"])
	} else {
		c, err = stompclient.DialWebSocket("ws://" + addresses["ws"] + "/stomp")
	}
	if err != nil {
		return err
	}
	err = do(c)
	if i%4 < 2 {
		return errors.Join(err, c.Close())
	}
	return errors.Join(err, c.Reset())
}

// TestReportPendingFallsToZero holds FR-077: when a client that holds messages dies, JetStream has them back at once,
// also where there is nobody to take them; a native consumer gets them next.
func TestReportPendingFallsToZero(t *testing.T) {
	srv := testserver.Start(t)
	_, js := rig.Native(t, srv.NATSURL)
	c := rig.Connect(t, srv.TCPAddr)
	c.Ask("SUBSCRIBE", "id", "s", "destination", "/queue/pending", "ack", "client")
	const held = 10
	for n := range held {
		c.DoFrame(stompclient.New("SEND", "destination", "/queue/pending").WithBody([]byte(strconv.Itoa(n))))
	}
	for range held {
		c.Next("MESSAGE")
	}
	durable, err := theStream(t, js, "Q_pending_").Consumer(t.Context(), "stomp")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := durable.Info(t.Context()); err != nil || info.NumAckPending != held {
		t.Fatalf("got %+v, %v, want %d messages held", info, err, held)
	}
	began := time.Now()
	if err := c.Reset(); err != nil {
		t.Fatal(err)
	}
	for n := range held {
		m, err := durable.Next(jetstream.FetchMaxWait(rig.Patience))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(m.Data()), strconv.Itoa(n); got != want {
			t.Errorf("got message %s, want %s", got, want)
		}
		if err := m.DoubleAck(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the messages were back after %v, want that at once and not after the ack wait", took)
	}
	if info, err := durable.Info(t.Context()); err != nil || info.NumAckPending != 0 {
		t.Errorf("got %+v, %v, want nothing held", info, err)
	}
}

// TestReportClientThatComesBack holds Q17: clients that come back at once with the frame that was refused, again and again,
// many at a time, leave nothing behind, and a topic of others goes on meanwhile.
func TestReportClientThatComesBack(t *testing.T) {
	srv := testserver.Start(t)
	other := rig.Connect(t, srv.TCPAddr)
	other.Ask("SUBSCRIBE", "id", "1", "destination", "/topic/other")
	var loops sync.WaitGroup
	for range 8 {
		loops.Go(func() {
			for range 50 {
				if err := refusedOnce(srv); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 200 {
		other.DoFrame(stompclient.New("SEND", "destination", "/topic/other"))
		other.Next("MESSAGE")
	}
	loops.Wait()
	other.Ask("SEND", "destination", "/topic/other/end")
	if got, want := strings.Count(srv.Log(), "client.error"), 400; got > want {
		t.Errorf("%d lines of errors in the log, want at most one for each of %d ERRORs", got, want)
	}
}

// refusedOnce connects, sends what is refused, and reads the ERROR and the end.
func refusedOnce(srv *testserver.Server) error {
	nc, err := net.Dial("tcp", srv.TCPAddr)
	if err != nil {
		return err
	}
	c := stompclient.NewConn(nc)
	defer c.Close()
	if _, err := c.Connect("1.2"); err != nil {
		return err
	}
	if err := c.Send(stompclient.New("SUBSCRIBE", "id", "sub-0", "destination", "/exchange/secret")); err != nil {
		return err
	}
	f, err := c.Read(rig.Patience)
	if err == nil && f.Command != "ERROR" {
		err = fmt.Errorf("got %s, want an ERROR", f)
	}
	if err != nil {
		return err
	}
	return c.ExpectClose(rig.Patience)
}
