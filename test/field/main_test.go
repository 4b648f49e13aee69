package field_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	testserver.Clean()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// native is a NATS client beside the server.
func native(t *testing.T, srv *testserver.Server) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(srv.NATSURL, nats.Timeout(patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// connect opens a STOMP connection over TCP that the test's end closes.
func connect(t *testing.T, srv *testserver.Server, version string, nameValue ...string) *stompclient.Conn {
	t.Helper()
	c, err := stompclient.Dial(srv.TCPAddr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // It may be closed already.
	if _, err := c.Connect(version, nameValue...); err != nil {
		t.Fatal(err)
	}
	return c
}

// send sends a frame.
func send(t *testing.T, c *stompclient.Conn, f stompclient.Frame) {
	t.Helper()
	if err := c.Send(f); err != nil {
		t.Fatalf("%s: %v", f, err)
	}
}

// next reads a frame of that command.
func next(t *testing.T, c *stompclient.Conn, command string) stompclient.Frame {
	t.Helper()
	f, err := c.Read(patience)
	if err != nil || f.Command != command {
		t.Fatalf("got %s, %v, want %s", f, err, command)
	}
	return f
}

// ask sends a frame with a receipt, which must come next.
func ask(t *testing.T, c *stompclient.Conn, command string, nameValue ...string) {
	t.Helper()
	send(t, c, stompclient.New(command, append(nameValue, "receipt", "asked")...))
	next(t, c, "RECEIPT")
}

// until waits for what the server does by itself.
func until(t *testing.T, holds func() error) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
