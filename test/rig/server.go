package rig

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/stompclient"
)

// Server is a server in this process, on an embedded NATS of its own.
type Server struct {
	*connector.Server
	// Log is what it logs.
	Log *Log

	tb   testing.TB
	stop func()
}

// Config is that of a server on a store directory with one listener, for TCP. Its NATS has no port.
func Config(store string) connector.Config {
	cfg := connector.DefaultConfig()
	cfg.Listeners.TCP.Address = "127.0.0.1:0"
	cfg.Listeners.WS.Address, cfg.Listeners.Admin.Address = "off", "off"
	cfg.NATS.Embedded.Listen = "off"
	cfg.NATS.Embedded.StoreDir = store
	cfg.NATS.Embedded.Durability = "os"
	return cfg
}

// Start starts a server with a store of its own, whose Config was changed; change may be nil. The log has everything,
// in JSON. The test's end stops the server.
func Start(tb testing.TB, change func(*connector.Config)) *Server {
	tb.Helper()
	s := &Server{tb: tb, Log: &Log{}}
	cfg := Config(tb.TempDir())
	cfg.Logger = slog.New(slog.NewJSONHandler(s.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if change != nil {
		change(&cfg)
	}
	var err error
	if s.Server, err = connector.New(cfg); err != nil {
		tb.Fatal(err)
	}
	if err := s.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	s.stop = sync.OnceFunc(func() { Shutdown(tb, s.Server) })
	tb.Cleanup(func() {
		s.Stop()
		if tb.Failed() {
			lines := strings.SplitAfter(s.Log.String(), "\n")
			tb.Logf("end of the log:\n%s", strings.Join(lines[max(0, len(lines)-60):], ""))
		}
	})
	return s
}

// Shutdown stops a server within Patience.
func Shutdown(tb testing.TB, s *connector.Server) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		tb.Errorf("Shutdown: %v", err)
	}
}

// Stop stops the server. Further calls do nothing.
func (s *Server) Stop() { s.stop() }

// At returns the address of a listener.
func (s *Server) At(listener string) string {
	s.tb.Helper()
	for _, l := range s.Status().Listeners {
		if l.Name == listener {
			return l.Address
		}
	}
	s.tb.Fatalf("there is no listener %s", listener)
	return ""
}

// Visit is how a client comes.
type Visit struct {
	Over   string      // The listener: tcp, tls, ws, wss; tcp if empty.
	From   net.Addr    // The client's address; nil: any.
	Trust  *tls.Config // nil: the Authority is trusted and no certificate shown.
	Header http.Header // Of the WebSocket handshake.
}

// Open opens a connection and sends nothing. The caller closes it.
func (s *Server) Open(v Visit) (*stompclient.Conn, error) {
	if v.Over == "" {
		v.Over = "tcp"
	}
	if v.Trust == nil {
		v.Trust = Authority().Trust()
	}
	dialer := &net.Dialer{LocalAddr: v.From, Timeout: Patience}
	address := s.At(v.Over)
	var nc net.Conn
	var err error
	switch v.Over {
	case "tcp":
		nc, err = dialer.Dial("tcp", address)
	case "tls":
		nc, err = tls.DialWithDialer(dialer, "tcp", address, v.Trust)
	default:
		client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: v.Trust, DisableKeepAlives: true}}
		return stompclient.DialWebSocketBy(client, v.Over+"://"+address+"/stomp", v.Header)
	}
	if err != nil {
		return nil, err
	}
	return stompclient.NewConn(nc), nil
}

// Come is Open for a client of the test.
func (s *Server) Come(v Visit) *Client {
	s.tb.Helper()
	conn, err := s.Open(v)
	if err != nil {
		s.tb.Fatal(err)
	}
	return NewClient(s.tb, conn)
}

// Log is a text that is safe for concurrent use. The zero value is empty.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
