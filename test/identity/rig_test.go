package identity_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/tokens"
)

const (
	cookieName = "session"
	page       = "https://app.example"
)

// rig is a server with every listener, on an embedded NATS of its own, that logs everything.
//
// Its come is for the goroutine of the test.
type rig struct {
	*connector.Server
	t   *testing.T
	log *output

	clients []*client // of come
}

func newRig(t *testing.T, change func(*connector.Config)) *rig {
	t.Helper()
	g := &rig{t: t, log: &output{}}
	cert, key := authority().server(t)
	cfg := connector.DefaultConfig()
	cfg.Listeners.TCP.Address = "127.0.0.1:0"
	cfg.Listeners.TLS = connector.TLSListener{Address: "127.0.0.1:0", CertFile: cert, KeyFile: key}
	cfg.Listeners.WS = connector.WSListener{Address: "127.0.0.1:0", Paths: []string{"/stomp"}, Origins: []string{page}}
	cfg.Listeners.WSS = connector.WSListener{Address: "127.0.0.1:0", Paths: []string{"/stomp"}, Origins: []string{page}, CertFile: cert, KeyFile: key}
	cfg.Listeners.Admin.Address = "127.0.0.1:0"
	cfg.NATS.Embedded.Listen = "off"
	cfg.NATS.Embedded.StoreDir = t.TempDir()
	cfg.NATS.Embedded.Durability = "os"
	cfg.Logger = slog.New(slog.NewJSONHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if change != nil {
		change(&cfg)
	}
	var err error
	if g.Server, err = connector.New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if t.Failed() {
			lines := strings.SplitAfter(g.log.String(), "\n")
			t.Logf("end of the log:\n%s", strings.Join(lines[max(0, len(lines)-60):], ""))
		}
	})
	return g
}

// allow lets everybody do everything.
func allow(t *testing.T, c *connector.Config) {
	t.Helper()
	c.Authz.Policy = put(t, "policy.csv", "p, *, *, >, *, allow\n")
}

// withTokens accepts tokens of every algorithm, as package tokens makes them.
func withTokens(t *testing.T, c *connector.Config) {
	t.Helper()
	j := tokens.Config(t).JWT
	c.Auth = connector.Auth{Mode: "jwt", JWT: connector.JWT{
		HMACSecret: connector.Secret(j.HMACSecret()), PublicKeyFiles: j.PublicKeyFiles, JWKS: j.JWKS, Issuer: j.Issuer, Audience: j.Audience,
		Leeway: j.Leeway, MaxTokenLifetime: j.MaxTokenLifetime, ClientIDClaims: j.ClientIDClaims, RolesClaim: j.RolesClaim, Cookie: cookieName,
	}}
	allow(t, c)
}

// token is a good one of alice, with changes.
func token(t *testing.T, changes tokens.Values) string {
	t.Helper()
	return tokens.Sign(t, time.Now(), tokens.Signers()["HS256"], nil, changes)
}

// at returns the address of a listener.
func (g *rig) at(name string) string {
	g.t.Helper()
	for _, l := range g.Status().Listeners {
		if l.Name == name {
			return l.Address
		}
	}
	g.t.Fatalf("there is no listener %s", name)
	return ""
}

// places counts the addresses that were given out.
var places atomic.Uint32

// elsewhere is an address of this machine from which nobody has come yet, so that no refusal before makes one late.
func elsewhere() net.Addr {
	n := places.Add(1)
	return &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>8), byte(n))}
}

// visit is how a client comes.
type visit struct {
	over   string      // the listener: tcp, tls, ws, wss
	from   net.Addr    // nil: an address of its own
	trust  *tls.Config // nil: the authority, and no certificate
	header http.Header // of the WebSocket handshake
}

// open connects and sends nothing. The caller closes.
func (g *rig) open(v visit) (*stompclient.Conn, error) {
	if v.from == nil {
		v.from = elsewhere()
	}
	if v.trust == nil {
		v.trust = authority().trust()
	}
	dialer := &net.Dialer{LocalAddr: v.from, Timeout: patience}
	address := g.at(v.over)
	switch v.over {
	case "tcp":
		nc, err := dialer.Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		return stompclient.NewConn(nc), nil
	case "tls":
		nc, err := (&tls.Dialer{NetDialer: dialer, Config: v.trust}).Dial("tcp", address)
		if err != nil {
			return nil, err
		}
		return stompclient.NewConn(nc), nil
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: v.trust, DisableKeepAlives: true}}
	return stompclient.DialWebSocketBy(client, v.over+"://"+address+"/stomp", v.header)
}

