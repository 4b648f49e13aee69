package connector_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// TestDisconnectIsNoReset: octets behind DISCONNECT, such as a heart-beat, that the server has not read when it closes
// would make the peer lose the RECEIPT.
func TestDisconnectIsNoReset(t *testing.T) {
	g := start(t, nil)
	for i := range 50 {
		c := g.dial()
		c.subscribe("/queue/bye", "auto")
		farewell := stompclient.New("DISCONNECT", "receipt", "bye").Encode("1.2")
		if i%2 == 0 {
			// More than the server reads at once: there is always something left.
			farewell = append(farewell, bytes.Repeat([]byte("\n"), 256<<10)...)
		}
		if err := c.Write(farewell); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			if err := c.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
		}
		c.Receipt("bye")
		if f, err := c.Read(rig.Patience); !errors.Is(err, io.EOF) {
			t.Fatalf("session %d: %s, %v behind the RECEIPT, want %v", i, f, err, io.EOF)
		}
		_ = c.Close() // It is over.
	}
}

// TestHalfClosedClientGetsItsAnswers: one that has nothing more to say, such as a shell's nc, still reads.
func TestHalfClosedClientGetsItsAnswers(t *testing.T) {
	g := start(t, nil)
	for i := range 20 {
		c := g.Come(rig.Visit{})
		var all []byte
		for _, f := range []stompclient.Frame{
			stompclient.New("CONNECT", "accept-version", "1.2", "host", "x"),
			stompclient.New("SUBSCRIBE", "id", "1", "destination", "/queue/other", "ack", "client", "receipt", "1"),
			stompclient.New("SEND", "destination", "/queue/half", "receipt", "2").WithBody([]byte(fmt.Sprint(i))),
			stompclient.New("SEND", "destination", "/topic/half", "receipt", "3"),
			stompclient.New("UNSUBSCRIBE", "id", "1", "receipt", "4"),
		} {
			all = append(all, f.Encode("1.2")...)
		}
		if err := c.Write(all); err != nil {
			t.Fatal(err)
		}
		if err := c.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		c.Next("CONNECTED")
		for _, id := range []string{"1", "2", "3", "4"} {
			c.Receipt(id)
		}
		if f, err := c.Read(rig.Patience); !errors.Is(err, io.EOF) {
			t.Errorf("client %d: %s, %v behind the RECEIPTs, want %v", i, f, err, io.EOF)
		}
		_ = c.Close() // It is over.
	}
	d := g.dial()
	d.subscribe("/queue/half", "auto")
	d.inOrder(0, 19)
}
