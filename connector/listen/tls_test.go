package listen_test

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/listen"
	"github.com/natstomp/natstomp/test/rig"
)

// TestT1Versions: TLS 1.2 and 1.3 with every suite that is good, and nothing else.
func TestT1Versions(t *testing.T) {
	a, f := goodFiles(t)
	s := serveTLS(t, f.TLSFiles)
	for _, tt := range []struct {
		name     string
		min, max uint16
		want     bool
	}{
		{"1.0", tls.VersionTLS10, tls.VersionTLS10, false},
		{"1.1", tls.VersionTLS10, tls.VersionTLS11, false},
		{"1.2", tls.VersionTLS12, tls.VersionTLS12, true},
		{"1.3", tls.VersionTLS13, tls.VersionTLS13, true},
	} {
		config := a.Trust()
		config.MinVersion, config.MaxVersion = tt.min, tt.max
		nc, err := tls.Dial("tcp", s.address, config)
		if err == nil {
			err = errors.Join(talk(nc), nc.Close())
		}
		if (err == nil) != tt.want {
			t.Errorf("TLS %s: got %v", tt.name, err)
		}
	}
	accepted := 0
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		config := a.Trust()
		config.MaxVersion, config.CipherSuites = tls.VersionTLS12, []uint16{suite.ID}
		nc, err := tls.Dial("tcp", s.address, config)
		if err != nil {
			continue
		}
		accepted++
		_ = nc.Close()
		if !strings.HasPrefix(suite.Name, "TLS_ECDHE_") || strings.Contains(suite.Name, "CBC") {
			t.Errorf("%s is accepted", suite.Name)
		}
	}
	if accepted != 3 { // Those of an ECDSA key.
		t.Errorf("got %d suites, want 3", accepted)
	}
	if !strings.Contains(s.log.String(), "client offered only unsupported versions") {
		t.Errorf("got the log %s", s.log)
	}
}

// TestT2Reload: new connections get the new certificate, those that there are go on; a bad one changes nothing.
func TestT2Reload(t *testing.T) {
	a, f := goodFiles(t)
	s := serveTLS(t, f.TLSFiles)
	old := dialTLS(t, s.address, a.Trust())
	serves := func(name string) func() bool {
		return func() bool {
			nc, err := tls.Dial("tcp", s.address, a.Trust())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			return nc.ConnectionState().PeerCertificates[0].Subject.CommonName == name
		}
	}
	hour := time.Now().Add(time.Hour)
	second, secondKey := issue(a, "second", time.Now().Add(-time.Minute), hour)
	f.put(t, second, secondKey)
	rig.Holds(t, "second certificate", serves("second"))
	if err := talk(old); err != nil {
		t.Errorf("a connection from before: %v", err)
	}
	expired, expiredKey := issue(a, "expired", time.Now().Add(-time.Hour), time.Now().Add(-time.Minute))
	early, earlyKey := issue(a, "early", hour, hour.Add(time.Hour))
	for _, tt := range []struct {
		name      string
		cert, key string
		want      string
	}{
		{"key of another", second, expiredKey, "private key does not match"},
		{"expired", expired, expiredKey, "the certificate expired at"},
		{"not valid yet", early, earlyKey, "the certificate is not valid before"},
		{"broken", "x", secondKey, "failed to find any PEM data"},
	} {
		f.put(t, tt.cert, tt.key)
		rig.Holds(t, tt.name, func() bool { return strings.Contains(s.log.String(), tt.want) })
		if !serves("second")() {
			t.Errorf("%s: the certificate from before is not in use any more", tt.name)
		}
	}
	if err := os.Remove(f.Certificate); err != nil {
		t.Fatal(err)
	}
	rig.Holds(t, "missing file", func() bool { return strings.Contains(s.log.String(), "no such file") })
	third, thirdKey := issue(a, "third", time.Now().Add(-time.Minute), hour)
	f.put(t, third, thirdKey)
	rig.Holds(t, "third certificate", serves("third"))
	if err := talk(old); err != nil {
		t.Errorf("the connection from before all that: %v", err)
	}
	rig.Replace(t, f.Key, secondKey)
	if s.Reload() == nil {
		t.Error("Reload told no fault")
	}
}

