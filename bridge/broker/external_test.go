package broker_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/natstomp/natstomp/bridge/broker"
)

// serveNATS starts a server of its own with that configuration and returns host:port of it.
func serveNATS(t *testing.T, config string) (*server.Server, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := fmt.Sprintf("listen: \"127.0.0.1:-1\"\njetstream { store_dir: %q }\n%s", t.TempDir(), config)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	opts.NoSigs, opts.NoLog = true, true
	srv, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(20 * time.Second) {
		t.Fatal("NATS is not ready")
	}
	return srv, srv.Addr().String()
}

// external starts a broker on an external NATS and joins it.
func external(t *testing.T, change func(*broker.Config)) (*broker.Broker, error) {
	t.Helper()
	cfg := broker.DefaultConfig()
	change(&cfg)
	b, err := broker.Start(t.Context(), cfg, options())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { stop(t, b, nil) })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return b, b.Join(ctx)
}

// write puts text into a file of the test and returns its path.
func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// working fails the test unless all roles of b work.
func working(t *testing.T, b *broker.Broker) {
	t.Helper()
	if err := b.Ready(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "W", Subjects: []string{"w"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.JS.Publish(t.Context(), "w", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for _, nc := range []*nats.Conn{b.Data, b.Wide} {
		if got, want := nc.ConnectedServerId(), b.Control.ConnectedServerId(); got != want {
			t.Errorf("a connection is on %s, another on %s", got, want)
		}
	}
}

func TestLogins(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		config string
		change func(c *broker.Config, address string)
	}{
		"none":        {"", func(c *broker.Config, at string) { c.URL = at }},
		"user":        {"authorization { user: u, password: p }", func(c *broker.Config, at string) { c.URL, c.User, c.Password = at, "u", "p" }},
		"in the url":  {"authorization { user: u, password: p }", func(c *broker.Config, at string) { c.URL = "nats://u:p@" + at }},
		"token":       {"authorization { token: secret }", func(c *broker.Config, at string) { c.URL, c.Token = at, "secret" }},
		"nkey":        {"authorization { users: [{nkey: " + public + "}] }", func(c *broker.Config, at string) { c.URL, c.NKey = at, write(t, "seed", seed) }},
		"a list":      {"", func(c *broker.Config, at string) { c.URL = "nats://127.0.0.1:1, " + at }},
		"explicit r1": {"", func(c *broker.Config, at string) { c.URL, c.Replicas = at, "1" }},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := serveNATS(t, test.config)
			b, err := external(t, func(c *broker.Config) { test.change(c, address) })
			if err != nil {
				t.Fatal(err)
			}
			working(t, b)
			if got, want := b.Durability(), "nats;r=1"; got != want {
				t.Errorf("durability: got %q, want %q", got, want)
			}
			if strings.Contains(b.Address(), "p@") {
				t.Errorf("the address shows the login: %s", b.Address())
			}
			if got, want := b.Storage(), jetstream.FileStorage; got != want {
				t.Errorf("storage: got %s, want %s", got, want)
			}
		})
	}
}

func TestOperatorMode(t *testing.T) {
	// Made by server's own rules: an operator, an account with JetStream, a user.
	config, creds := operator(t)
	_, address := serveNATS(t, config)
	b, err := external(t, func(c *broker.Config) { c.URL, c.Creds = address, write(t, "user.creds", creds) })
	if err != nil {
		t.Fatal(err)
	}
	working(t, b)
}

func TestRefusedLoginIsTriedAgain(t *testing.T) {
	srv, address := serveNATS(t, "authorization { user: u, password: wrong }")
	var log logText
	cfg := broker.DefaultConfig()
	cfg.URL, cfg.User, cfg.Password = address, "u", "p"
	o := options()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	b, err := broker.Start(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, b, nil)
	if err := b.Join(t.Context()); !errors.Is(err, broker.ErrNotReady) || !strings.Contains(err.Error(), "uthorization") {
		t.Errorf("Join: got %v, want that the login is refused", err)
	}
	if err := b.Ready(); !errors.Is(err, broker.ErrNotReady) || !strings.Contains(err.Error(), "uthorization") {
		t.Errorf("Ready: got %v, want that the login is refused", err)
	}
	if got := b.Durability(); got != "" {
		t.Errorf("durability before Join: got %q, want none", got)
	}
	port := srv.Addr().(*net.TCPAddr).Port
	srv.Shutdown()
	srv.WaitForShutdown()
	restarted, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, Username: "u", Password: "p", JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	restarted.Start()
	defer func() { restarted.Shutdown(); restarted.WaitForShutdown() }()
	eventually(t, func() error { return b.Join(t.Context()) })
	working(t, b)
	if n := strings.Count(log.String(), "nats cannot be reached"); n == 0 || n > 12 {
		t.Errorf("%d lines in the log about one fault:\n%s", n, log.String())
	}
}

