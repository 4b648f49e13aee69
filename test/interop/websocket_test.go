package interop_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/natstomp/natstomp/test/testserver"
)

// wantUpgrade checks what a WebSocket client has negotiated beside STOMP.
func wantUpgrade(t *testing.T, seen events, who, subprotocol string) {
	t.Helper()
	upgraded := seen.one(t, "upgraded", who).Headers
	if got := upgraded["protocol"]; got != subprotocol {
		t.Errorf("%s: the subprotocol is %q, want %q", who, got, subprotocol)
	}
	if got := upgraded["extensions"]; got != "" {
		t.Errorf("%s: extensions are %q, want none", who, got)
	}
}

// Frames come in pieces, as text and as binary messages; each goes out as one message, of the kind that fits its octets.
func TestWebSocketMessages(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	octets := make([]byte, 256)
	for i := range octets {
		octets[i] = byte(i)
	}
	small := [][]byte{[]byte("h\u00e9llo \u4e16\u754c"), {}, []byte("\x00"), octets}
	large := append([][]byte{[]byte(strings.Repeat("1 MiB of \u4e16\u754c\n", 1<<20/16))}, small...)
	for _, tt := range []struct {
		name   string
		chunk  int
		binary bool
		bodies [][]byte
	}{
		{"whole", 0, false, large},
		{"binary only", 0, true, large},
		{"pieces of 8 KiB", 8192, false, large},
		{"single characters", 1, false, small},
	} {
		on(t, overWebSocket, []string{tt.name}, func(t *testing.T, c client, _ string) {
			seen := c.start(t, srv, "bodies", options{
				Channel: strings.ReplaceAll(channel(t), "_", "-"), Bodies: tt.bodies, Chunk: tt.chunk, Binary: tt.binary,
			}).finish(t)
			got := seen.of("message", "client")
			if len(got) != 2*len(tt.bodies) {
				t.Fatalf("%d messages, want %d", len(got), 2*len(tt.bodies))
			}
			for i, m := range got {
				want := tt.bodies[i%len(tt.bodies)]
				if !bytes.Equal(m.Body, want) {
					t.Errorf("message %d has %d octets %.40q, want %d %.40q", i, len(m.Body), m.Body, len(want), want)
				}
				kind := "binary"
				if utf8.Valid(want) {
					kind = "text"
				}
				if m.Text != kind {
					t.Errorf("message %d, %.40q, came in a %s message, want %s", i, want, m.Text, kind)
				}
			}
		})
	}
}

// Which pages of a real browser may connect.
func TestOrigin(t *testing.T) {
	t.Parallel()
	b, err := theBrowser()
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := chromium, chromium
	theirs.host = elsewhere
	for _, tt := range []struct {
		name             string
		args             []string
		allowed, refused browserClient
	}{
		{"default", nil, ours, theirs},
		{"listed", []string{"--listeners-ws-origins", "http://" + b.origin(elsewhere)}, theirs, ours},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := testserver.Start(t, tt.args...)
			seen := tt.allowed.start(t, srv, "live", options{Channel: channel(t), Count: 3}).finish(t)
			wantBodies(t, seen.of("message", "subscriber"), numbers(0, 3))

			seen = tt.refused.start(t, srv, "refused", options{}).finish(t)
			seen.one(t, "refused", "client")
			if end := seen.one(t, "disconnected", "client").Text; end != "close 1006" {
				t.Errorf("the connection ended with %q, want close 1006", end)
			}
			for _, kind := range []string{"upgraded", "connected"} {
				if got := seen.of(kind, ""); len(got) > 0 {
					t.Errorf("a refused page was %s:\n%s", kind, got)
				}
			}
		})
	}
}

// oldBrowserClients are the libraries of older pages.
var oldBrowserClients = []client{stompJS2, webstomp}

var (
	stompJS2 = browserClient{name: "stompjs2", npm: stompJS2Package}
	webstomp = browserClient{name: "webstomp", npm: webstompPackage}
)

// They speak one version: stompjs 2 whatever its subprotocol, webstomp-client the one of its subprotocol, of which it
// offers the lowest first.
func TestOldBrowserClients(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	for _, old := range []struct {
		client               browserClient
		version, subprotocol string
	}{
		{stompJS2, "1.1", "v11.stomp"},
		{webstomp, "1.2", "v12.stomp"},
	} {
		tests := map[string]func(*testing.T, *testserver.Server, client, string){
			"ack modes": testAckModes, "transactions": testTransactions, "errors": testErrors,
			"live": func(t *testing.T, srv *testserver.Server, c client, version string) {
				seen := c.start(t, srv, "live", options{Channel: channel(t), Count: 20}).finish(t)
				wantBodies(t, seen.of("message", "subscriber"), numbers(0, 20))
				wantUpgrade(t, seen, "subscriber", old.subprotocol)
				if got := seen.one(t, "connected", "subscriber").Headers["version"]; got != version {
					t.Errorf("version is %q, want %q", got, version)
				}
			},
		}
		for name, test := range tests {
			t.Run(old.client.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(t, srv, old.client, old.version)
			})
		}
	}
}
