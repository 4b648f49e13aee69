package listen_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/connector/listen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is both ends of a WebSocket.
func pair(t *testing.T, subprotocols ...string) (server net.Conn, client *websocket.Conn) {
	t.Helper()
	conns := make(chan net.Conn, 1)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, err := listen.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		conns <- nc
	}))
	t.Cleanup(h.Close)
	client, _, err := websocket.Dial(t.Context(), h.URL, &websocket.DialOptions{Subprotocols: subprotocols})
	if err != nil {
		t.Fatal(err)
	}
	server = <-conns
	t.Cleanup(func() { _ = server.Close() })    // It may be closed already.
	t.Cleanup(func() { _ = client.CloseNow() }) // See above.
	return server, client
}

func TestSubprotocols(t *testing.T) {
	for _, tt := range []struct{ offered, want string }{
		{"", ""},
		{"v10.stomp", "v10.stomp"},
		{"v10.stomp v11.stomp v12.stomp", "v12.stomp"},
		{"wss v11.stomp https", "v11.stomp"},
		{"wss ws https", ""},
	} {
		_, client := pair(t, strings.Fields(tt.offered)...)
		if got := client.Subprotocol(); got != tt.want {
			t.Errorf("offered %q: got %q, want %q", tt.offered, got, tt.want)
		}
	}
}

func TestMessagesAreOctets(t *testing.T) {
	server, client := pair(t)
	want := ""
	for i, m := range []string{"CONN", "", "ECTED\n\n\x00SEND\n", "\xff\x00", strings.Repeat("x", 100_000)} {
		kind := websocket.MessageText
		if i%2 == 1 || strings.Contains(m, "\xff") {
			kind = websocket.MessageBinary
		}
		want += m
		go func() { _ = client.Write(context.Background(), kind, []byte(m)) }() // What is missing shows below.
		got := make([]byte, len(m))
		if _, err := io.ReadFull(server, got); err != nil || string(got) != m {
			t.Fatalf("message %d: %q, %v", i, got, err)
		}
	}
	if len(want) < 100_000 {
		t.Fatal("nothing was sent")
	}
}

