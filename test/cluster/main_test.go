package cluster_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// patience is how long a test waits for what must come. It is longer than the ack wait of the queues (30 s): what was
// on its way to a link that broke comes again after that.
const patience = 45 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for outages far more than they compute.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "10")
	}
	code := m.Run()
	testserver.Clean()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// until polls a condition that must come true, and fails the test with what it says otherwise.
func until(tb testing.TB, condition func() error) {
	tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %v", patience, err)
		}
	}
}

// connect opens a STOMP 1.2 connection that the test's end closes.
func connect(tb testing.TB, srv *testserver.Server, nameValue ...string) *stompclient.Conn {
	tb.Helper()
	c, err := open(srv, nameValue...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// open opens a STOMP 1.2 connection, which the caller closes.
func open(srv *testserver.Server, nameValue ...string) (*stompclient.Conn, error) {
	c, err := stompclient.Dial(srv.TCPAddr)
	if err != nil {
		return nil, err
	}
	if _, err := c.Connect("1.2", nameValue...); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// ask sends a frame with a receipt and waits for it. Nothing else may come on the connection.
func ask(tb testing.TB, c *stompclient.Conn, f stompclient.Frame) {
	tb.Helper()
	f.Headers = append(f.Headers[:len(f.Headers):len(f.Headers)], stompclient.Header{Name: "receipt", Value: "asked"})
	if err := c.Send(f); err != nil {
		tb.Fatal(err)
	}
	if got := read(tb, c); got.Command != "RECEIPT" || got.Get("receipt-id") != "asked" {
		tb.Fatalf("got %s, want the receipt of %s", got, f)
	}
}

func read(tb testing.TB, c *stompclient.Conn) stompclient.Frame {
	tb.Helper()
	f, err := c.Read(patience)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func subscribe(id, destination string, nameValue ...string) stompclient.Frame {
	return stompclient.New("SUBSCRIBE", append([]string{"id", id, "destination", destination}, nameValue...)...)
}

func send(destination, body string, nameValue ...string) stompclient.Frame {
	return stompclient.New("SEND", append([]string{"destination", destination}, nameValue...)...).WithBody([]byte(body))
}

// queueStream is the name of the stream of a queue's channel in dot form, as the documentation has it.
func queueStream(channel string) string {
	name := regexp.MustCompile(`[^A-Za-z0-9_-]`).ReplaceAllString(strings.ReplaceAll(channel, ".", "_"), "-")
	sum := sha256.Sum256([]byte(channel))
	return fmt.Sprintf("Q_%s_%x", name[:min(len(name), 60)], sum[:4])
}