// client is a STOMP client whose faults end the test.
type client struct {
	*stompclient.Conn
	t *testing.T
}

// come connects; the test's end closes.
func (g *rig) come(v visit) *client {
	g.t.Helper()
	c, err := g.open(v)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = c.Close() }) // It may be closed already.
	g.clients = append(g.clients, &client{c, g.t})
	return g.clients[len(g.clients)-1]
}

// closeAll has all clients leave that have come so far.
func (g *rig) closeAll() {
	for _, c := range g.clients {
		_ = c.Close() // It may be closed already.
	}
	g.clients = nil
}

// login connects over TCP as a client with these headers of CONNECT.
func (g *rig) login(nameValue ...string) *client {
	g.t.Helper()
	c := g.come(visit{over: "tcp"})
	c.connect(nameValue...)
	return c
}

// connect sends CONNECT and reads CONNECTED.
func (c *client) connect(nameValue ...string) stompclient.Frame {
	c.t.Helper()
	f, err := c.Connect("1.2", nameValue...)
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

// do sends a frame without body.
func (c *client) do(command string, nameValue ...string) {
	c.t.Helper()
	if err := c.Send(stompclient.New(command, nameValue...)); err != nil {
		c.t.Fatal(err)
	}
}

// send sends a message.
func (c *client) send(destination, body string, nameValue ...string) {
	c.t.Helper()
	f := stompclient.New("SEND", append(nameValue, "destination", destination)...).WithBody([]byte(body))
	if err := c.Send(f); err != nil {
		c.t.Fatal(err)
	}
}

// next reads a frame, which must be of that command.
func (c *client) next(command string) stompclient.Frame {
	c.t.Helper()
	f, err := c.Read(patience)
	if err != nil || f.Command != command {
		c.t.Fatalf("got %s, %v, want a %s", f, err, command)
	}
	return f
}

// receipt waits for the effect of what was sent, by a receipt of that name.
func (c *client) receipt(id string) {
	c.t.Helper()
	if got := c.next("RECEIPT").Get("receipt-id"); got != id {
		c.t.Fatalf("got a RECEIPT for %q, want %q", got, id)
	}
}

// subscribe waits for the subscription.
func (c *client) subscribe(id, destination string, nameValue ...string) {
	c.t.Helper()
	c.do("SUBSCRIBE", append(nameValue, "id", id, "destination", destination, "receipt", id)...)
	c.receipt(id)
}

// refused reads an ERROR that tells the text, and the end.
func (c *client) refused(text string) stompclient.Frame {
	c.t.Helper()
	f := c.next("ERROR")
	if got := f.Get("message"); !strings.Contains(got, text) {
		c.t.Errorf("the ERROR says %q, want %q", got, text)
	}
	if err := c.ExpectClose(patience); err != nil {
		c.t.Error(err)
	}
	return f
}

// alive says that the session goes on.
func (c *client) alive() {
	c.t.Helper()
	c.do("BEGIN", "transaction", "alive", "receipt", "alive")
	c.receipt("alive")
	c.do("ABORT", "transaction", "alive")
}

// output is what a server logs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// record is one line of the log.
type record map[string]any

// audit returns the records of the audit log with that message.
func (g *rig) audit(message string) []record {
	g.t.Helper()
	return slices.DeleteFunc(g.lines(message), func(r record) bool { return r["stream"] != "audit" })
}

// lines returns the records of the log with that message.
func (g *rig) lines(message string) []record {
	g.t.Helper()
	var all []record
	for line := range strings.Lines(g.log.String()) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			g.t.Fatalf("a line of the log is no JSON: %v\n%s", err, line)
		}
		if r["msg"] == message {
			all = append(all, r)
		}
	}
	return all
}

// of returns those of a client's address.
func of(all []record, remote string) []record {
	return slices.DeleteFunc(slices.Clone(all), func(r record) bool {
		return r["remote"] != remote && !strings.HasPrefix(fmt.Sprint(r["remote"]), remote+":")
	})
}