func TestContexts(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	_, address := serveNATS(t, "authorization { user: u, password: p }\njetstream { domain: hub }")
	context := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, "nats", "context", name+".json")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	full := context("full", `{"url":"nats://`+address+`","user":"u","password":"p","inbox_prefix":"_INBOX_mine","jetstream_domain":"hub"}`)
	context("login", `{"url":"nats://127.0.0.1:1","user":"other","password":"other"}`)
	context("nsc", `{"url":"nats://`+address+`","nsc":"nsc://o/a/u"}`)
	context("jwt", `{"url":"nats://`+address+`","user_jwt":"x"}`)
	context("torn", `{"url":`)
	for name, test := range map[string]struct {
		change func(*broker.Config)
		want   string // of the error
	}{
		"by name":        {func(c *broker.Config) { c.Context = "full" }, ""},
		"by path":        {func(c *broker.Config) { c.Context = full }, ""},
		"settings win":   {func(c *broker.Config) { c.Context, c.URL, c.User, c.Password = "login", address, "u", "p" }, ""},
		"nsc":            {func(c *broker.Config) { c.Context = "nsc" }, `nats.context: the context "nsc" has nsc, which is not supported`},
		"user_jwt":       {func(c *broker.Config) { c.Context = "jwt" }, `has user_jwt, which is not supported`},
		"torn":           {func(c *broker.Config) { c.Context = "torn" }, `is no JSON`},
		"missing":        {func(c *broker.Config) { c.Context = "missing" }, `there is no context "missing"`},
		"path in a name": {func(c *broker.Config) { c.Context = "../full" }, `is no name of a context`},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := external(t, test.change)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Ready(); err != nil {
				t.Error(err)
			}
			if strings.HasPrefix(name, "by") && !strings.HasPrefix(b.Control.NewInbox(), "_INBOX_mine.") {
				t.Errorf("inbox prefix: got %s, want the context's", b.Control.NewInbox())
			}
			if got, want := b.JS.Options().Domain, map[bool]string{true: "hub"}[strings.HasPrefix(name, "by")]; got != want {
				t.Errorf("domain: got %q, want %q", got, want)
			}
		})
	}
}

func TestDomain(t *testing.T) {
	_, address := serveNATS(t, "jetstream { domain: hub }")
	b, err := external(t, func(c *broker.Config) { c.URL, c.Domain = address, "hub" })
	if err != nil {
		t.Fatal(err)
	}
	working(t, b)
	if _, err := external(t, func(c *broker.Config) { c.URL, c.Domain = address, "other" }); !errors.Is(err, broker.ErrNotReady) {
		t.Errorf("a domain that is not there: got %v, want %v", err, broker.ErrNotReady)
	}
}

func TestTLS(t *testing.T) {
	ca, cert, key := certificates(t)
	for name, first := range map[string]bool{"after INFO": false, "first": true} {
		t.Run(name, func(t *testing.T) {
			config := fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true, handshake_first: %v }", cert, key, ca, first)
			_, address := serveNATS(t, config)
			b, err := external(t, func(c *broker.Config) {
				c.URL, c.TLS = "tls://"+address, broker.TLS{CAFile: ca, CertFile: cert, KeyFile: key, First: first}
			})
			if err != nil {
				t.Fatal(err)
			}
			working(t, b)
			if _, err := external(t, func(c *broker.Config) { c.URL, c.TLS.First = "tls://"+address, first }); !errors.Is(err, broker.ErrNotReady) {
				t.Errorf("without the authority: got %v, want %v", err, broker.ErrNotReady)
			}
		})
	}
	if _, err := external(t, func(c *broker.Config) { c.URL, c.TLS.CAFile = "127.0.0.1:1", "missing.pem" }); err == nil || errors.Is(err, broker.ErrNotReady) {
		t.Errorf("a missing file: got %v, want an error of the start", err)
	}
}

func TestReplicasThatCannotBePlaced(t *testing.T) {
	_, address := serveNATS(t, "")
	b, err := external(t, func(c *broker.Config) { c.URL, c.Replicas, c.Durability = address, "3", "mine" })
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Replicas(); got != 3 {
		t.Errorf("replicas: got %d, want the 3 that were asked for", got)
	}
	if got, want := b.Durability(), "mine"; got != want {
		t.Errorf("durability: got %q, want %q", got, want)
	}
}

// certificates makes an authority and a certificate for both sides, and returns the paths of the files.
func certificates(t *testing.T) (ca, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "natstomp"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = write(t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	key = write(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
	return cert, cert, key
}
