package connector_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// secureServer has listeners tls and wss, whose certificate has another signer than any other test's.
func secureServer(t *testing.T, change func(*connector.Config)) (g *node, signer *rig.Issuer, files connector.TLSListener) {
	t.Helper()
	signer = rig.NewIssuer()
	files.CertFile, files.KeyFile = signer.Server(t)
	g = start(t, func(c *connector.Config) {
		c.Listeners.TLS = connector.TLSListener{Address: "127.0.0.1:0", CertFile: files.CertFile, KeyFile: files.KeyFile}
		c.Listeners.WSS = connector.WSListener{
			Address: "127.0.0.1:0", CertFile: files.CertFile, KeyFile: files.KeyFile, Paths: []string{"/stomp"}, Origins: []string{"https://app.example"},
		}
		if change != nil {
			change(c)
		}
	})
	return g, signer, files
}

// secureClient connects over TLS.
func (g *node) secureClient(trust *tls.Config) *client {
	g.t.Helper()
	c := g.Come(rig.Visit{Over: "tls", Trust: trust})
	c.Login()
	return &client{c, g.t}
}

// relay sends a message to a topic from one client to another.
func relay(t *testing.T, from, to *client, topic string) {
	t.Helper()
	to.Subscribe(topic, topic)
	body := strings.Repeat("x", 100_000)
	from.Publish(topic, body)
	to.Message(body)
}

func TestTLSListener(t *testing.T) {
	g, signer, files := secureServer(t, nil)
	trust := signer.Trust()
	live := g.secureClient(trust)
	relay(t, live, g.dial(), "/topic/a")
	old := trust.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if nc, err := tls.Dial("tcp", g.At("tls"), old); err == nil {
		_ = nc.Close()
		t.Error("TLS 1.1 is accepted")
	}
	signer = rig.NewIssuer()
	cert, key := rig.Encode(signer.Sign(x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, time.Now().Add(time.Hour)))
	rig.Replace(t, files.CertFile, cert)
	rig.Replace(t, files.KeyFile, key)
	trust = signer.Trust()
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	next := g.secureClient(trust) // Trusts the new certificate only.
	relay(t, live, next, "/topic/b")
	relay(t, next, live, "/topic/c")
	rig.Replace(t, files.KeyFile, "x")
	if err := g.Reload(); err == nil {
		t.Error("a broken key: got no error")
	}
	relay(t, g.secureClient(trust), live, "/topic/d")
	if got := g.Connections(); len(got) != 4 {
		t.Errorf("got %d connections", len(got))
	}
	g.Stop()
	for {
		f, err := live.Read(rig.Patience)
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
	g, _, _ := secureServer(t, nil)
	nc, err := net.Dial("tcp", g.At("tls"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := stompclient.NewConn(nc)
	if f, err := c.Connect("1.2"); err == nil || f.Command != "ERROR" || !strings.Contains(f.Get("message"), "this port speaks TLS") {
		t.Errorf("got %s, %v", f, err)
	}
	resp, err := http.Get("http://" + g.At("wss") + "/stomp")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "this port speaks TLS") {
		t.Errorf("got %s %q", resp.Status, text)
	}
	rig.Holds(t, "log", func() bool { return strings.Count(g.Log.String(), "the client does not speak TLS") == 2 })
}

// TestWSSListener with a client that sends what a browser does.
func TestWSSListener(t *testing.T) {
	g, signer, _ := secureServer(t, nil)
	trust := signer.Trust()
	transport := &http.Transport{TLSClientConfig: trust}
	defer transport.CloseIdleConnections()
	dial := func(origin string) (*websocket.Conn, error) {
		header := http.Header{"Origin": {origin}, "User-Agent": {"Mozilla/5.0"}, "Cache-Control": {"no-cache"}, "Accept-Encoding": {"gzip, deflate, br"}}
		ws, _, err := websocket.Dial(t.Context(), "wss://"+g.At("wss")+"/stomp", &websocket.DialOptions{
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
	cert, key := rig.Authority().Server(t)
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
			var log rig.Log
			cfg := rig.Config(t.TempDir())
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
			rig.Shutdown(t, s)
		}
	}
}

// TestClientCertificateIsAsked for by a listener with an authority.
func TestClientCertificateIsAsked(t *testing.T) {
	own := rig.Authority()
	g, signer, _ := secureServer(t, func(c *connector.Config) {
		c.Listeners.TLS.ClientCAFile = rig.Put(t, "authority.pem", string(own.PEM()))
	})
	trust := signer.Trust()
	nc, err := tls.Dial("tcp", g.At("tls"), trust)
	if err == nil {
		_, err = stompclient.NewConn(nc).Connect("1.2") // With TLS 1.3 the client hears of it at its first read.
		_ = nc.Close()
	}
	if err == nil {
		t.Error("a client without a certificate is let in")
	}
	trust.Certificates = []tls.Certificate{own.Named(t, "urn:a", time.Now().Add(time.Hour))}
	relay(t, g.secureClient(trust), g.dial(), "/topic/a")
}
