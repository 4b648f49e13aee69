package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

const (
	kubeMQURLVariable = "KUBEMQ_STOMP_URL" // Used where NATSTOMP_URL is not set.
	defaultURL        = "tcp://127.0.0.1:61613"
)

// clientVariables are those that the client commands read and that are no settings.
func clientVariables() []string {
	return []string{
		urlVariable, "NATSTOMP_LOGIN", "NATSTOMP_PASSCODE", "NATSTOMP_PASSCODE_FILE", "NATSTOMP_TOKEN", "NATSTOMP_TOKEN_FILE",
	}
}

// target is where a client command connects to, and as whom.
type target struct {
	url             *url.URL // Without user information; a port and, for WebSockets, a path are always there.
	login, passcode string
	tls             *tls.Config
}

// defaultPorts are those of the schemes.
var defaultPorts = map[string]string{"tcp": "61613", "tls": "61614", "ws": "80", "wss": "443"}

// parseTarget reads a URL. Its errors never hold a password.
func parseTarget(text string) (target, error) {
	u, err := url.Parse(text)
	if err != nil {
		var reason *url.Error
		if errors.As(err, &reason) {
			err = reason.Err // Without the text, which may hold a password.
		}
		return target{}, fmt.Errorf("the URL cannot be read: %w; write for instance %s", err, defaultURL)
	}
	port, known := defaultPorts[u.Scheme]
	switch {
	case !known:
		return target{}, fmt.Errorf("the URL %s has no scheme tcp, tls, ws or wss: write for instance %s", u.Redacted(), defaultURL)
	case u.Hostname() == "":
		return target{}, fmt.Errorf("the URL %s has no host", u.Redacted())
	case (u.Scheme == "tcp" || u.Scheme == "tls") && strings.Trim(u.Path, "/") != "":
		return target{}, fmt.Errorf("the URL %s has a path, which only ws and wss have", u.Redacted())
	}
	t := target{login: u.User.Username()}
	t.passcode, _ = u.User.Password()
	u.User = nil
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	if strings.HasPrefix(u.Scheme, "ws") && u.Path == "" {
		u.Path = "/stomp"
	}
	t.url = u
	return t, nil
}

// secure makes the TLS settings: authorities from a file instead of the system's, or no check at all; a client certificate.
func (t *target) secure(caFile, certFile, keyFile string, insecure bool) error {
	t.tls = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.url.Hostname(),
		InsecureSkipVerify: insecure, //nolint:gosec // --tls-insecure asks for it, and says so on stderr.
	}
	switch {
	case certFile != "" && keyFile != "":
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		t.tls.Certificates = []tls.Certificate{pair}
	case certFile != "" || keyFile != "":
		return errors.New("--tls-cert and --tls-key: give both, or neither")
	}
	if caFile == "" {
		return nil
	}
	pem, err := os.ReadFile(filepath.Clean(caFile))
	if err != nil {
		return fmt.Errorf("--tls-ca: %w", err)
	}
	t.tls.RootCAs = x509.NewCertPool()
	if !t.tls.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("--tls-ca: %s holds no certificate in PEM form", caFile)
	}
	return nil
}