// TestReloadWhileClientsCome: no handshake fails while certificates change.
func TestReloadWhileClientsCome(t *testing.T) {
	a, f := goodFiles(t)
	s := serveTLS(t, f.TLSFiles)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				nc, err := tls.Dial("tcp", s.address, a.Trust())
				if err != nil {
					t.Error(err)
					return
				}
				_ = nc.Close()
			}
		})
	}
	for range 20 {
		cert, key := issue(a, "next", time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
		f.put(t, cert, key)
		if err := s.Reload(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

// TestClientCertificates holds FR-124: the reason of a refusal is in the log.
func TestClientCertificates(t *testing.T) {
	a, f := goodFiles(t)
	f.ClientCA = filepath.Join(f.dir, "ca")
	rig.Replace(t, f.ClientCA, string(a.PEM()))
	s := serveTLS(t, f.TLSFiles)
	with := func(cert, key string) *tls.Config {
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		return a.Trust(pair)
	}
	now := time.Now()
	for _, tt := range []struct {
		name   string
		config *tls.Config
		want   string // in the log; empty: accepted
	}{
		{"none", a.Trust(), "client didn't provide a certificate"},
		{"of another authority", with(issue(rig.NewIssuer(), "alice", now.Add(-time.Minute), now.Add(time.Hour))), "client didn't provide a certificate"},
		{"expired", with(issue(a, "alice", now.Add(-time.Hour), now.Add(-time.Minute))), "expired"},
		{"good", with(issue(a, "alice", now.Add(-time.Minute), now.Add(time.Hour))), ""},
	} {
		nc, err := tls.Dial("tcp", s.address, tt.config)
		if err == nil {
			err = errors.Join(talk(nc), nc.Close()) // With TLS 1.3 the client hears of a refusal at its first read only.
		}
		if (err == nil) != (tt.want == "") {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if tt.want != "" {
			rig.Holds(t, "log of "+tt.name, func() bool { return strings.Contains(s.log.String(), tt.want) })
			continue
		}
		cert := listen.PeerCertificate(<-s.conns)
		if cert == nil || cert.Subject.CommonName != "alice" {
			t.Errorf("%s: got %v", tt.name, cert)
		}
	}
	if listen.PeerCertificate(&net.TCPConn{}) != nil {
		t.Error("a connection without TLS has a certificate")
	}
}

// TestNoClientCertificateIsAskedFor without an authority, and a certificate that is not verified counts for nothing.
func TestNoClientCertificateIsAskedFor(t *testing.T) {
	a, f := goodFiles(t)
	s := serveTLS(t, f.TLSFiles)
	asked := false
	config := a.Trust()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = true
		return &tls.Certificate{}, nil
	}
	if err := talk(dialTLS(t, s.address, config)); err != nil || asked {
		t.Errorf("got %v, asked %t", err, asked)
	}
	if listen.PeerCertificate(<-s.conns) != nil {
		t.Error("got a certificate")
	}
}

func TestTLSFaults(t *testing.T) {
	a, f := goodFiles(t)
	for name, change := range map[string]func(*listen.TLSFiles){
		"no certificate": func(f *listen.TLSFiles) { f.Certificate = "missing" },
		"no key":         func(f *listen.TLSFiles) { f.Key = "missing" },
		"no authority":   func(f *listen.TLSFiles) { f.ClientCA = "missing" },
		"no PEM":         func(f *listen.TLSFiles) { f.ClientCA = f.Key },
	} {
		bad := f.TLSFiles
		change(&bad)
		if _, err := listen.NewTLS(bad, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	cert, key := issue(a, "expired", time.Now().Add(-time.Hour), time.Now().Add(-time.Minute))
	f.put(t, cert, key)
	var log rig.Log
	if _, err := listen.NewTLS(f.TLSFiles, slog.New(slog.NewTextHandler(&log, nil))); err != nil || !strings.Contains(log.String(), "expired at") {
		t.Errorf("expired at the start: got %v and the log %s", err, &log)
	}
}
