package listen

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lookInterval is how often the files of certificates are looked at. Asking for their state costs microseconds, works on
// every file system and sees the swap of a symbolic link, with which Kubernetes and certbot change files.
const lookInterval = time.Second

// suites are those of TLS 1.2 that are offered; those of TLS 1.3 cannot be chosen. All have forward secrecy, none has CBC.
var suites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// TLSFiles names what a TLS listener needs.
type TLSFiles struct {
	// Certificate and Key are the paths of PEM files with the certificate chain, the server's own first, and with its key.
	// Required.
	Certificate, Key string
	// ClientCA is the path of a PEM file with the authorities that sign client certificates. With it every client needs one;
	// empty asks for none.
	ClientCA string
}

// TLS is the TLS of a listener. While that is open it follows its files: new connections get what is in them now, and those
// that there are go on. Its methods are safe for concurrent use.
type TLS struct {
	files TLSFiles
	log   *slog.Logger
	look  time.Duration

	current atomic.Pointer[tls.Config]

	mu     sync.Mutex
	loaded [3]os.FileInfo    // guarded by mu; the states that were read last, or refused
	seen   [3]os.FileInfo    // guarded by mu; the states at the last look
	leaf   *x509.Certificate // guarded by mu
}

// NewTLS reads the files. The log gets what happens to them and to handshakes. A certificate that has expired is used all
// the same, with a line in the log: some clients do not care, and there is nothing better.
func NewTLS(files TLSFiles, log *slog.Logger) (*TLS, error) {
	t := &TLS{files: files, log: log, look: lookInterval}
	t.loaded = t.states()
	config, leaf, err := files.read()
	if err != nil {
		return nil, err
	}
	if err := inTime(leaf, time.Now()); err != nil {
		log.Error("certificate of a listener", "file", files.Certificate, "err", err)
	}
	t.current.Store(config)
	t.leaf = leaf
	return t, nil
}

// read makes a configuration of the files.
func (f TLSFiles) read() (*tls.Config, *x509.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate %s and its key: %w", f.Certificate, err)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		CipherSuites: suites,
		Certificates: []tls.Certificate{cert},
	}
	if f.ClientCA != "" {
		text, err := os.ReadFile(f.ClientCA)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the authorities of clients: %w", err)
		}
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return nil, nil, fmt.Errorf("reading the authorities of clients: %s has no certificate", f.ClientCA)
		}
	}
	return config, cert.Leaf, nil
}

func inTime(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// Config returns a configuration whose every handshake uses what is in the files then. TLS 1.2 is the oldest version.
func (t *TLS) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.current.Load(), nil },
	}
}

// Reload reads the files again. What has a fault, or a certificate that is not valid now where that in use is, is refused
// whole: what was in use before stays, and the log tells why.
func (t *TLS) Reload() error {
	states := t.states()
	config, leaf, err := t.files.read()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if err == nil && inTime(t.leaf, now) == nil {
		err = inTime(leaf, now)
	}
	t.loaded = states
	if err != nil {
		t.log.Error("certificate not taken over; that from before is used", "err", err)
		return err
	}
	t.leaf = leaf
	t.current.Store(config)
	t.log.Info("certificate read", "file", t.files.Certificate, "expires", leaf.NotAfter)
	return nil
}

// follow follows the files until done is closed.
func (t *TLS) follow(done <-chan struct{}) {
	ticker := time.NewTicker(t.look)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			if t.changed() {
				_ = t.Reload() // The log tells it.
			}
		}
	}
}

// changed reports that the files are others than those that were read, and have been the same for one look: a change of
// two files takes a moment.
func (t *TLS) changed() bool {
	states := t.states()
	t.mu.Lock()
	defer t.mu.Unlock()
	settled := sameStates(states, t.seen)
	t.seen = states
	return settled && !sameStates(states, t.loaded)
}

// states returns the states of the files; nil for one that is not there.
func (t *TLS) states() (states [3]os.FileInfo) {
	for i, path := range []string{t.files.Certificate, t.files.Key, t.files.ClientCA} {
		if info, err := os.Stat(path); err == nil {
			states[i] = info
		}
	}
	return states
}

func sameStates(a, b [3]os.FileInfo) bool {
	for i := range a {
		if a[i] == nil || b[i] == nil {
			if a[i] != nil || b[i] != nil {
				return false
			}
			continue
		}
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}

// PeerCertificate returns the certificate that the client of a connection has shown and TLS has verified, or nil. The
// connection is one that a listener of TLS or Upgrade returned, or any other.
func PeerCertificate(nc net.Conn) *x509.Certificate {
	if ws, ok := nc.(*webSocket); ok {
		nc = ws.raw
	}
	secure, ok := nc.(*tls.Conn)
	if !ok {
		return nil
	}
	chains := secure.ConnectionState().VerifiedChains
	if len(chains) == 0 || len(chains[0]) == 0 {
		return nil
	}
	return chains[0][0]
}

// Abort closes a connection at once. TLS would first tell the peer, and wait for up to 5 s if it does not read.
func Abort(nc net.Conn) error {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	if err := nc.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
