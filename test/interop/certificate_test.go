package interop_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3"

	"github.com/natstomp/natstomp/test/testserver"
)

// TestReportCertificatesOfClients holds FR-124: go-stomp, stomp.py and stompit reach a listener that wants certificates,
// as whom theirs names, and not without one, of which the log has the reason.
func TestReportCertificatesOfClients(t *testing.T) {
	t.Parallel()
	modules, err := nodeModules()
	if err != nil {
		t.Fatal(err)
	}
	f := certificates(t)
	policy := filepath.Join(t.TempDir(), "policy.csv")
	if err := os.WriteFile(policy, []byte("p, spiffe://example.org/billing, queues, billing, *, allow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := testserver.Start(t, "--listeners-tls-address", "127.0.0.1:0", "--listeners-tls-cert-file", f.server.cert,
		"--listeners-tls-key-file", f.server.key, "--listeners-tls-client-ca-file", f.authority, "--authz-policy", policy)
	m := regexp.MustCompile(`(?m)^ +tls +(127\.0\.0\.1:[0-9]+)`).FindStringSubmatch(srv.Log())
	if m == nil {
		t.Fatal("no TLS listener in the start block")
	}
	host, port, _ := strings.Cut(m[1], ":")
	run := func(name string, args ...string) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
		if err != nil {
			t.Logf("%s: %v\n%s", filepath.Base(name), err, out)
		}
		return err
	}
	if err := findStompPy(); err != nil {
		t.Fatal(err)
	}
	const reason = "client didn't provide a certificate"
	again := time.NewTicker(5 * time.Millisecond) // The log may come a moment later.
	defer again.Stop()
	for name, send := range map[string]func(shown ...string) error{
		"go-stomp": func(shown ...string) error { return sendByGoStomp(f.authority, m[1], shown...) },
		"stomp.py": func(shown ...string) error {
			return run(python, append([]string{"-B", "testdata/certificate.py", host, port, "/queue/billing", f.authority}, shown...)...)
		},
		"stompit": func(shown ...string) error {
			return run("node", append([]string{javascript + "/certificate.mjs", modules, host, port, "/queue/billing", f.authority}, shown...)...)
		},
	} {
		before := strings.Count(srv.Log(), reason)
		if err := send(); err == nil {
			t.Errorf("%s: a message is taken from a client without a certificate", name)
		}
		for end := time.Now().Add(patience); strings.Count(srv.Log(), reason) == before; <-again.C {
			if time.Now().After(end) {
				t.Fatalf("%s: the log has no reason for the refusal", name)
			}
		}
		if err := send(f.client.cert, f.client.key); err != nil {
			t.Errorf("%s: with a certificate: %v", name, err)
		}
	}
	_, js := native(t, srv)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	name, err := js.StreamNameBySubject(ctx, "stomp.queue.billing")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Msgs; got != 3 {
		t.Errorf("%d messages are stored, want 3", got)
	}
}

// sendByGoStomp sends one message and waits for its receipt.
func sendByGoStomp(authority, address string, shown ...string) error {
	text, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	config.RootCAs.AppendCertsFromPEM(text)
	if len(shown) > 0 {
		pair, err := tls.LoadX509KeyPair(shown[0], shown[1])
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	socket, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", address, config)
	if err != nil {
		return err
	}
	defer socket.Close()
	c, err := stomp.Connect(socket)
	if err != nil {
		return err
	}
	if err := c.Send("/queue/billing", "text/plain", []byte("from go-stomp"), stomp.SendOpt.Receipt); err != nil {
		return err
	}
	return c.Disconnect()
}

// signed names the files of a certificate and its key.
type signed struct{ cert, key string }

// files are those of an authority and of what it has signed.
type files struct {
	authority      string
	server, client signed
}

func certificates(t *testing.T) files {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name+".pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	sign := func(serial int64, template, parent *x509.Certificate, by *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if by == nil {
			by = key
		}
		template.SerialNumber = big.NewInt(serial)
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	root := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, key := sign(1, root, root, nil)
	f := files{authority: write("authority", "CERTIFICATE", der)}
	issue := func(serial int64, name string, template *x509.Certificate) signed {
		der, own := sign(serial, template, root, key)
		private, err := x509.MarshalPKCS8PrivateKey(own)
		if err != nil {
			t.Fatal(err)
		}
		return signed{write(name, "CERTIFICATE", der), write(name+"-key", "PRIVATE KEY", private)}
	}
	f.server = issue(2, "server", &x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	f.client = issue(3, "client", &x509.Certificate{
		Subject: pkix.Name{CommonName: "billing"}, URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/billing"}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return f
}
