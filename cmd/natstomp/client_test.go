package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/test/stompclient"
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
		ctx, cancel := context.WithTimeout(context.Background(), patience)
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
	out, err lockedBuffer
	done     chan int
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
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
	case <-time.After(patience):
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
	for end := time.Now().Add(patience); !strings.Contains(c.err.String(), "subscribed to"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not subscribe: %q", c.err.String())
		}
	}
}

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

func TestRequest(t *testing.T) {
	for _, tt := range []struct {
		name, destination, replyTo string
		args                       []string
		headers                    []frame.Header
		code                       int
		stdout, stderr             string
	}{
		{"query", "/query/stock", "/reply/", nil, nil, 0, "12\n", ""},
		{"alias", "commands/go", "/reply/", nil, []frame.Header{header("x-executed", "true")}, 0, "12\n", ""},
		{"queue", "/queue/work", "/temp-queue/", nil, nil, 0, "12\n", ""},
		{"nobody", "/query/stock", "/reply/", nil, []frame.Header{header("x-error", "no responder")}, 1, "", "requesting /query/stock: no reply: no responder\n"},
		{"service", "/query/stock", "/reply/", nil, []frame.Header{
			header("x-error", "service"), header("x-error-code", "404"), header("x-error-text", "no tea"),
		}, 1, "", "no reply: service 404: no tea\n"},
		{"json", "/query/stock", "/reply/", []string{"--output", "json"}, []frame.Header{header("x", "1")}, 0, `"x":"1"},"body":"12"}` + "\n", ""},
		{"own headers", "/query/stock", "/reply/", []string{"-H", "correlation-id:mine", "--timeout", "2500ms"}, nil, 0, "12\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, frames := scripted(t, func(f *frame.Frame) []frame.Frame {
				if f.Command == frame.Send {
					return reply(f, "12", tt.headers...)
				}
				return nil
			})
			stdout := wants(t, tt.code, tt.stderr, append([]string{"request", "--url", url, tt.destination, "tea"}, tt.args...)...)
			if !strings.HasSuffix(stdout, tt.stdout) || tt.stdout == "" && stdout != "" {
				t.Errorf("got %q, want %q", stdout, tt.stdout)
			}
			var got []string
			var send frame.Frame
			for len(frames) > 0 {
				f := <-frames
				got = append(got, f.Command.String()+" "+f.Get("destination"))
				if f.Command == frame.Send {
					send = f
				}
			}
			to := send.Get("reply-to")
			want := []string{"CONNECT ", "SUBSCRIBE " + to, "SEND " + tt.destination}
			if tt.replyTo != "/reply/" {
				want = []string{"CONNECT ", "SEND " + tt.destination}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || !strings.HasPrefix(to, tt.replyTo) || len(to) < len(tt.replyTo)+20 || string(send.Body) != "tea" {
				t.Errorf("got %q to %q, want %q", got, to, want)
			}
			if tt.name == "own headers" && (send.Get("correlation-id") != "mine" || send.Get("timeout") != "2500") {
				t.Errorf("got %v", send.Headers)
			}
		})
	}
}

// TestRequestToAServer asks responders of natstomp: a STOMP client for commands, the program for a message of a queue.
func TestRequestToAServer(t *testing.T) {
	s, u := serving(t)
	responder, err := stompclient.Dial(strings.TrimPrefix(u.tcp, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer responder.Close()
	if _, err := responder.Connect("1.2"); err != nil {
		t.Fatal(err)
	}
	if err := responder.Send(stompclient.New("SUBSCRIBE", "id", "1", "destination", "/command/brew", "receipt", "1")); err != nil {
		t.Fatal(err)
	}
	if f, err := responder.Read(patience); err != nil || f.Command != "RECEIPT" {
		t.Fatalf("got %s, %v", f, err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		f, err := responder.Read(patience)
		if err == nil {
			err = responder.Send(stompclient.New("SEND", "destination", f.Get("reply-to")).WithBody(append([]byte("brewed "), f.Body...)))
		}
		if err != nil {
			t.Error(err)
		}
	}()
	got := wants(t, 0, "", "request", "--url", u.ws, "/command/brew", "tea", "--output", "json")
	if !strings.Contains(got, `"x-executed":"true"`) || !strings.HasSuffix(got, `"body":"brewed tea"}`+"\n") {
		t.Errorf("got %s", got)
	}
	<-answered
	begun := time.Now()
	wants(t, 1, "no reply: no responder", "request", "--url", u.tcp, "/query/nobody")
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the answer took %v, want it at once", took)
	}

	listener, err := s.Subscribe(t.Context(), "/queue/work", nil, func(ctx context.Context, m connector.Message) error {
		return s.Publish(ctx, m.Headers["reply-to"], nil, append([]byte("done: "), m.Body...))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := wants(t, 0, "", "request", "--url", u.tcp, "/queue/work", "sweep"); got != "done: sweep\n" {
		t.Errorf("got %q", got)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}

func TestRequestTimesOut(t *testing.T) {
	url, _ := scripted(t, func(*frame.Frame) []frame.Frame { return nil })
	begun := time.Now()
	wants(t, 1, "no answer within --timeout (1ms)", "request", "--url", url, "/query/x", "--timeout", "1ms")
	if took := time.Since(begun); took < requestGrace {
		t.Errorf("gave up after %v: the server's own answer may still come", took)
	}
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
	closed := listener(t)
	_ = closed.Close()
	wants(t, 1, "connection refused", "pub", "--url", "tcp://"+closed.Addr().String(), "/topic/x")
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

func TestHeartbeatsKeepASubAlive(t *testing.T) {
	s, u := serving(t)
	sub := launch(nil, nil, "sub", "--url", u.tcp, "/topic/x", "--heartbeat", "20ms", "--count", "1")
	sub.subscribed(t)
	time.Sleep(time.Second) // The silence is what is tested; the server offers 10 s, which is longer than the test.
	if err := s.Publish(t.Context(), "/topic/x", nil, []byte("alive")); err != nil {
		t.Fatal(err)
	}
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
