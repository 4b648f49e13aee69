package listen_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/listen"
)

// TestT3InClear: who speaks in clear is told so, and closed within a second.
func TestT3InClear(t *testing.T) {
	_, f := goodFiles(t)
	s := serveTLS(t, f.TLSFiles)
	for _, tt := range []struct{ name, sent, want string }{
		{"CONNECT", "CONNECT\naccept-version:1.2\n\n\x00", "ERROR\nmessage:this port speaks TLS"},
		{"STOMP", "STOMP\naccept-version:1.2\n\n\x00", "ERROR\nmessage:this port speaks TLS"},
		{"line ends before it", "\r\n\n\nCONNECT\n\n\x00", "ERROR\nmessage:this port speaks TLS"},
		{"HTTP", "GET /stomp HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.0 400 Bad Request\r\n"},
		{"something", "\x00\x01\x02\x03\x04\x05\x06\x07", ""},
		{"much", "CONNECT\n" + strings.Repeat("a:b\n", 10_000), "ERROR\nmessage:this port speaks TLS"},
	} {
		nc, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := io.WriteString(nc, tt.sent); err != nil {
			t.Fatal(err)
		}
		_ = nc.SetReadDeadline(time.Now().Add(20 * time.Second)) // A read tells.
		got, err := io.ReadAll(nc)
		if !strings.HasPrefix(string(got), tt.want) || (tt.want == "") != (len(got) == 0) || err != nil && tt.want != "" {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
		if tt.want != "" && strings.HasPrefix(tt.want, "ERROR") && !strings.HasSuffix(string(got), "to another port\x00\n") {
			t.Errorf("%s: got %q", tt.name, got)
		}
		_ = nc.Close()
		if took := time.Since(began); took > 4*time.Second { // A handshake may take 5 s.
			t.Errorf("%s: closed after %v", tt.name, took)
		}
	}
	if !strings.Contains(s.log.String(), "the client does not speak TLS") {
		t.Errorf("got the log %s", s.log)
	}
}

// TestT5HandshakeFlood: thousands who begin a handshake and do not go on keep nobody out, and hold little memory.
func TestT5HandshakeFlood(t *testing.T) {
	a, f := goodFiles(t)
	s := serveTLS(t, f.TLSFiles)
	var open []net.Conn
	defer func() {
		for _, nc := range open {
			_ = nc.Close()
		}
	}()
	for n := range 2_000 {
		nc, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, nc)
		if n%2 == 0 {
			_, _ = nc.Write([]byte("\x16\x03\x01\x02\x00\x01")) // A beginning; the server may have ended it.
		}
		if n%100 == 99 {
			began := time.Now()
			if err := talk(dialTLS(t, s.address, a.Trust())); err != nil {
				t.Fatalf("behind %d half-open handshakes: %v", n+1, err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("behind %d half-open handshakes: took %v", n+1, took)
			}
		}
	}
	if n := runtime.NumGoroutine(); n > 1_500 {
		t.Errorf("got %d goroutines for 2,000 half-open handshakes", n)
	}
	if lines := strings.Count(s.log.String(), "handshake failed"); lines > 100 {
		t.Errorf("got %d lines in the log", lines)
	}
}

// TestHandshakeTime: a handshake that does not end is ended.
func TestHandshakeTime(t *testing.T) {
	_, f := goodFiles(t)
	s := serveTLS(t, f.TLSFiles)
	nc, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	began := time.Now()
	_ = nc.SetReadDeadline(began.Add(20 * time.Second)) // A read tells.
	if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took < 4*time.Second || took > 18*time.Second {
		t.Errorf("ended after %v, want 5 s", took)
	}
}

// TestCloseEndsHandshakes: what is under way does not hold up a stop.
func TestCloseEndsHandshakes(t *testing.T) {
	_, f := goodFiles(t)
	secure, err := listen.NewTLS(f.TLSFiles, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := secure.Listen(inner)
	for range 10 {
		nc, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
	}
	began := time.Now()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 4*time.Second { // A handshake may take 5 s.
		t.Errorf("took %v", took)
	}
}
