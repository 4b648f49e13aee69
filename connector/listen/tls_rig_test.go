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
	"path/filepath"
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
