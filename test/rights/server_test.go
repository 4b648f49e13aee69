package rights_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/stompclient"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// transports are the ways to a server.
var transports = []string{"tcp", "tls", "ws"}

// server is a server with a policy, on a NATS of its own. Who a client is its login says.
type server struct {
	*connector.Server
	t      *testing.T
	policy string
	trust  *tls.Config
}

// start starts a server with a policy.
func start(t *testing.T, policy string, change func(*connector.Config)) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{t: t, policy: filepath.Join(dir, "policy.csv")}
	s.write(policy)
	cfg := connector.DefaultConfig()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg.Listeners.TCP.Address, cfg.Listeners.WS.Address, cfg.Listeners.Admin.Address = "127.0.0.1:0", "127.0.0.1:0", "off"
	cfg.Listeners.TLS.Address = "127.0.0.1:0"
	cfg.Listeners.TLS.CertFile, cfg.Listeners.TLS.KeyFile, s.trust = certify(t, dir)
	cfg.NATS.Embedded.Listen, cfg.NATS.Embedded.StoreDir, cfg.NATS.Embedded.Durability = "127.0.0.1:0", filepath.Join(dir, "store"), "os"
	cfg.Authz.Policy = s.policy
	cfg.RPC.StompResponders = true
	if change != nil {
		change(&cfg)
	}
	var err error
	if s.Server, err = connector.New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return s
}

// write puts a policy into the file.
func (s *server) write(policy string) {
	s.t.Helper()
	if err := os.WriteFile(s.policy+".new", []byte(policy), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(s.policy+".new", s.policy); err != nil {
		s.t.Fatal(err)
	}
}

// load puts a policy in force.
func (s *server) load(policy string) {
	s.t.Helper()
	s.write(policy)
	if err := s.Reload(); err != nil {
		s.t.Fatal(err)
	}
}

// certify makes a certificate for this machine.
func certify(t *testing.T, dir string) (cert, key string, trust *tls.Config) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(text)
	if err := os.WriteFile(cert, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		t.Fatal(err)
	}
	return cert, key, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// dial opens a connection.
func (s *server) dial(transport string) *client {
	s.t.Helper()
	address := ""
	for _, l := range s.Status().Listeners {
		if l.Name == transport {
			address = l.Address
		}
	}
	var conn *stompclient.Conn
	var err error
	switch transport {
	case "tcp":
		conn, err = stompclient.Dial(address)
	case "ws":
		conn, err = stompclient.DialWebSocket("ws://" + address + "/stomp")
	default:
		var nc *tls.Conn
		if nc, err = tls.Dial("tcp", address, s.trust); err == nil {
			conn = stompclient.NewConn(nc)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() }) // It may be closed already.
	return &client{conn, s.t}
}

// as opens a session of somebody.
func (s *server) as(login string) *client { s.t.Helper(); return s.over("tcp", login) }

func (s *server) over(transport, login string) *client {
	s.t.Helper()
	c := s.dial(transport)
	if _, err := c.Connect("1.2", "login", login); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// native is a NATS client beside it.
func (s *server) native() *nats.Conn {
	s.t.Helper()
	nc, err := nats.Connect("nats://" + s.Status().NATS.ClientAddress)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// listen subscribes natively to a subject.
func (s *server) listen(nc *nats.Conn, subject string) *nats.Subscription {
	s.t.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return sub
}

// client is a session whose faults end the test.
type client struct {
	*stompclient.Conn
	t *testing.T
}

// frame sends a frame, whose body is that in the header "body".
func (c *client) frame(command string, nameValue ...string) {
	c.t.Helper()
	f := stompclient.New(command)
	for i := 0; i < len(nameValue); i += 2 {
		if nameValue[i] == "body" {
			f = f.WithBody([]byte(nameValue[i+1]))
			continue
		}
		f.Headers = append(f.Headers, stompclient.Header{Name: nameValue[i], Value: nameValue[i+1]})
	}
	if err := c.Send(f); err != nil {
		c.t.Fatalf("sending %s: %v", f, err)
	}
}

// ask sends a frame and waits for its receipt, which must be what comes next.
func (c *client) ask(command string, nameValue ...string) {
	c.t.Helper()
	c.frame(command, append(nameValue, "receipt", "asked")...)
	if f := c.next("RECEIPT"); f.Get("receipt-id") != "asked" {
		c.t.Fatalf("got %s, want the receipt of %s", f, command)
	}
}

// next is the next frame, which must be of that command.
func (c *client) next(command string) stompclient.Frame {
	c.t.Helper()
	f, err := c.Read(patience)
	if err != nil || f.Command != command {
		c.t.Fatalf("got %s, %v, want a %s", f, err, command)
	}
	return f
}

// message is the next MESSAGE, which must have that body.
func (c *client) message(body string) stompclient.Frame {
	c.t.Helper()
	f := c.next("MESSAGE")
	if string(f.Body) != body {
		c.t.Fatalf("got %s %q, want the message %q", f, f.Body, body)
	}
	return f
}

// nothing says that nothing has come: a message of its own does next.
func (c *client) nothing() {
	c.t.Helper()
	c.ask("BEGIN", "transaction", "nothing")
	c.ask("ABORT", "transaction", "nothing")
}

// denied reads the ERROR that refuses an action, and the end of the session.
func (c *client) denied(action, destination string) {
	c.t.Helper()
	c.ended("access denied: no right to " + action + " " + destination)
}

// ended reads an ERROR and the end of the session.
func (c *client) ended(text string) {
	c.t.Helper()
	f := c.next("ERROR")
	if got := f.Get("message"); !strings.HasPrefix(got, text) {
		c.t.Fatalf("the ERROR says %q, want %q", got, text)
	}
	if err := c.ExpectClose(patience); err != nil {
		c.t.Fatal(err)
	}
}

// outcome reads what becomes of the last frame, which asked for the receipt "asked": nil for a receipt, else the ERROR.
// Messages that come before are returned.
func (c *client) outcome() (refusal string, messages []stompclient.Frame) {
	c.t.Helper()
	for {
		f, err := c.Read(patience)
		switch {
		case err != nil:
			c.t.Fatal(err)
		case f.Command == "ERROR":
			return f.Get("message"), messages
		case f.Command == "RECEIPT" && f.Get("receipt-id") == "asked":
			return "", messages
		}
		messages = append(messages, f)
	}
}
