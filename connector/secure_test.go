package connector_test

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
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/stompclient"
)

// certify writes a certificate for this machine and returns what trusts it.
func certify(t *testing.T, dir string, serial int64) (cert, key string, trust *tls.Config) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, key, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// secureRig has listeners tls and wss.
func secureRig(t *testing.T, change func(*connector.Config)) (g *rig, trust *tls.Config, dir string) {
	t.Helper()
	dir = t.TempDir()
	cert, key, trust := certify(t, dir, 1)
	g = newRig(t, func(c *connector.Config) {
		c.Listeners.TLS = connector.TLSListener{Address: "127.0.0.1:0", CertFile: cert, KeyFile: key}
		c.Listeners.WSS = connector.WSListener{Address: "127.0.0.1:0", CertFile: cert, KeyFile: key, Paths: []string{"/stomp"}, Origins: []string{"https://app.example"}}
		if change != nil {
			change(c)
		}
	})
	return g, trust, dir
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

// secureClient connects over TLS.
func (g *rig) secureClient(trust *tls.Config) *client {
	g.t.Helper()
	nc, err := tls.Dial("tcp", g.at("tls"), trust)
	if err != nil {
		g.t.Fatal(err)
	}
	c := &client{stompclient.NewConn(nc), g.t}
	g.t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Connect("1.2"); err != nil {
		g.t.Fatal(err)
	}
	return c
}

// relay sends a message to a topic from one client to another.
func relay(t *testing.T, from, to *client, topic string) {
	t.Helper()
	if err := to.Send(stompclient.New("SUBSCRIBE", "id", topic, "destination", topic, "receipt", "s")); err != nil {
		t.Fatal(err)
	}
	if f, err := to.Read(patience); err != nil || f.Command != "RECEIPT" {
		t.Fatalf("got %s, %v", f, err)
	}
	if err := from.Send(stompclient.New("SEND", "destination", topic).WithBody([]byte(strings.Repeat("x", 100_000)))); err != nil {
		t.Fatal(err)
	}
	if f, err := to.Read(patience); err != nil || f.Command != "MESSAGE" || len(f.Body) != 100_000 {
		t.Fatalf("got %s, %v", f, err)
	}
}

func TestTLSListener(t *testing.T) {
	g, trust, dir := secureRig(t, nil)
	live := g.secureClient(trust)
	relay(t, live, g.dial(), "/topic/a")
	old := trust.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if nc, err := tls.Dial("tcp", g.at("tls"), old); err == nil {
		_ = nc.Close()
		t.Error("TLS 1.1 is accepted")
	}
	_, _, trust = certify(t, dir, 2)
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	next := g.secureClient(trust) // Trusts the new certificate only.
	relay(t, live, next, "/topic/b")
	relay(t, next, live, "/topic/c")
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.Reload(); err == nil {
		t.Error("a broken key: got no error")
	}
	relay(t, g.secureClient(trust), live, "/topic/d")
	if got := g.Connections(); len(got) != 4 {
		t.Errorf("got %d connections", len(got))
	}
	g.stop()
	for {
		f, err := live.Read(patience)
		if err != nil {
			t.Fatal(err)
		}
		if f.Command == "ERROR" {
			if f.Get("message") != "server shutting down" {
				t.Errorf("got %s", f)
			}
			break
		}
	}
}

// TestPlainOnTLS: STOMP in clear on the port of TLS is answered in clear.
func TestPlainOnTLS(t *testing.T) {
	g, _, _ := secureRig(t, nil)
	nc, err := net.Dial("tcp", g.at("tls"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := stompclient.NewConn(nc)
	if f, err := c.Connect("1.2"); err == nil || f.Command != "ERROR" || !strings.Contains(f.Get("message"), "this port speaks TLS") {
		t.Errorf("got %s, %v", f, err)
	}
	resp, err := http.Get("http://" + g.at("wss") + "/stomp")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "this port speaks TLS") {
		t.Errorf("got %s %q", resp.Status, text)
	}
	until(t, "log", func() bool { return strings.Count(g.log.String(), "the client does not speak TLS") == 2 })
}

// TestWSSListener with a client that sends what a browser does.
func TestWSSListener(t *testing.T) {
	g, trust, _ := secureRig(t, nil)
	transport := &http.Transport{TLSClientConfig: trust}
	defer transport.CloseIdleConnections()
	dial := func(origin string) (*websocket.Conn, error) {
		header := http.Header{"Origin": {origin}, "User-Agent": {"Mozilla/5.0"}, "Cache-Control": {"no-cache"}, "Accept-Encoding": {"gzip, deflate, br"}}
		ws, _, err := websocket.Dial(t.Context(), "wss://"+g.at("wss")+"/stomp", &websocket.DialOptions{
			HTTPClient: &http.Client{Transport: transport}, HTTPHeader: header, Subprotocols: []string{"v12.stomp", "v11.stomp"},
			CompressionMode: websocket.CompressionContextTakeover,
		})
		return ws, err
	}
	for _, origin := range []string{"https://evil.example", "http://app.example", "https://app.example.evil.example", "null"} {
		if ws, err := dial(origin); err == nil {
			_ = ws.CloseNow()
			t.Errorf("a page of %s is let in", origin)
		}
	}
	ws, err := dial("https://app.example")
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	if got := ws.Subprotocol(); got != "v12.stomp" {
		t.Errorf("got the subprotocol %q", got)
	}
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("CONNECT\naccept-version:1.2\n\n\x00")); err != nil {
		t.Fatal(err)
	}
	if _, text, err := ws.Read(t.Context()); err != nil || !strings.HasPrefix(string(text), "CONNECTED\nversion:1.2\n") {
		t.Errorf("got %q, %v", text, err)
	}
	transports := map[string]int{}
	for _, c := range g.Connections() {
		transports[c.Transport]++
	}
	if transports["wss"] != 1 {
		t.Errorf("got the transports %v", transports)
	}
}

// TestT6ListenerThatCannotStart is fatal, unless it is optional.
func TestT6ListenerThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := certify(t, dir, 1)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, change := range map[string]func(l *connector.Listeners, optional bool){
		"tls, port taken": func(l *connector.Listeners, optional bool) {
			l.TLS = connector.TLSListener{Address: taken.Addr().String(), CertFile: cert, KeyFile: key, Optional: optional}
		},
		"tls, no certificate": func(l *connector.Listeners, optional bool) {
			l.TLS = connector.TLSListener{Address: "127.0.0.1:0", CertFile: "missing", KeyFile: key, Optional: optional}
		},
		"tls, no authority": func(l *connector.Listeners, optional bool) {
			l.TLS = connector.TLSListener{Address: "127.0.0.1:0", CertFile: cert, KeyFile: key, ClientCAFile: key, Optional: optional}
		},
		"wss, key is no key": func(l *connector.Listeners, optional bool) {
			l.WSS = connector.WSListener{Address: "127.0.0.1:0", CertFile: cert, KeyFile: cert, Paths: []string{"/"}, Optional: optional}
		},
	} {
		for _, optional := range []bool{false, true} {
			var log logText
			cfg := config(t.TempDir())
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			change(&cfg.Listeners, optional)
			s, err := connector.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			err = s.Start(t.Context())
			if (err == nil) != optional || err != nil && !strings.Contains(err.Error(), "listeners."+name[:3]) {
				t.Errorf("%s, optional %t: got %v", name, optional, err)
			}
			if err != nil {
				continue
			}
			if !strings.Contains(log.String(), "optional listener did not start") {
				t.Errorf("%s: got the log %s", name, &log)
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			if err := s.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			cancel()
		}
	}
}

// TestClientCertificateIsAsked for by a listener with an authority.
func TestClientCertificateIsAsked(t *testing.T) {
	g, trust, dir := secureRig(t, func(c *connector.Config) { c.Listeners.TLS.ClientCAFile = c.Listeners.TLS.CertFile })
	nc, err := tls.Dial("tcp", g.at("tls"), trust)
	if err == nil {
		_, err = stompclient.NewConn(nc).Connect("1.2") // With TLS 1.3 the client hears of it at its first read.
		_ = nc.Close()
	}
	if err == nil {
		t.Error("a client without a certificate is let in")
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	trust.Certificates = []tls.Certificate{pair}
	relay(t, g.secureClient(trust), g.dial(), "/topic/a")
}
