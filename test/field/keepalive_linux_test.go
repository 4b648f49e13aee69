package field_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestKeepAlive holds what DESIGN section 3 says of every socket: TCP's keep-alive runs on it, the first probe at most
// 15 s away, whether it is a TCP connection or a WebSocket's (research FR-049, FR-141, FR-154: half-open peers are found).
func TestKeepAlive(t *testing.T) {
	srv := testserver.Start(t)
	for name, address := range map[string]string{
		"tcp": srv.TCPAddr, "websocket": strings.TrimSuffix(strings.TrimPrefix(srv.WebSocketURL, "ws://"), "/stomp"),
	} {
		var c *stompclient.Conn
		var err error
		if name == "tcp" {
			c, err = stompclient.Dial(address)
		} else {
			c, err = stompclient.DialWebSocket(srv.WebSocketURL)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Connect("1.2"); err != nil {
			t.Fatal(err)
		}
		rig.Until(t, func() error { return keepsAlive(address) })
		_ = c.Close() // Its end is not part of the test.
	}
}

// keepsAlive looks for the server's end of a connection in the kernel's table: its timer is the keep-alive's.
func keepsAlive(address string) error {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return err
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return err
	}
	const established, keepAliveTimer, ticks = "01", "02", 100 // ticks per second in this file
	err = fmt.Errorf("no connection of port %d in the table", port)
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line) // number, local, remote, state, queues, timer:when
		if len(fields) < 6 || !strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) || fields[3] != established {
			continue
		}
		kind, when, _ := strings.Cut(fields[5], ":")
		left, parseErr := strconv.ParseUint(when, 16, 64)
		if parseErr != nil {
			return parseErr
		}
		if kind == keepAliveTimer && left <= 15*ticks {
			return nil
		}
		err = fmt.Errorf("timer %s in %d ticks, want that of the keep-alive in at most 15 s", kind, left)
	}
	return err
}
