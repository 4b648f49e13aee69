package rig

import (
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
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Issuer signs certificates. Its methods are safe for concurrent use.
type Issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Authority returns the issuer that servers and clients of a test process trust.
var Authority = sync.OnceValue(NewIssuer)

// NewIssuer returns an issuer of its own name and key, valid for an hour.
func NewIssuer() *Issuer {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := must(x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key))
	return &Issuer{must(x509.ParseCertificate(der)), key}
}

// must is for what fails only where there is no randomness.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Sign makes a certificate that ends at a moment. It is valid since an hour ago unless the template says otherwise.
func (a *Issuer) Sign(template x509.Certificate, end time.Time) tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template.SerialNumber = must(rand.Int(rand.Reader, big.NewInt(1<<62)))
	template.NotAfter = end
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der := must(x509.CreateCertificate(rand.Reader, &template, a.cert, &key.PublicKey, a.key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Server makes a certificate of this machine and returns its files.
func (a *Issuer) Server(tb testing.TB) (cert, key string) {
	tb.Helper()
	return Files(tb, a.Sign(x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, time.Now().Add(time.Hour)))
}

// Named makes a client's certificate with a URI as its name.
func (a *Issuer) Named(tb testing.TB, uri string, end time.Time) tls.Certificate {
	tb.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		tb.Fatal(err)
	}
	return a.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "admin"}, URIs: []*url.URL{u}}, end)
}

// PEM returns the issuer's certificate.
func (a *Issuer) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Trust trusts the issuer and shows a certificate, if there is one.
func (a *Issuer) Trust(own ...tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{RootCAs: pool, Certificates: own, MinVersion: tls.VersionTLS12}
}

// Encode returns a certificate and its key as PEM.
func Encode(pair tls.Certificate) (cert, key string) {
	private := must(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// Files writes a certificate and its key to files of the test and returns their paths.
func Files(tb testing.TB, pair tls.Certificate) (cert, key string) {
	tb.Helper()
	cert, key = Encode(pair)
	return Put(tb, "cert.pem", cert), Put(tb, "key.pem", key)
}

// Put writes a file of the test, in a directory of its own, and returns its path.
func Put(tb testing.TB, name, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Replace puts another text into a file, as an editor does. It is never seen half.
func Replace(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		tb.Fatal(err)
	}
}
