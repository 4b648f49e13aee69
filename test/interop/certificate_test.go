package interop_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3"

	"github.com/natstomp/natstomp/test/rig"
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
	authority := rig.Put(t, "authority.pem", string(rig.Authority().PEM()))
	cert, key := rig.Authority().Server(t)
	ownCert, ownKey := rig.Files(t, rig.Authority().Named(t, "spiffe://example.org/billing", time.Now().Add(time.Hour)))
	policy := rig.Put(t, "policy.csv", "p, spiffe://example.org/billing, queues, billing, *, allow\n")
	srv := testserver.Start(t, "--listeners-tls-address", "127.0.0.1:0", "--listeners-tls-cert-file", cert,
		"--listeners-tls-key-file", key, "--listeners-tls-client-ca-file", authority, "--authz-policy", policy)
	m := regexp.MustCompile(`(?m)^ +tls +(127\.0\.0\.1:[0-9]+)`).FindStringSubmatch(srv.Log())
	if m == nil {
		t.Fatal("no TLS listener in the start block")
	}
	host, port, _ := strings.Cut(m[1], ":")
	run := func(name string, args ...string) error {
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
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
	for name, send := range map[string]func(shown ...string) error{
		"go-stomp": func(shown ...string) error { return sendByGoStomp(authority, m[1], shown...) },
		"stomp.py": func(shown ...string) error {
			return run(python, append([]string{"-B", "testdata/certificate.py", host, port, "/queue/billing", authority}, shown...)...)
		},
		"stompit": func(shown ...string) error {
			return run("node", append([]string{javascript + "/certificate.mjs", modules, host, port, "/queue/billing", authority}, shown...)...)
		},
	} {
		before := strings.Count(srv.Log(), reason)
		if err := send(); err == nil {
			t.Errorf("%s: a message is taken from a client without a certificate", name)
		}
		rig.Holds(t, "the reason for the refusal of "+name+" in the log", func() bool { return strings.Count(srv.Log(), reason) > before })
		if err := send(ownCert, ownKey); err != nil {
			t.Errorf("%s: with a certificate: %v", name, err)
		}
	}
	_, js := rig.Native(t, srv.NATSURL)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
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
	socket, err := tls.DialWithDialer(&net.Dialer{Timeout: rig.Patience}, "tcp", address, config)
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
