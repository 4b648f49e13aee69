package rig

import (
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/stompclient"
)

// Client is a STOMP client whose faults end the test. It is for the goroutine of the test; others use its Conn.
type Client struct {
	*stompclient.Conn
	tb testing.TB
}

// NewClient returns a client on an open connection, which the test's end closes.
func NewClient(tb testing.TB, conn *stompclient.Conn) *Client {
	tb.Cleanup(func() { _ = conn.Close() }) // It may be closed already.
	return &Client{conn, tb}
}

// Connect opens a session of STOMP 1.2 at an address.
func Connect(tb testing.TB, addr string, nameValue ...string) *Client {
	tb.Helper()
	return ConnectVersion(tb, addr, "1.2", nameValue...)
}

// ConnectVersion is Connect for another accept-version.
func ConnectVersion(tb testing.TB, addr, version string, nameValue ...string) *Client {
	tb.Helper()
	conn, err := stompclient.Dial(addr)
	if err != nil {
		tb.Fatal(err)
	}
	c := NewClient(tb, conn)
	if _, err := c.Connect(version, nameValue...); err != nil {
		tb.Fatal(err)
	}
	return c
}

// Open opens a session of STOMP 1.2 for a goroutine that is not the test's. The caller closes it.
func Open(addr string, nameValue ...string) (*stompclient.Conn, error) {
	c, err := stompclient.Dial(addr)
	if err != nil {
		return nil, err
	}
	if _, err := c.Connect("1.2", nameValue...); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Login sends CONNECT for STOMP 1.2 and reads CONNECTED.
func (c *Client) Login(nameValue ...string) stompclient.Frame {
	c.tb.Helper()
	f, err := c.Connect("1.2", nameValue...)
	if err != nil {
		c.tb.Fatal(err)
	}
	return f
}

// Do sends a frame, as Frame makes it.
func (c *Client) Do(command string, nameValue ...string) {
	c.tb.Helper()
	c.DoFrame(Frame(command, nameValue...))
}

// DoFrame sends a frame.
func (c *Client) DoFrame(f stompclient.Frame) {
	c.tb.Helper()
	if err := c.Send(f); err != nil {
		c.tb.Fatalf("sending %s: %v", f, err)
	}
}

// Octets writes what a client sends as it is.
func (c *Client) Octets(text string) {
	c.tb.Helper()
	if err := c.Write([]byte(text)); err != nil {
		c.tb.Fatal(err)
	}
}

// Ask is Do, and waits for the receipt, which must be what comes next.
func (c *Client) Ask(command string, nameValue ...string) {
	c.tb.Helper()
	c.AskFrame(Frame(command, nameValue...))
}

// AskFrame is DoFrame, and waits for the receipt, which must be what comes next.
func (c *Client) AskFrame(f stompclient.Frame) {
	c.tb.Helper()
	if err := c.Confirm(f, Patience); err != nil {
		c.tb.Fatal(err)
	}
}

// Publish sends a message.
func (c *Client) Publish(destination, body string, nameValue ...string) {
	c.tb.Helper()
	c.DoFrame(Send(destination, body, nameValue...))
}

// Subscribe subscribes and waits for the receipt.
func (c *Client) Subscribe(id, destination string, nameValue ...string) {
	c.tb.Helper()
	c.AskFrame(Subscribe(id, destination, nameValue...))
}

// Any reads a frame.
func (c *Client) Any() stompclient.Frame {
	c.tb.Helper()
	f, err := c.Read(Patience)
	if err != nil {
		c.tb.Fatal(err)
	}
	return f
}

// Next reads a frame, which must be of that command.
func (c *Client) Next(command string) stompclient.Frame {
	c.tb.Helper()
	f, err := c.Expect(command, Patience)
	if err != nil {
		c.tb.Fatal(err)
	}
	return f
}

// Receipt reads the RECEIPT of that id.
func (c *Client) Receipt(id string) {
	c.tb.Helper()
	if got := c.Next("RECEIPT").Get("receipt-id"); got != id {
		c.tb.Fatalf("got a RECEIPT for %q, want %q", got, id)
	}
}

// Message reads a MESSAGE, which must have that body.
func (c *Client) Message(body string) stompclient.Frame {
	c.tb.Helper()
	f := c.Next("MESSAGE")
	if string(f.Body) != body {
		c.tb.Fatalf("got %s, want the message %q", f, body)
	}
	return f
}

// Refused reads an ERROR that tells the text, and the end of the connection.
func (c *Client) Refused(text string) stompclient.Frame {
	c.tb.Helper()
	f := c.Next("ERROR")
	if got := f.Get("message"); !strings.Contains(got, text) {
		c.tb.Fatalf("the ERROR says %q, want %q", got, text)
	}
	if err := c.ExpectClose(Patience); err != nil {
		c.tb.Fatal(err)
	}
	return f
}

// Denied reads the ERROR that refuses an action on a destination for want of a right, and the end of the connection.
func (c *Client) Denied(action, destination string) {
	c.tb.Helper()
	c.Refused("access denied: no right to " + action + " " + destination)
}

// Alive says that the session goes on and that nothing has come.
func (c *Client) Alive() {
	c.tb.Helper()
	c.Ask("BEGIN", "transaction", "alive")
	c.Ask("ABORT", "transaction", "alive")
}
