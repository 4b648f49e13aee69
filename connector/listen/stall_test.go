package listen_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/natstomp/natstomp/connector/listen"
)

// one is a listener with one connection.
type one struct {
	net.Listener
	nc net.Conn
}

func (l one) Accept() (net.Conn, error) { return l.nc, nil }

// stalling is a connection that must not stall for 10 s, and its peer.
func stalling(t *testing.T) (nc, peer net.Conn) {
	t.Helper()
	inner, peer := net.Pipe()
	nc, err := listen.Stall(one{nc: inner}, 10*time.Second).Accept()
	if err != nil {
		t.Fatal(err)
	}
	if !listen.Stalls(nc) || listen.Stalls(peer) {
		t.Error("it is not known which of the two it is")
	}
	return nc, peer
}

// TestStall: a write may take as long as it likes while the peer takes something; when it takes nothing, the connection ends.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, peer := stalling(t)
		go func() {
			for buf := make([]byte, 1); ; {
				time.Sleep(9 * time.Second)
				if n, _ := peer.Read(buf); n == 0 || buf[0] == '.' {
					return
				}
			}
		}()
		if n, err := nc.Write([]byte("a slow one.")); n != 11 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		time.Sleep(time.Hour) // Nothing is written, so nothing is due.
		go func() { _, _ = io.CopyN(io.Discard, peer, 3) }()
		begun := time.Now()
		n, err := nc.Write([]byte("nobody"))
		if took := time.Since(begun); n != 3 || !errors.Is(err, os.ErrDeadlineExceeded) || took != 20*time.Second {
			t.Errorf("got %d, %v after %v", n, err, took)
		}
		if _, err := peer.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is open: %v", err)
		}
	})
}

// TestStallAndDeadlines: a deadline that somebody sets ends the write, whichever is set first, and not the connection.
func TestStallAndDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, peer := stalling(t)
		defer peer.Close()
		defer nc.Close()
		write := func(what string, want time.Duration) {
			t.Helper()
			begun := time.Now()
			if n, err := nc.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != want {
				t.Errorf("%s: got %d, %v after %v", what, n, err, time.Since(begun))
			}
		}
		deadline := func(at time.Time) {
			t.Helper()
			if err := nc.SetDeadline(at); err != nil {
				t.Fatal(err)
			}
		}
		deadline(time.Now().Add(3 * time.Second))
		write("a deadline", 3*time.Second)
		write("one that has passed", 0)
		go func() {
			time.Sleep(2 * time.Second)
			deadline(time.Unix(1, 0))
		}()
		deadline(time.Time{})
		write("one that comes later", 2*time.Second)
		deadline(time.Time{})
		go func() { _, _ = io.CopyN(io.Discard, peer, 1) }()
		if n, err := nc.Write([]byte("x")); n != 1 || err != nil {
			t.Errorf("after all that: got %d, %v", n, err)
		}
	})
}
