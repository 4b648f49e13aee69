package connector_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// node is a server with one TCP listener.
type node struct {
	*rig.Server
	t *testing.T
}

func start(t *testing.T, change func(*connector.Config)) *node {
	t.Helper()
	return &node{rig.Start(t, change), t}
}

// client is a STOMP client whose faults end the test.
type client struct {
	*rig.Client
	t *testing.T
}

// dial connects a client that speaks 1.2.
func (g *node) dial() *client {
	g.t.Helper()
	return g.dialVersion("1.2")
}

func (g *node) dialVersion(version string) *client {
	g.t.Helper()
	return &client{rig.ConnectVersion(g.t, g.At("tcp"), version), g.t}
}

// dialUnbuffered connects a client through memory: what it does not read, the server has not written.
func (g *node) dialUnbuffered() *client {
	g.t.Helper()
	ours, theirs := net.Pipe()
	g.Admit(theirs)
	c := rig.NewClient(g.t, stompclient.NewConn(ours))
	c.Login()
	return &client{c, g.t}
}

// send sends a message.
func (c *client) send(destination string, body []byte, nameValue ...string) {
	c.t.Helper()
	c.DoFrame(rig.Send(destination, body, nameValue...))
}

// store sends messages to a queue and returns when all are stored.
func (c *client) store(destination string, bodies ...[]byte) {
	c.t.Helper()
	for i, body := range bodies {
		if i == len(bodies)-1 {
			c.send(destination, body, "receipt", "stored") // Receipts come in order: it speaks for all.
			c.Receipt("stored")
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
	c.Do("SUBSCRIBE", append(nameValue, "id", id, "destination", destination, "ack", ack, "receipt", "sub-"+id)...)
	c.Receipt("sub-" + id)
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
		if got := number(c.t, c.Next("MESSAGE")); got != want {
			c.t.Fatalf("got message %d, want %d of %d to %d", got, want, first, last)
		}
	}
}

// nextBut is the next frame that is not of that command.
func (c *client) nextBut(command string) stompclient.Frame {
	c.t.Helper()
	for {
		f, err := c.Read(rig.Patience)
		if err != nil {
			c.t.Fatal(err)
		}
		if f.Command != command {
			return f
		}
	}
}
