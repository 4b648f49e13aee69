package connector_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/stompclient"
)

// patience is how long a test waits for what must happen at once; only a failing one waits that long.
const patience = 20 * time.Second

// rig is a server on an embedded NATS of its own, with one TCP listener.
type rig struct {
	*connector.Server
	t    *testing.T
	addr string
	log  *logText
	stop func() // ends the server; only the first call does
}

// config is the rig's configuration on the given store.
func config(store string) connector.Config {
	cfg := connector.DefaultConfig()
	cfg.Listeners.TCP.Address = "127.0.0.1:0"
	cfg.Listeners.WS.Address = "off"
	cfg.Listeners.Admin.Address = "off"
	cfg.NATS.Embedded.Listen = "off"
	cfg.NATS.Embedded.StoreDir = store
	cfg.NATS.Embedded.Durability = "os"
	return cfg
}

func newRig(t *testing.T, change func(*connector.Config)) *rig {
	t.Helper()
	return newRigOn(t, t.TempDir(), change)
}

func newRigOn(t *testing.T, store string, change func(*connector.Config)) *rig {
	t.Helper()
	g := &rig{t: t, log: &logText{}}
	cfg := config(store)
	cfg.Logger = slog.New(slog.NewTextHandler(g.log, nil))
	if change != nil {
		change(&cfg)
	}
	var err error
	if g.Server, err = connector.New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	t.Cleanup(g.stop)
	g.addr = g.Status().Listeners[0].Address
	return g
}

// logText is what a server logs.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// until waits for something that the server does by itself and that shows nowhere else.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// client is a STOMP client whose faults end the test.
type client struct {
	*stompclient.Conn
	t *testing.T
}

// dial connects a client that speaks 1.2.
func (g *rig) dial() *client {
	g.t.Helper()
	return g.dialVersion("1.2")
}

func (g *rig) dialVersion(version string) *client {
	g.t.Helper()
	conn, err := stompclient.Dial(g.addr)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.connect(conn, version)
}

// dialUnbuffered connects a client through memory: what it does not read, the server has not written.
func (g *rig) dialUnbuffered() *client {
	g.t.Helper()
	ours, theirs := net.Pipe()
	g.Admit(theirs)
	return g.connect(stompclient.NewConn(ours), "1.2")
}

func (g *rig) connect(conn *stompclient.Conn, version string) *client {
	g.t.Helper()
	g.t.Cleanup(func() { _ = conn.Close() }) // It may be closed already.
	if _, err := conn.Connect(version); err != nil {
		g.t.Fatal(err)
	}
	return &client{conn, g.t}
}

// do sends a frame without body.
func (c *client) do(command string, nameValue ...string) {
	c.t.Helper()
	c.doFrame(stompclient.New(command, nameValue...))
}

func (c *client) doFrame(f stompclient.Frame) {
	c.t.Helper()
	if err := c.Send(f); err != nil {
		c.t.Fatalf("sending %s: %v", f, err)
	}
}

// send sends a message.
func (c *client) send(destination string, body []byte, nameValue ...string) {
	c.t.Helper()
	c.doFrame(stompclient.New("SEND", append(nameValue, "destination", destination)...).WithBody(body))
}

// store sends messages to a queue and returns when all are stored.
func (c *client) store(destination string, bodies ...[]byte) {
	c.t.Helper()
	for i, body := range bodies {
		if i == len(bodies)-1 {
			c.send(destination, body, "receipt", "stored") // Receipts come in order: it speaks for all.
			c.receipt("stored")
			return
		}
		c.send(destination, body)
	}
}

// subscribe subscribes as id 1 and waits for the RECEIPT.
func (c *client) subscribe(destination, ack string, nameValue ...string) {
	c.t.Helper()
	c.subscribeAs("1", destination, ack, nameValue...)
}

func (c *client) subscribeAs(id, destination, ack string, nameValue ...string) {
	c.t.Helper()
	c.do("SUBSCRIBE", append(nameValue, "id", id, "destination", destination, "ack", ack, "receipt", "sub-"+id)...)
	c.receipt("sub-" + id)
}

// next is the next frame, which must be of that command.
func (c *client) next(command string) stompclient.Frame {
	c.t.Helper()
	f, err := c.Read(patience)
	if err != nil {
		c.t.Fatalf("waiting for a %s: %v", command, err)
	}
	if f.Command != command {
		c.t.Fatalf("got %s, want a %s", f, command)
	}
	return f
}

// receipt reads the RECEIPT of that id.
func (c *client) receipt(id string) {
	c.t.Helper()
	if got := c.next("RECEIPT").Get("receipt-id"); got != id {
		c.t.Fatalf("got a RECEIPT for %q, want %q", got, id)
	}
}

// refused reads an ERROR that tells the text, and the end of the connection.
func (c *client) refused(text string) stompclient.Frame {
	c.t.Helper()
	f := c.next("ERROR")
	if got := f.Get("message"); !strings.Contains(got, text) {
		c.t.Errorf("the ERROR says %q, want %q", got, text)
	}
	if err := c.ExpectClose(patience); err != nil {
		c.t.Error(err)
	}
	_ = c.Close() // The server has closed.
	return f
}

// numbered are bodies that begin with their numbers, of about so many octets each.
func numbered(messages, size int) [][]byte {
	bodies := make([][]byte, messages)
	for i := range bodies {
		head := fmt.Sprint(i, " ")
		bodies[i] = append([]byte(head), make([]byte, max(size-len(head), 0))...)
	}
	return bodies
}

// number is the number of such a body.
func number(t *testing.T, f stompclient.Frame) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(string(f.Body[:min(len(f.Body), 16)]), &n); err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	return n
}

// inOrder reads the messages from first up to last and asserts that nothing is missing, twice or out of order.
func (c *client) inOrder(first, last int) {
	c.t.Helper()
	for want := first; want <= last; want++ {
		if got := number(c.t, c.next("MESSAGE")); got != want {
			c.t.Fatalf("got message %d, want %d of %d to %d", got, want, first, last)
		}
	}
}

// nextBut is the next frame that is not of that command.
func (c *client) nextBut(command string) stompclient.Frame {
	c.t.Helper()
	for {
		f, err := c.Read(patience)
		if err != nil {
			c.t.Fatal(err)
		}
		if f.Command != command {
			return f
		}
	}
}
