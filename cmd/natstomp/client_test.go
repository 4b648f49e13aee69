package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/test/rig"
)

func TestPubAndSubOnAllTransports(t *testing.T) {
	_, u := serving(t)
	for _, tt := range []struct{ name, url string }{{"tcp", u.tcp}, {"tls", u.tls}, {"ws", u.ws}, {"wss", u.wss}} {
		t.Run(tt.name, func(t *testing.T) {
			flags := []string{"--url", tt.url, "--tls-ca", u.ca}
			topic := "/topic/" + tt.name
			sub := launch(nil, nil, append(flags, "sub", topic, "--count", "3", "--timeout", "20s")...)
			sub.subscribed(t)
			wants(t, 0, "", append(flags, "pub", topic, "one")...)
			c := launch(strings.NewReader("line\nand NUL\x00 \xff"), nil, append(flags, "pub", topic, "-", "--count", "2")...)
			if code := c.code(t); code != 0 {
				t.Errorf("pub: code %d, %q", code, c.err.String())
			}
			if code := sub.code(t); code != 0 {
				t.Errorf("sub: code %d, %q", code, sub.err.String())
			}
			if got, want := sub.out.String(), "one\n"+strings.Repeat("line\nand NUL\x00 \xff\n", 2); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			wants(t, 1, "refused: destination", append(flags, "pub", "/topic//x")...)
			wants(t, 1, "refused: body too large: limits.body", append(flags, "pub", topic, strings.Repeat("x", 5<<20))...)
		})
	}
}

