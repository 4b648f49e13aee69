package identity_test

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/tokens"
)

const (
	cookieName = "session"
	page       = "https://app.example"
)

// server is a server with every listener that logs everything.
type server struct {
	*rig.Server
	t *testing.T

	mu      sync.Mutex
	clients []*rig.Client // guarded by mu; of come
}

// of is the same server for a subtest.
func (g *server) of(t *testing.T) *server { return &server{t: t, Server: g.Server} }

func start(t *testing.T, change func(*connector.Config)) *server {
	t.Helper()
	cert, key := rig.Authority().Server(t)
	return &server{t: t, Server: rig.Start(t, func(cfg *connector.Config) {
		cfg.Listeners.TLS = connector.TLSListener{Address: "127.0.0.1:0", CertFile: cert, KeyFile: key}
		cfg.Listeners.WS = connector.WSListener{Address: "127.0.0.1:0", Paths: []string{"/stomp"}, Origins: []string{page}}
		cfg.Listeners.WSS = connector.WSListener{Address: "127.0.0.1:0", Paths: []string{"/stomp"}, Origins: []string{page}, CertFile: cert, KeyFile: key}
		cfg.Listeners.Admin.Address = "127.0.0.1:0"
		if change != nil {
			change(cfg)
		}
	})}
}

// allow lets everybody do everything.
func allow(t *testing.T, c *connector.Config) {
	t.Helper()
	c.Authz.Policy = rig.Put(t, "policy.csv", "p, *, *, >, *, allow\n")
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

// places counts the addresses that were given out.
var places atomic.Uint32

// elsewhere is an address of this machine from which nobody has come yet, so that no refusal before makes one late.
func elsewhere() net.Addr {
	n := places.Add(1)
	return &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>8), byte(n))}
}

// open connects, from an address of its own unless the visit has one, and sends nothing. The caller closes.
func (g *server) open(v rig.Visit) (*stompclient.Conn, error) {
	if v.From == nil {
		v.From = elsewhere()
	}
	return g.Open(v)
}

// come connects; the test's end closes.
func (g *server) come(v rig.Visit) *rig.Client {
	g.t.Helper()
	c, err := g.open(v)
	if err != nil {
		g.t.Fatal(err)
	}
	client := rig.NewClient(g.t, c)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clients = append(g.clients, client)
	return client
}

// closeAll has all clients leave that have come so far.
func (g *server) closeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.clients {
		_ = c.Close() // It may be closed already.
	}
	g.clients = nil
}

// login connects over TCP as a client with these headers of CONNECT.
func (g *server) login(nameValue ...string) *rig.Client {
	g.t.Helper()
	c := g.come(rig.Visit{})
	c.Login(nameValue...)
	return c
}

// record is one line of the log.
type record map[string]any

// audit returns the records of the audit log with that message.
func (g *server) audit(message string) []record {
	g.t.Helper()
	return slices.DeleteFunc(g.lines(message), func(r record) bool { return r["stream"] != "audit" })
}

// lines returns the records of the log with that message.
func (g *server) lines(message string) []record {
	g.t.Helper()
	var all []record
	for line := range strings.Lines(g.Log.String()) {
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
