package stompclient_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/test/stompclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for octets that are there already, or on their way.
const patience = 20 * time.Second

const connected12 = "CONNECTED\nversion:1.2\n\n\x00\n"

// pipe returns the two ends of a TCP connection.
func pipe(t *testing.T) (client *stompclient.Conn, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err = stompclient.Dial(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
	})
	return client, server
}

// serve returns a client whose peer writes the given octets and closes.
func serve(t *testing.T, octets string) *stompclient.Conn {
	t.Helper()
	client, server := pipe(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.WriteString(server, octets) // The reader may stop early.
		_ = server.Close()
	}()
	t.Cleanup(func() {
		_ = client.Close()
		<-done
	})
	return client
}

func TestEncode(t *testing.T) {
	tests := []struct{ version, command, want string }{
		{"1.0", "SEND", "SEND\nn:m:a\\b\rc\nd:e\n\n\x00"},
		{"1.1", "SEND", "SEND\nn\\cm:a\\\\b\rc\\nd\\ce\n\n\x00"},
		{"1.2", "SEND", "SEND\nn\\cm:a\\\\b\\rc\\nd\\ce\n\n\x00"},
		{"1.2", "CONNECT", "CONNECT\nn:m:a\\b\rc\nd:e\n\n\x00"},
	}
	for _, tt := range tests {
		got := stompclient.New(tt.command, "n:m", "a\\b\rc\nd:e").Encode(tt.version)
		if string(got) != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.version, tt.command, got, tt.want)
		}
	}
	got := stompclient.New("SEND", "a", "b").WithBody([]byte("x\x00y")).Encode("1.2")
	if want := "SEND\na:b\ncontent-length:3\n\nx\x00y\x00"; string(got) != want {
		t.Errorf("body: got %q, want %q", got, want)
	}
}

func TestReadUnescapesByVersion(t *testing.T) {
	for _, tt := range []struct{ version, line, name, value string }{
		{"1.0", `a\cb:c\nd:e`, `a\cb`, `c\nd:e`},
		{"1.1", `a\cb:c\nd\\e`, `a:b`, "c\nd\\e"},
		{"1.2", `a\cb:c\r\nd\\e`, `a:b`, "c\r\nd\\e"},
	} {
		c := serve(t, "CONNECTED\nversion:"+tt.version+"\n\n\x00\n\n\n"+
			"MESSAGE\n"+tt.line+"\ncontent-length:2\n\n\x00\n\x00\n\n")
		if _, err := c.Read(patience); err != nil {
			t.Fatal(err)
		}
		got, err := c.Read(patience)
		if err != nil {
			t.Fatal(err)
		}
		want := stompclient.New("MESSAGE", tt.name, tt.value, "content-length", "2")
		want.Body = []byte("\x00\n")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %s, want %s", tt.version, got, want)
		}
		if err := c.ReadBeat(patience); err != nil {
			t.Error(err)
		}
		if got, want := c.Beats(), 3; got != want {
			t.Errorf("beats: got %d, want %d", got, want)
		}
		if err := c.ExpectClose(patience); err != nil {
			t.Error(err)
		}
	}
}