func TestOneFramePerMessage(t *testing.T) {
	server, client := pair(t)
	client.SetReadLimit(-1)
	frames := []struct {
		text string
		kind websocket.MessageType
	}{
		{"CONNECTED\nversion:1.2\n\n\x00\n", websocket.MessageText},
		{"\n", websocket.MessageText},
		{"MESSAGE\nsubscription:1\ncontent-length:6\n\na\x00\n\n\x00b\x00\n", websocket.MessageText},
		{"MESSAGE\ncontent-length:2\n\n\xff\xfe\x00\n", websocket.MessageBinary},
		{"RECEIPT\nreceipt-id:content-length\\c5\n\n\x00\n", websocket.MessageText},
		{"MESSAGE\ncontent-length:0\n\n\x00\n", websocket.MessageText},
	}
	all := ""
	for _, f := range frames {
		all += f.text
	}
	for _, cut := range []int{len(all), 1, 7} {
		done := make(chan error, 1)
		go func() {
			for i := 0; i < len(all); i += cut {
				if _, err := server.Write([]byte(all[i:min(i+cut, len(all))])); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for i, f := range frames {
			kind, got, err := client.Read(t.Context())
			if err != nil || string(got) != f.text || kind != f.kind {
				t.Fatalf("written by %d, frame %d: got %v %q, %v, want %v %q", cut, i, kind, got, err, f.kind, f.text)
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadDeadlineLeavesTheConnection(t *testing.T) {
	server, client := pair(t)
	if err := server.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v, want %v", err, os.ErrDeadlineExceeded)
	}
	if _, err := server.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := client.Read(t.Context()); err != nil || string(got) != "\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestWriteDeadline(t *testing.T) {
	server, _ := pair(t)
	if err := server.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	frame := []byte("MESSAGE\ncontent-length:1000000\n\n" + strings.Repeat("x", 1_000_000) + "\x00\n")
	var err error
	for i := 0; err == nil && i < 1_000; i++ {
		_, err = server.Write(frame)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

func TestEndOfThePeerIsEOF(t *testing.T) {
	server, client := pair(t)
	go func() { _ = client.Close(websocket.StatusNormalClosure, "") }() // The server answers by itself.
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want EOF", err)
	}
	server, client = pair(t)
	_ = client.CloseNow() // A socket that is gone.
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("without a closing handshake: got %v, want EOF", err)
	}
}

func TestCloseShakesHands(t *testing.T) {
	server, client := pair(t)
	read := make(chan error, 1)
	go func() {
		_, _, err := client.Read(context.Background())
		read <- err
	}()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-read; websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("the client saw %v, want the status of a normal closure", err)
	}
}

func TestCloseReason(t *testing.T) {
	server, client := pair(t)
	server.(interface{ CloseReason(string) }).CloseReason(strings.Repeat("ü", 100))
	_, _, err := client.Read(t.Context())
	var ce websocket.CloseError
	if !errors.As(err, &ce) || ce.Code != websocket.StatusPolicyViolation || ce.Reason != strings.Repeat("ü", 61) {
		t.Errorf("got %v", err)
	}
}

// TestCloseDoesNotWaitForADeadPeer: neither one that does not take part in the handshake nor one that still sends.
func TestCloseDoesNotWaitForADeadPeer(t *testing.T) {
	server, client := pair(t)
	go func() {
		for client.Write(context.Background(), websocket.MessageText, make([]byte, 10_000)) == nil {
		}
	}()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = server.Close() // It is closed either way.
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("Close hangs")
	}
}

func TestAbort(t *testing.T) {
	server, client := pair(t)
	if err := server.(interface{ Abort() error }).Abort(); err != nil {
		t.Error(err)
	}
	if _, _, err := client.Read(t.Context()); err == nil {
		t.Error("the client read a message")
	}
}

func TestOrigins(t *testing.T) {
	loopback, public := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}
	for _, tt := range []struct {
		name    string
		local   net.Addr
		host    string
		origin  string
		origins []string
		want    bool
	}{
		{"no origin", public, "stomp.example.org", "", []string{"https://a.example"}, true},
		{"loopback page, loopback listener", loopback, "127.0.0.1:15674", "http://localhost:3000", nil, true},
		{"IPv6 loopback page", loopback, "127.0.0.1:15674", "http://[::1]:3000", nil, true},
		{"name pointed at loopback", loopback, "evil.example:15674", "http://evil.example:15674", nil, false},
		{"foreign page, loopback listener", loopback, "127.0.0.1:15674", "https://evil.example", nil, false},
		{"own host", public, "stomp.example.org", "https://stomp.example.org", nil, true},
		{"own host, other port", public, "stomp.example.org", "https://stomp.example.org:8443", nil, false},
		{"foreign page", public, "stomp.example.org", "https://evil.example", nil, false},
		{"null", loopback, "127.0.0.1", "null", nil, false},
		{"listed", public, "x", "https://a.example", []string{"https://a.example"}, true},
		{"listed with slash and case", public, "x", "https://a.example", []string{"https://A.example/"}, true},
		{"suffix trick", public, "x", "https://a.example.evil.org", []string{"https://a.example"}, false},
		{"scheme counts", public, "x", "http://a.example", []string{"https://a.example"}, false},
		{"list excludes own host", public, "x", "http://x", []string{"https://a.example"}, false},
		{"any", public, "x", "null", []string{"*"}, true},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://x/stomp", nil)
		r.Host = tt.host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.local))
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		if got := listen.OriginAllowed(r, tt.origins); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

func TestRefusedOriginIsAnswered(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "http://x/stomp", nil)
	r.Header.Set("Origin", "https://evil.example")
	w := httptest.NewRecorder()
	if _, err := listen.Upgrade(w, r, nil); err == nil || w.Code != http.StatusForbidden {
		t.Errorf("got %d, %v", w.Code, err)
	}
}
