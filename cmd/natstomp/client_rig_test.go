package main

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/test/rig"
)

// urls has a URL of one server for each scheme, and the file of the authority for the two with TLS.
type urls struct {
	tcp, tls, ws, wss, ca string
}

// serving starts a server of STOMP on all transports.
func serving(t *testing.T) (*connector.Server, urls) {
	t.Helper()
	c := connector.DefaultConfig()
	c.Listeners.TCP.Address, c.Listeners.WS.Address, c.Listeners.Admin.Address = "off", "off", "off"
	c.NATS.Embedded.StoreDir, c.NATS.Embedded.Listen, c.NATS.Embedded.Durability = t.TempDir(), "off", "memory"
	c.RPC.StompResponders = true
	s, err := connector.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ws, wss := httptest.NewServer(s.WebSocket()), httptest.NewUnstartedServer(s.WebSocket())
	wss.Config.ErrorLog = log.New(io.Discard, "", 0) // Of handshakes that are to fail.
	wss.StartTLS()
	plain, secure := listener(t), listener(t)
	go func() { _ = s.Serve(plain) }() // Ends with Shutdown.
	go func() { _ = s.Serve(tls.NewListener(secure, wss.TLS.Clone())) }()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: wss.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ws.Close()
		wss.Close()
		ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return s, urls{
		tcp: "tcp://" + plain.Addr().String(), tls: "tls://" + secure.Addr().String(),
		ws: "ws" + strings.TrimPrefix(ws.URL, "http") + "/stomp", wss: "wss" + strings.TrimPrefix(wss.URL, "https"), ca: ca,
	}
}

func listener(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// command is a run of natstomp that a test waits for.
type command struct {
	out, err rig.Log
	done     chan int
}

// launch runs natstomp with arguments, in an environment.
func launch(stdin io.Reader, environ []string, args ...string) *command {
	c := &command{done: make(chan int, 1)}
	go func() { c.done <- run(args, process{environ, stdin, &c.out, &c.err}) }()
	return c
}

// code waits for the exit code.
func (c *command) code(t *testing.T) int {
	t.Helper()
	select {
	case code := <-c.done:
		return code
	case <-time.After(rig.Patience):
		t.Fatalf("it did not end; stdout %q, stderr %q", c.out.String(), c.err.String())
		return -1
	}
}

// wants runs natstomp and checks the code and what it says on stderr.
func wants(t *testing.T, code int, stderr string, args ...string) string {
	t.Helper()
	c := launch(strings.NewReader(""), nil, args...)
	if got := c.code(t); got != code {
		t.Errorf("%q: got code %d, want %d; stderr %q", args, got, code, c.err.String())
	}
	if !strings.Contains(c.err.String(), stderr) || stderr == "" && c.err.String() != "" {
		t.Errorf("%q: got stderr %q, want %q", args, c.err.String(), stderr)
	}
	return c.out.String()
}

// subscribed waits until a sub is.
func (c *command) subscribed(t *testing.T) {
	t.Helper()
	rig.Until(t, func() error {
		if text := c.err.String(); !strings.Contains(text, "subscribed to") {
			return fmt.Errorf("it did not subscribe: %q", text)
		}
		return nil
	})
}

// scripted is a server that answers what a test says to each frame, and keeps the frames.
func scripted(t *testing.T, answer func(f *frame.Frame) []frame.Frame) (url string, frames chan frame.Frame) {
	t.Helper()
	l := listener(t)
	frames = make(chan frame.Frame, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		dec := frame.NewDecoder(conn, frame.Limits{})
		for {
			var f frame.Frame
			if err := dec.Decode(&f); err != nil {
				return
			}
			frames <- f.Clone()
			answers := answer(&f)
			switch {
			case f.Command == frame.Connect && answers == nil:
				answers = []frame.Frame{{Command: frame.Connected, Headers: []frame.Header{header("version", "1.2")}}}
				dec.SetVersion(frame.V12)
			case f.Get("receipt") != "":
				answers = append(answers, frame.Frame{Command: frame.Receipt, Headers: []frame.Header{header("receipt-id", f.Get("receipt"))}})
			}
			for _, a := range answers {
				if _, err := conn.Write(frame.Append(nil, frame.V12, &a)); err != nil {
					return
				}
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return "tcp://" + l.Addr().String(), frames
}

// reply is a MESSAGE for a SEND.
func reply(to *frame.Frame, body string, headers ...frame.Header) []frame.Frame {
	return []frame.Frame{{Command: frame.Message, Body: []byte(body), Headers: append([]frame.Header{
		header("destination", to.Get("reply-to")), header("message-id", "1"), header("subscription", "1"),
	}, headers...)}}
}