func TestReadRefusesBrokenFrames(t *testing.T) {
	tests := map[string]string{
		"unknown command":          "SEND\n\n\x00\n",
		"no LF behind NUL":         "RECEIPT\nreceipt-id:1\n\n\x00RECEIPT",
		"end instead of LF":        "RECEIPT\nreceipt-id:1\n\n\x00",
		"CR line end":              "RECEIPT\r\nreceipt-id:1\r\n\r\n\x00\n",
		"header without colon":     "RECEIPT\nreceipt-id\n\n\x00\n",
		"header without name":      "RECEIPT\n:1\n\n\x00\n",
		"header twice":             "RECEIPT\nreceipt-id:1\nreceipt-id:1\n\n\x00\n",
		"NUL in a header":          "RECEIPT\nreceipt-id:\x00\n\n\x00\n",
		"raw colon":                "MESSAGE\na:b:c\ncontent-length:0\n\n\x00\n",
		"undefined escape":         "MESSAGE\na:b\\tc\ncontent-length:0\n\n\x00\n",
		"cut escape":               "MESSAGE\na:b\\\ncontent-length:0\n\n\x00\n",
		"MESSAGE without length":   "MESSAGE\na:b\n\n\x00\n",
		"ERROR without length":     "ERROR\nmessage:b\n\nb\x00\n",
		"length too small":         "MESSAGE\ncontent-length:1\n\nab\x00\n",
		"length not a number":      "MESSAGE\ncontent-length:+1\n\na\x00\n",
		"end in the command":       "MESS",
		"end in the headers":       "MESSAGE\na:b\n",
		"end in a sized body":      "MESSAGE\ncontent-length:9\n\nabc",
		"end at a sized body":      "MESSAGE\ncontent-length:9\n\n",
		"end in a NUL-ended body":  "RECEIPT\nreceipt-id:1\n\n",
		"end before a sized NUL":   "MESSAGE\ncontent-length:3\n\nabc",
		"LF missing before a NUL":  "RECEIPT\nreceipt-id:1\n\x00\n",
		"blank before the command": " RECEIPT\nreceipt-id:1\n\n\x00\n",
	}
	for name, octets := range tests {
		t.Run(name, func(t *testing.T) {
			c := serve(t, connected12+octets)
			if _, err := c.Read(patience); err != nil {
				t.Fatal(err)
			}
			if f, err := c.Read(patience); !errors.Is(err, stompclient.ErrWire) {
				t.Errorf("got %s, %v, want ErrWire", f, err)
			}
		})
		t.Run(name+", close expected", func(t *testing.T) {
			c := serve(t, connected12+octets)
			if _, err := c.Read(patience); err != nil {
				t.Fatal(err)
			}
			if err := c.ExpectClose(patience); err == nil {
				t.Error("got a close, want an error")
			}
		})
	}
}

func TestTimeouts(t *testing.T) {
	c, _ := pipe(t)
	const short = 10 * time.Millisecond
	if _, err := c.Read(short); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read: got %v, want a timeout", err)
	}
	if err := c.ReadBeat(short); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("ReadBeat: got %v, want a timeout", err)
	}
	if err := c.ExpectClose(short); err == nil {
		t.Error("ExpectClose: got nil, want a timeout")
	}
}

func TestConnect(t *testing.T) {
	for _, tt := range []struct{ answer, version string }{
		{connected12, "1.2"},
		{"ERROR\nmessage:no\ncontent-length:2\n\nno\x00\n", ""},
		{"", ""},
	} {
		c, server := pipe(t)
		sent := make(chan []byte, 1)
		go func() {
			want := len("CONNECT\nhost:h\naccept-version:1.2\n\n\x00")
			p := make([]byte, want)
			_, _ = io.ReadFull(server, p)
			sent <- p
			_, _ = io.WriteString(server, tt.answer)
			_ = server.Close()
		}()
		_, err := c.Connect("1.2", "host", "h")
		if got := err == nil; got != (tt.version != "") {
			t.Errorf("answer %q: got %v", tt.answer, err)
		}
		if got := c.Version(); got != tt.version {
			t.Errorf("version: got %q, want %q", got, tt.version)
		}
		if got := <-sent; !bytes.HasSuffix(got, []byte("host:h\naccept-version:1.2\n\n\x00")) {
			t.Errorf("sent %q", got)
		}
	}
}

func TestString(t *testing.T) {
	f := stompclient.New("MESSAGE", "a", "b c").WithBody([]byte(strings.Repeat("x", 300)))
	if got, want := f.String(), `MESSAGE "a:b c" "content-length:300" | "`; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want prefix %s", got, want)
	}
}