func TestSubOfAQueueTakesNoMoreThanItShows(t *testing.T) {
	_, u := serving(t)
	for n := range 5 {
		wants(t, 0, "", "pub", "--url", u.tcp, "/queue/q", fmt.Sprint(n), "-H", "n:"+fmt.Sprint(n), "-H", "odd: a:b")
	}
	for _, mode := range []string{"client", "client-individual"} {
		got := wants(t, 0, "subscribed to /queue/q", "sub", "--url", u.tcp, "/queue/q", "--count", "1", "--ack", mode, "--output", "json")
		var m message
		if err := json.Unmarshal([]byte(got), &m); err != nil || m.Destination != "/queue/q" || m.Headers["odd"] != " a:b" ||
			m.Headers["n"] != *m.Body || m.Headers["n"] != map[string]string{"client": "0", "client-individual": "1"}[mode] {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if got := wants(t, 1, "no message within --timeout (200ms): got 3 of 9", "sub", "--url", u.tcp, "/queue/q", "--count", "9", "--timeout", "200ms"); got != "2\n3\n4\n" {
		t.Errorf("got %q", got)
	}
	if got := wants(t, 0, "subscribed", "sub", "--url", u.tcp, "/queue/q", "--timeout", "100ms", "--ack", "auto"); got != "" {
		t.Errorf("got %q", got)
	}
	wants(t, 0, "", "pub", "--url", u.tcp, "/queue/q", "\xff", "--no-receipt")
	if got := wants(t, 0, "subscribed", "sub", "--url", u.tcp, "/queue/q", "--count", "1", "--output", "json"); !strings.Contains(got, `"body_base64":"/w=="`) {
		t.Errorf("got %q", got)
	}
}

func TestManyMessages(t *testing.T) {
	_, u := serving(t)
	sub := launch(nil, nil, "sub", "--url", u.tcp, "/queue/many", "--count", "1000", "--timeout", "20s")
	sub.subscribed(t)
	wants(t, 0, "", "pub", "--url", u.tcp, "/queue/many", "x", "--count", "1000")
	if code := sub.code(t); code != 0 || sub.out.String() != strings.Repeat("x\n", 1000) {
		t.Errorf("code %d, %d octets, %q", code, len(sub.out.String()), sub.err.String())
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	_, u := serving(t)
	for _, url := range []string{u.tls, u.wss} {
		wants(t, 1, "certificate", "pub", "--url", url, "/topic/x")
		wants(t, 0, "WARNING: --tls-insecure: the server's certificate is NOT checked", "pub", "--url", url, "/topic/x", "--tls-insecure")
		// The certificate is for 127.0.0.1 and example.com.
		wants(t, 1, "certificate", "pub", "--url", strings.Replace(url, "127.0.0.1", "localhost", 1), "/topic/x", "--tls-ca", u.ca)
	}
	wants(t, 2, "--tls-ca: open ", "pub", "--url", u.tls, "/topic/x", "--tls-ca", "missing.pem")
	wants(t, 2, "--tls-cert and --tls-key: give both", "pub", "--url", u.tls, "/topic/x", "--tls-cert", "client_test.go")
	wants(t, 2, "--tls-cert, --tls-key: ", "pub", "--url", u.tls, "/topic/x", "--tls-cert", "client_test.go", "--tls-key", "missing.key")
	wants(t, 2, "holds no certificate", "pub", "--url", u.tls, "/topic/x", "--tls-ca", "client_test.go")
}

func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	if err := os.WriteFile(file, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name            string
		user            string
		env, args       []string
		login, passcode string
	}{
		{"none", "", nil, nil, "", ""},
		{"URL", "ann:p%40ss@", nil, nil, "ann", "p@ss"},
		{"environment", "", []string{"NATSTOMP_LOGIN=env", "NATSTOMP_PASSCODE=secret"}, nil, "env", "secret"},
		{"URL over environment", "ann:pass@", []string{"NATSTOMP_LOGIN=env", "NATSTOMP_PASSCODE=secret"}, nil, "ann", "pass"},
		{"flags over all", "ann:pass@", []string{"NATSTOMP_TOKEN=x"}, []string{"--login", "flag", "--passcode-file", file}, "flag", "from file"},
		{"token", "", []string{"NATSTOMP_TOKEN=jwt"}, nil, "", "jwt"},
		{"file of the environment", "", []string{"NATSTOMP_TOKEN_FILE=" + file}, nil, "", "from file"},
		{"token file", "", nil, []string{"--token-file", file}, "", "from file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, frames := scripted(t, func(*frame.Frame) []frame.Frame { return nil })
			environ := append([]string{urlVariable + "=" + strings.Replace(url, "tcp://", "tcp://"+tt.user, 1), kubeMQURLVariable + "=tcp://127.0.0.1:1"}, tt.env...)
			c := launch(nil, environ, append([]string{"pub", "/topic/x"}, tt.args...)...)
			if code := c.code(t); code != 0 {
				t.Fatalf("code %d, %q", code, c.err.String())
			}
			f := <-frames
			if f.Get("login") != tt.login || f.Get("passcode") != tt.passcode || f.Get("host") != "127.0.0.1" {
				t.Errorf("got %v", f.Headers)
			}
		})
	}
	url, _ := scripted(t, func(*frame.Frame) []frame.Frame { return nil })
	c := launch(nil, []string{kubeMQURLVariable + "=" + url}, "pub", "/topic/x")
	if code := c.code(t); code != 0 {
		t.Errorf("with KubeMQ's variable: code %d, %q", code, c.err.String())
	}
}

func TestRefusedLogin(t *testing.T) {
	url, _ := scripted(t, func(*frame.Frame) []frame.Frame {
		return []frame.Frame{{Command: frame.Error, Headers: []frame.Header{header("message", "not you")}}}
	})
	wants(t, 1, "connecting to "+url+": refused: not you", "pub", "--url", strings.Replace(url, "//", "//ann:canary@", 1), "/topic/x")
}

func TestServerThatGoesAway(t *testing.T) {
	l := listener(t)
	go func() {
		for range 2 {
			if conn, err := l.Accept(); err == nil {
				_ = conn.Close()
			}
		}
	}()
	defer l.Close()
	wants(t, 1, "connecting to tcp://"+l.Addr().String()+": ", "sub", "--url", "tcp://"+l.Addr().String(), "/topic/x")
	const closed = "127.0.0.1:1" // Nobody listens on a port that only the administrator may open, and no program uses.
	wants(t, 1, "connection refused", "pub", "--url", "tcp://"+closed, "/topic/x")
}

// TestSilentServer offers heart-beats and sends none.
func TestSilentServer(t *testing.T) {
	url, _ := scripted(t, func(f *frame.Frame) []frame.Frame {
		if f.Command == frame.Connect {
			return []frame.Frame{{Command: frame.Connected, Headers: []frame.Header{header("version", "1.2"), header("heart-beat", "50,50")}}}
		}
		return nil
	})
	wants(t, 1, "the server was silent for 100ms", "sub", "--url", url, "/topic/x", "--heartbeat", "50ms")
}

// TestHeartbeatsOfASub is a server that wants heart-beats and offers some, later than the test waits for: what both sides
// agreed on counts, in each direction.
func TestHeartbeatsOfASub(t *testing.T) {
	l := listener(t)
	defer l.Close()
	sub := launch(nil, nil, "sub", "--url", "tcp://"+l.Addr().String(), "/topic/x", "--heartbeat", "20ms", "--count", "1")
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(rig.Patience)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	exchange := func(want, answer string) {
		got, err := in.ReadString(0)
		if err != nil || !strings.Contains(got, want) {
			t.Fatalf("got %q, %v, want %q in it", got, err, want)
		}
		_, receipt, _ := strings.Cut(got, "\nreceipt:")
		receipt, _, _ = strings.Cut(receipt, "\n")
		if _, err := io.WriteString(conn, strings.ReplaceAll(answer, "RECEIPT_ID", receipt)); err != nil {
			t.Fatal(err)
		}
	}
	exchange("\nheart-beat:20,20\n", "CONNECTED\nversion:1.2\nheart-beat:10000,20\n\n\x00\n")
	exchange("SUBSCRIBE\n", "RECEIPT\nreceipt-id:RECEIPT_ID\n\n\x00\n")
	for beats := range 11 { // The first is the end of the frame.
		if b, err := in.ReadByte(); err != nil || b != '\n' {
			t.Fatalf("got %q, %v behind %d heart-beats, want another", b, err, beats)
		}
	}
	if _, err := io.WriteString(conn, "MESSAGE\nsubscription:1\nmessage-id:1\ndestination:/topic/x\ncontent-length:5\n\nalive\x00\n"); err != nil {
		t.Fatal(err)
	}
	exchange("ACK\n", "")
	exchange("DISCONNECT\n", "RECEIPT\nreceipt-id:RECEIPT_ID\n\n\x00\n")
	if code := sub.code(t); code != 0 || sub.out.String() != "alive\n" {
		t.Errorf("code %d, %q, %q", code, sub.out.String(), sub.err.String())
	}
}

func TestUsageOfClientCommands(t *testing.T) {
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"a destination is missing", []string{"pub"}},
		{"nothing to do with the argument", []string{"pub", "/topic/x", "a", "b"}},
		{"nothing to do with the argument", []string{"sub", "/topic/x", "a"}},
		{"no scheme tcp, tls, ws or wss", []string{"pub", "/topic/x", "--url", "http://u:canary@127.0.0.1"}},
		{"write for instance tcp://127.0.0.1:61613", []string{"pub", "/topic/x", "--url", "127.0.0.1:61613"}},
		{"no scheme tcp, tls, ws or wss", []string{"pub", "/topic/x", "--url", "localhost:61613"}},
		{"has a path, which only ws and wss have", []string{"pub", "/topic/x", "--url", "tcp://127.0.0.1/stomp"}},
		{"has no host", []string{"pub", "/topic/x", "--url", "tcp://:61613"}},
		{"the URL cannot be read", []string{"pub", "/topic/x", "--url", "tcp://u:canary@ :1"}},
		{"is not name:value", []string{"pub", "/topic/x", "-H", "x"}},
		{"is not name:value", []string{"pub", "/topic/x", "-H", ":x"}},
		{"--header receipt cannot be given: see --no-receipt", []string{"pub", "/topic/x", "-H", "receipt:1"}},
		{"--header reply-to cannot be given", []string{"request", "/query/x", "-H", "reply-to:/x"}},
		{"--count 0 is less than 1", []string{"pub", "/topic/x", "--count", "0"}},
		{"--count -1 is negative", []string{"sub", "/topic/x", "--count", "-1"}},
		{`--ack "never" is not auto`, []string{"sub", "/topic/x", "--ack", "never"}},
		{`--output "xml" is not raw or json`, []string{"sub", "/topic/x", "--output", "xml"}},
		{"--timeout -1s is negative", []string{"pub", "/topic/x", "--timeout", "-1s"}},
		{"--timeout is less than 1ms", []string{"request", "/query/x", "--timeout", "0s"}},
		{"--heartbeat -1s is negative", []string{"sub", "/topic/x", "--heartbeat", "-1s"}},
		{"are both given", []string{"pub", "/topic/x", "--passcode-file", "a", "--token-file", "b"}},
		{"unknown flag: --output", []string{"pub", "/topic/x", "--output", "json"}},
		{"reading the passcode", []string{"pub", "/topic/x", "--passcode-file", "missing"}},
	} {
		c := launch(nil, nil, tt.args...)
		if code := c.code(t); code != 2 || !strings.Contains(c.err.String(), tt.want) || strings.Contains(c.err.String(), "canary") || c.out.String() != "" {
			t.Errorf("%q: code %d, stderr %q, want %q", tt.args, code, c.err.String(), tt.want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"tcp://example.org", "tcp://example.org:61613"},
		{"tls://example.org", "tls://example.org:61614"},
		{"tcp://[::1]/", "tcp://[::1]:61613/"},
		{"ws://example.org", "ws://example.org:80/stomp"},
		{"wss://example.org/ws?a=b", "wss://example.org:443/ws?a=b"},
		{"ws://u:p@example.org:15674", "ws://example.org:15674/stomp"},
	} {
		got, err := parseTarget(tt.text)
		if err != nil || got.url.String() != tt.want {
			t.Errorf("%s: got %v, %v; want %s", tt.text, got.url, err, tt.want)
		}
	}
}
