package listen_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/listen"
	"github.com/natstomp/natstomp/test/rig"
)

// issue returns a certificate for this machine, or for a client, as PEM.
func issue(a *rig.Issuer, name string, begin, end time.Time) (cert, key string) {
	return rig.Encode(a.Sign(x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: begin, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, end))
}

// files are what a listener reads.
type files struct {
	listen.TLSFiles
	dir string
}

func newFiles(t *testing.T) *files {
	t.Helper()
	dir := t.TempDir()
	return &files{listen.TLSFiles{Certificate: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}, dir}
}

func (f *files) put(t *testing.T, cert, key string) {
	t.Helper()
	rig.Replace(t, f.Certificate, cert)
	rig.Replace(t, f.Key, key)
}

// secureServer accepts on a listener with TLS and sends back what it gets.
type secureServer struct {
	*listen.TLS
	address string
	log     *rig.Log
	conns   chan net.Conn
}

func serveTLS(t *testing.T, f listen.TLSFiles) *secureServer {
	t.Helper()
	s := &secureServer{log: &rig.Log{}, conns: make(chan net.Conn, 10)}
	var err error
	if s.TLS, err = listen.NewTLS(f, slog.New(slog.NewTextHandler(s.log, nil))); err != nil {
		t.Fatal(err)
	}
	s.Look(10 * time.Millisecond)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = inner.Addr().String()
	l := s.Listen(inner)
	var accepting, serving sync.WaitGroup
	var all []net.Conn
	accepting.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				return
			}
			all = append(all, nc)
			select {
			case s.conns <- nc:
			default: // Nobody looks at so many.
			}
			serving.Go(func() {
				_, _ = io.Copy(nc, nc) // Ends with the client.
				_ = nc.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
		for _, nc := range all {
			_ = nc.Close()
		}
		serving.Wait()
	})
	return s
}

// talk sends a line and wants it back.
func talk(nc net.Conn) error {
	if err := nc.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(nc, "hello\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(nc).ReadString('\n')
	if err == nil && line != "hello\n" {
		err = errors.New("got " + line)
	}
	return err
}

func dialTLS(t *testing.T, address string, config *tls.Config) *tls.Conn {
	t.Helper()
	nc, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

func goodFiles(t *testing.T) (*rig.Issuer, *files) {
	t.Helper()
	a, f := rig.NewIssuer(), newFiles(t)
	cert, key := issue(a, "server", time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
	f.put(t, cert, key)
	return a, f
}

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

// TestT3InClear: who speaks in clear is told so, and closed within a second.
func TestT3InClear(t *testing.T) {
	_, f := goodFiles(t)
	s := serveTLS(t, f.TLSFiles)
	for _, tt := range []struct{ name, sent, want string }{
		{"CONNECT", "CONNECT\naccept-version:1.2\n\n\x00", "ERROR\nmessage:this port speaks TLS"},
		{"STOMP", "STOMP\naccept-version:1.2\n\n\x00", "ERROR\nmessage:this port speaks TLS"},
		{"line ends before it", "\r\n\n\nCONNECT\n\n\x00", "ERROR\nmessage:this port speaks TLS"},
		{"HTTP", "GET /stomp HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.0 400 Bad Request\r\n"},
		{"something", "\x00\x01\x02\x03\x04\x05\x06\x07", ""},
		{"much", "CONNECT\n" + strings.Repeat("a:b\n", 10_000), "ERROR\nmessage:this port speaks TLS"},
	} {
		nc, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := io.WriteString(nc, tt.sent); err != nil {
			t.Fatal(err)
		}
		_ = nc.SetReadDeadline(time.Now().Add(20 * time.Second)) // A read tells.
		got, err := io.ReadAll(nc)
		if !strings.HasPrefix(string(got), tt.want) || (tt.want == "") != (len(got) == 0) || err != nil && tt.want != "" {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
		if tt.want != "" && strings.HasPrefix(tt.want, "ERROR") && !strings.HasSuffix(string(got), "to another port\x00\n") {
			t.Errorf("%s: got %q", tt.name, got)
		}
		_ = nc.Close()
		if took := time.Since(began); took > 4*time.Second { // A handshake may take 5 s.
			t.Errorf("%s: closed after %v", tt.name, took)
		}
	}
	if !strings.Contains(s.log.String(), "the client does not speak TLS") {
		t.Errorf("got the log %s", s.log)
	}
}

// TestT5HandshakeFlood: thousands who begin a handshake and do not go on keep nobody out, and hold little memory.
func TestT5HandshakeFlood(t *testing.T) {
	a, f := goodFiles(t)
	s := serveTLS(t, f.TLSFiles)
	var open []net.Conn
	defer func() {
		for _, nc := range open {
			_ = nc.Close()
		}
	}()
	for n := range 2_000 {
		nc, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, nc)
		if n%2 == 0 {
			_, _ = nc.Write([]byte("\x16\x03\x01\x02\x00\x01")) // A beginning; the server may have ended it.
		}
		if n%100 == 99 {
			began := time.Now()
			if err := talk(dialTLS(t, s.address, a.Trust())); err != nil {
				t.Fatalf("behind %d half-open handshakes: %v", n+1, err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("behind %d half-open handshakes: took %v", n+1, took)
			}
		}
	}
	if n := runtime.NumGoroutine(); n > 1_500 {
		t.Errorf("got %d goroutines for 2,000 half-open handshakes", n)
	}
	if lines := strings.Count(s.log.String(), "handshake failed"); lines > 100 {
		t.Errorf("got %d lines in the log", lines)
	}
}

// TestHandshakeTime: a handshake that does not end is ended.
func TestHandshakeTime(t *testing.T) {
	_, f := goodFiles(t)
	s := serveTLS(t, f.TLSFiles)
	nc, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	began := time.Now()
	_ = nc.SetReadDeadline(began.Add(20 * time.Second)) // A read tells.
	if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took < 4*time.Second || took > 18*time.Second {
		t.Errorf("ended after %v, want 5 s", took)
	}
}

// TestCloseEndsHandshakes: what is under way does not hold up a stop.
func TestCloseEndsHandshakes(t *testing.T) {
	_, f := goodFiles(t)
	secure, err := listen.NewTLS(f.TLSFiles, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := secure.Listen(inner)
	for range 10 {
		nc, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
	}
	began := time.Now()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 4*time.Second { // A handshake may take 5 s.
		t.Errorf("took %v", took)
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
