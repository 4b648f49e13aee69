package soak_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	floodConns = 200
	// floodMemory is what the process may grow by while so many connections state lengths and send headers without an
	// end. Were a stated length believed, even only up to limits.body, it would be 800 MiB.
	floodMemory = 160 << 20
)

// TestStatedLengths has 200 connections state lengths that nobody sends, and headers without an end: what the process
// holds grows by what was sent, others are served, and all is given back (FR-134).
func TestStatedLengths(t *testing.T) {
	srv := testserver.Start(t, "--limits-connections", fmt.Sprint(floodConns+1), "--limits-connect-timeout", "60s")
	healthy := newEcho(t, srv)
	idle := healthy.measure(t, func() { quiet(t, healthy, 200) })
	before := srv.Descriptors(t)
	for _, flood := range []struct {
		name, version, octets string
		open                  bool // The server waits for the rest.
	}{
		{"4 GiB", "1.2", "SEND\ndestination:/topic/flood\ncontent-length:4294967296\n\nx", false},
		{"the largest body", "1.2", "SEND\ndestination:/topic/flood\ncontent-length:4194304\n\n" + strings.Repeat("x", 1<<10), true},
		{"the largest body to a queue", "1.2", "SEND\ndestination:/queue/flood\ncontent-length:4194304\n\nx", true},
		{"a header block before CONNECT", "", "CONNECT\n" + strings.Repeat("a:"+strings.Repeat("x", 7<<10)+"\n", 4), true},
		{"an endless header before CONNECT", "", "CONNECT\na:" + strings.Repeat("x", 128<<10), false},
		{"a header block", "1.2", "SEND\n" + strings.Repeat("a:"+strings.Repeat("x", 7<<10)+"\n", 16), true},
		{"endless headers", "1.2", "SEND\n" + strings.Repeat("a:"+strings.Repeat("x", 1<<10)+"\n", 128), false},
	} {
		base := resetPeak(t, srv)
		healthy.serves(t, flood.name, idle, func() {
			wantDescriptors(t, srv, before) // All slots are free.
			conns := floodWith(t, srv, flood.version, []byte(flood.octets))
			if flood.open {
				wantOpen(t, conns)
			} else {
				wantRefused(t, conns)
			}
			for _, c := range conns {
				_ = c.Close()
			}
			wantSlots(t, srv, floodConns+1, 1)
		})
		grown := srv.Memory(t, "VmHWM") - base
		t.Logf("%s: %d MiB more at the peak", flood.name, grown>>20)
		if grown > floodMemory {
			t.Errorf("%s: the process grew by %d MiB, want at most %d MiB", flood.name, grown>>20, floodMemory>>20)
		}
	}
	wantDescriptors(t, srv, before)
}

// resetPeak makes VmHWM begin anew and returns the memory that is in use.
func resetPeak(t *testing.T, srv *testserver.Server) int64 {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", srv.PID()), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return srv.Memory(t, "VmRSS")
}

// floodWith opens connections and sends the octets on each, as far as the server takes them.
func floodWith(t *testing.T, srv *testserver.Server, version string, octets []byte) []*stompclient.Conn {
	t.Helper()
	conns := make([]*stompclient.Conn, floodConns)
	var team crew
	for i := range conns {
		c, err := stompclient.Dial(srv.TCPAddr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		conns[i] = c
		team.launch(func() error {
			if version != "" {
				if _, err := c.Connect(version); err != nil {
					return err
				}
			}
			_ = c.Write(octets) // What the server refuses it need not take.
			return nil
		})
	}
	if err := team.wait(); err != nil {
		t.Fatal(err)
	}
	return conns
}

// wantRefused reads an ERROR and the end on each connection.
func wantRefused(t *testing.T, conns []*stompclient.Conn) {
	t.Helper()
	for i, c := range conns {
		f, err := c.Read(rig.Patience)
		if err != nil || f.Command != "ERROR" || !strings.Contains(f.Get("message"), "limits.") {
			t.Fatalf("connection %d: got %s (%v), want an ERROR that names a limit", i, f, err)
		}
		if err := c.ExpectClose(rig.Patience); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
}

// wantOpen wants the server to wait for the rest on each connection: a last octet is taken, and nothing was answered.
func wantOpen(t *testing.T, conns []*stompclient.Conn) {
	t.Helper()
	for i, c := range conns {
		if err := c.Write([]byte("x")); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		if f, err := c.Read(time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d: got %s (%v), want silence", i, f, err)
		}
	}
}

// wantDescriptors waits until the process has no more open files than before.
func wantDescriptors(t *testing.T, srv *testserver.Server, most int) {
	t.Helper()
	rig.Until(t, func() error {
		if n := srv.Descriptors(t); n > most {
			return fmt.Errorf("%d descriptors, %d before", n, most)
		}
		return nil
	})
}

// TestSlowloris has 2,000 sockets send a CONNECT octet by octet, or nothing at all: each is closed when
// limits.connect_timeout has passed, those that began are told why, others are served, and all is given back.
func TestSlowloris(t *testing.T) {
	const (
		sockets = 2_000
		timeout = 2 * time.Second
		// late is how much later than the timeout a socket may be closed, on a busy machine.
		late = 8 * time.Second
	)
	srv := testserver.Start(t, "--limits-connections", fmt.Sprint(sockets+1), "--limits-connect-timeout", timeout.String())
	healthy := newEcho(t, srv)
	idle := healthy.measure(t, func() { quiet(t, healthy, 200) })
	before := srv.Descriptors(t)
	healthy.serves(t, "slowloris", idle, func() {
		results := make([]time.Duration, sockets)
		var team crew
		for i := range sockets {
			opened := time.Now()
			c, err := stompclient.Dial(srv.TCPAddr)
			if err != nil {
				t.Fatal(err)
			}
			talks := i%5 != 0
			team.launch(func() error {
				defer c.Close()
				if talks {
					team.launch(func() error { return drip(c) })
				}
				err := wantConnectTimeout(c, talks)
				results[i] = time.Since(opened)
				return err
			})
		}
		if err := team.wait(); err != nil {
			t.Error(err)
		}
		first, last := quantile(results, 0), quantile(results, 1)
		t.Logf("%d sockets lasted from %v to %v", sockets, first, last)
		if first < timeout {
			t.Errorf("a socket was closed after %v, before limits.connect_timeout %v", first, timeout)
		}
		if last > timeout+late {
			t.Errorf("a socket was closed after %v, want limits.connect_timeout %v and at most %v more", last, timeout, late)
		}
		wantSlots(t, srv, sockets+1, 1)
	})
	wantDescriptors(t, srv, before)
}

// drip sends a CONNECT that never ends, until the connection does.
func drip(c *stompclient.Conn) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for _, octet := range []byte("CONNECT\naccept-version:1.2\n") {
		if err := c.Write([]byte{octet}); err != nil {
			return nil //nolint:nilerr // Closed, as it should be.
		}
		<-tick.C
	}
	return nil
}

// wantConnectTimeout reads the end of a connection on which CONNECT never came.
func wantConnectTimeout(c *stompclient.Conn, talks bool) error {
	if talks {
		f, err := c.Read(rig.Patience)
		if err != nil || f.Command != "ERROR" || !strings.Contains(f.Get("message"), "limits.connect_timeout") {
			return unexpected(f, err, "the ERROR limits.connect_timeout")
		}
	}
	return c.ExpectClose(rig.Patience)
}
