package listen_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector/listen"
)

// TestDial connects both ends of this package with each other.
func TestDial(t *testing.T) {
	conns := make(chan net.Conn, 1)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, err := listen.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if got := w.Header().Get("Sec-WebSocket-Protocol"); got != "v12.stomp" {
			t.Errorf("subprotocol: got %q", got)
		}
		conns <- nc
	}))
	defer h.Close()
	client, err := listen.DialWebSocket(t.Context(), "ws"+strings.TrimPrefix(h.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := <-conns
	frames := "CONNECT\n\n\x00\n" + "\n" + "SEND\ndestination:/topic/x\ncontent-length:3\n\n\xff\x00b\x00\n"
	for _, ends := range []struct {
		name     string
		from, to net.Conn
	}{{"to the server", client, server}, {"to the client", server, client}} {
		go func() { _, _ = io.WriteString(ends.from, frames) }() // What is missing shows below.
		got := make([]byte, len(frames))
		if _, err := io.ReadFull(ends.to, got); err != nil || string(got) != frames {
			t.Errorf("%s: got %q, %v", ends.name, got, err)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- client.Close() }()
	if n, err := server.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("after Close: got %d octets, %v", n, err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestDialIsRefused(t *testing.T) {
	h := httptest.NewServer(http.NotFoundHandler())
	defer h.Close()
	url := "ws" + strings.TrimPrefix(h.URL, "http")
	if _, err := listen.DialWebSocket(t.Context(), url, nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := listen.DialWebSocket(ended, url, nil); err == nil {
		t.Error("with an ended context: no error")
	}
}
