package auth_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/natstomp/natstomp/connector/auth"
)

func discard() *log.Logger { return log.New(io.Discard, "", 0) }

func privatePEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// smallRSA is a key that is too small to be made any more.
func smallRSA(t *testing.T) *rsa.PublicKey {
	t.Helper()
	n := new(big.Int).Lsh(big.NewInt(1), 1023)
	return &rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537}
}

func certificate(t *testing.T, template x509.Certificate, key any) *x509.Certificate {
	t.Helper()
	template.SerialNumber, template.NotAfter = big.NewInt(1), time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	k := key.(*ecdsa.PrivateKey)
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func selfSigned(t *testing.T, key any) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate(t, x509.Certificate{}, key).Raw})
}

// TestT4CertificateIdentity holds FR-123: a certificate is a login.
func TestT4CertificateIdentity(t *testing.T) {
	key := newEC(elliptic.P256())
	spiffe := &url.URL{Scheme: "spiffe", Host: "example.org", Path: "/billing"}
	subject := pkix.Name{CommonName: "alice", Organization: []string{"Example, Inc."}, Country: []string{"DE"}}
	s, err := auth.New(usersConfig(t, "alice:"+hash(t, "wonderland")))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		template x509.Certificate
		want     string
	}{
		{"URI", x509.Certificate{Subject: subject, URIs: []*url.URL{spiffe}, EmailAddresses: []string{"a@example.org"}, DNSNames: []string{"a.example.org"}}, "spiffe://example.org/billing"},
		{"mail", x509.Certificate{Subject: subject, EmailAddresses: []string{"a@example.org"}, DNSNames: []string{"a.example.org"}}, "a@example.org"},
		{"DNS", x509.Certificate{Subject: subject, DNSNames: []string{"a.example.org", "b.example.org"}}, "a.example.org"},
		{"DN", x509.Certificate{Subject: subject}, `CN=alice,O=Example\, Inc.,C=DE`},
		{"an address is no name", x509.Certificate{Subject: pkix.Name{CommonName: "alice"}, IPAddresses: []net.IP{{127, 0, 0, 1}}}, "CN=alice"},
		{"nothing", x509.Certificate{}, ""},
		{"control", x509.Certificate{Subject: pkix.Name{CommonName: "a\nb"}}, ""},
		{"role", x509.Certificate{URIs: []*url.URL{{Scheme: "role", Opaque: "admin"}}}, ""},
	} {
		cert := certificate(t, tt.template, key)
		i, err := s.Authenticate(t.Context(), auth.Credentials{Login: "alice", Certificate: cert})
		if i.Name != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: got %q, %v, want %q", tt.name, i.Name, err, tt.want)
		}
		if err == nil && (!i.Expires.Equal(cert.NotAfter) || i.Source != auth.Certificate || i.Roles != nil) {
			t.Errorf("%s: got %+v", tt.name, i)
		}
	}
}

// TestShownCredentialsMustBeRight whatever the certificate, in every mode.
func TestShownCredentialsMustBeRight(t *testing.T) {
	c := newClock()
	cert := certificate(t, x509.Certificate{DNSNames: []string{"host"}}, newEC(elliptic.P256()))
	users := service(t, usersConfig(t, "alice:"+hash(t, "wonderland")), c)
	tokens := service(t, config(t), c)
	none := service(t, auth.Config{Mode: auth.ModeNone}, c)
	good := token(t, c.Now(), signers()["HS256"], nil, nil)
	for _, tt := range []struct {
		name string
		s    *auth.Service
		c    auth.Credentials
		want string
	}{
		{"users, good passcode", users, auth.Credentials{Login: "alice", Passcode: "wonderland", Certificate: cert}, "alice"},
		{"users, wrong passcode", users, auth.Credentials{Login: "alice", Passcode: "x", Certificate: cert}, ""},
		{"users, none", users, auth.Credentials{Certificate: cert}, "host"},
		{"jwt, good token", tokens, auth.Credentials{Passcode: good, Certificate: cert}, "alice"},
		{"jwt, wrong token", tokens, auth.Credentials{Passcode: good + "x", Certificate: cert}, ""},
		{"jwt, wrong bearer", tokens, auth.Credentials{Token: good + "x", Certificate: cert}, ""},
		{"jwt, passcode before bearer", tokens, auth.Credentials{Passcode: "x", Token: good}, ""},
		{"jwt, none", tokens, auth.Credentials{Login: "alice", Certificate: cert}, "host"},
		{"none, certificate", none, auth.Credentials{Login: "alice", Passcode: "x", Client: "c", Certificate: cert}, "host"},
		{"none, client-id", none, auth.Credentials{Login: "alice", Passcode: "x", Client: "c"}, "c"},
		{"none, login", none, auth.Credentials{Login: "role:a\n", Passcode: "x"}, "role:a\n"},
	} {
		i, err := tt.s.Authenticate(t.Context(), tt.c)
		if i.Name != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: got %q, %v, want %q", tt.name, i.Name, err, tt.want)
		}
	}
	if i, err := none.Authenticate(t.Context(), auth.Credentials{}); err != nil || i.Name != "" || i.Source != auth.Claimed {
		t.Errorf("nothing shown: got %+v, %v", i, err)
	}
}

// TestNames: whatever is made of random pieces, a name that is accepted has all properties that are promised, one that is
// refused lacks one, and the form for the header session is always printable.
func TestNames(t *testing.T) {
	pieces := []string{"a", "Z", "9", "_", "-", ".", "*", ">", "/", "$", " ", "role:", "ROLE:", "ü", "\u2028", "\ufeff", "😀", "\n", "\r", "\x00", "\x7f", "\u0085", "\xff", "\ufffd", strings.Repeat("x", 250)}
	printable := regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
	r := mathrand.New(mathrand.NewPCG(1, 2))
	accepted := 0
	for range 100_000 {
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		name := b.String()
		good := name != "" && len(name) <= 256 && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl) &&
			!strings.ContainsRune(name, '\ufffd') && !strings.HasPrefix(name, "role:") && name != "*" && name != ">"
		if err := auth.CheckName(name); (err == nil) != good {
			t.Fatalf("%q: got %v, want good %t", name, err, good)
		}
		if good {
			accepted++
		}
		session := auth.Identity{Name: name}.Session()
		if !printable.MatchString(session) {
			t.Fatalf("%q: got the session %q", name, session)
		}
		if name != "" && len(name) <= 256 && utf8.ValidString(name) && utf8.RuneCountInString(session) != utf8.RuneCountInString(name) {
			t.Fatalf("%q: got the session %q of another length", name, session)
		}
	}
	if accepted < 1_000 {
		t.Errorf("only %d names were accepted", accepted)
	}
}

// TestNamesThroughTokens: a name arrives octet by octet as the issuer wrote it.
func TestNamesThroughTokens(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	r := mathrand.New(mathrand.NewPCG(3, 4))
	for range 2_000 {
		runes := make([]rune, 1+r.IntN(8))
		for i := range runes {
			for runes[i] == 0 || runes[i] >= 0xd800 && runes[i] < 0xe000 {
				runes[i] = rune(r.IntN([]int{0x80, 0x800, 0x10000, 0x110000}[r.IntN(4)]))
			}
		}
		name := string(runes)
		i, err := s.Authenticate(t.Context(), auth.Credentials{Passcode: token(t, c.Now(), signers()["HS256"], nil, values{"sub": name})})
		if want := auth.CheckName(name) == nil; (err == nil) != want || want && i.Name != name {
			t.Fatalf("%q: got %q, %v", name, i.Name, err)
		}
	}
}

func TestSessionWithoutName(t *testing.T) {
	seen := make(map[string]bool)
	for range 1_000 {
		s := auth.Identity{}.Session()
		if !regexp.MustCompile(`^stomp-[0-9a-f]{32}$`).MatchString(s) || seen[s] {
			t.Fatalf("got %q", s)
		}
		seen[s] = true
	}
}

func TestBearer(t *testing.T) {
	for _, tt := range []struct{ authorization, cookies, cookie, want string }{
		{"Bearer abc", "", "", "abc"},
		{"bearer  abc", "", "", "abc"},
		{"Bearer", "", "", ""},
		{"Basic YWxpY2U6eA==", "", "", ""},
		{"", "t=abc; u=x", "", ""},
		{"", "t=abc; u=x", "t", "abc"},
		{"", "u=x", "t", ""},
		{"Bearer abc", "t=def", "t", "abc"},
		{"Basic x", "t=def", "t", "def"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/stomp", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", tt.authorization)
		r.Header.Set("Cookie", tt.cookies)
		if got := auth.Bearer(r, tt.cookie); got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
}

func TestDamper(t *testing.T) {
	c := newClock()
	d := auth.NewDamperAt(c.Now)
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for n := range 5 {
		if got := d.Refused(a); got != 0 {
			t.Errorf("refusal %d: got %v, want none", n+1, got)
		}
	}
	last := time.Duration(0)
	for n := range 100 {
		got := d.Refused(a)
		if got < last || got <= 0 || got > time.Second {
			t.Fatalf("refusal %d: got %v after %v", n+6, got, last)
		}
		last = got
	}
	if last != time.Second {
		t.Errorf("got %v at most, want 1 s", last)
	}
	if got := d.Refused(b); got != 0 {
		t.Errorf("another address: got %v", got)
	}
	c.add(2 * time.Second)
	for n := range 5 {
		if got := d.Refused(a); got != 0 {
			t.Errorf("2 s later, refusal %d: got %v", n+1, got)
		}
	}
	// Five per second are never late.
	for range 50 {
		c.add(200 * time.Millisecond)
		if got := d.Refused(b); got != 0 {
			t.Errorf("at 5 per second: got %v", got)
		}
	}
	// One host has a whole /64, and the same IPv4 address is one however it is written.
	net6 := netip.MustParseAddr("2001:db8::1")
	for n := range 10 {
		if got := d.Refused(net6); (got > 0) != (n >= 5) {
			t.Errorf("IPv6 refusal %d: got %v", n+1, got)
		}
		net6 = net6.Next()
	}
	for range 5 {
		d.Refused(netip.MustParseAddr("203.0.113.9"))
	}
	if d.Refused(netip.MustParseAddr("::ffff:203.0.113.9")) == 0 {
		t.Error("a mapped address is another one")
	}
}

// TestDamperIsBounded, and while it is full strangers are late together.
func TestDamperIsBounded(t *testing.T) {
	c := newClock()
	d := auth.NewDamperAt(c.Now)
	addr := netip.MustParseAddr("10.0.0.0")
	late := 0
	for range 30_000 {
		if d.Refused(addr) > 0 {
			late++
		}
		addr = addr.Next()
	}
	if n := d.Addresses(); n > 10_001 {
		t.Errorf("got %d addresses", n)
	}
	if late < 19_000 {
		t.Errorf("got %d late", late)
	}
	c.add(3 * time.Second)
	if got := d.Refused(addr); got != 0 || d.Addresses() != 1 {
		t.Errorf("later: got %v, %d addresses", got, d.Addresses())
	}
}

// FuzzToken: nothing that is not signed is let in, and nothing panics.
func FuzzToken(f *testing.F) {
	c := newClock()
	s, err := auth.NewAt(auth.Config{Mode: auth.ModeJWT, JWT: auth.JWT{HMACSecret: func() string { return secret }, ClientIDClaims: []string{"sub"}}}, c.Now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a.b.c")
	f.Add(b64(`{"alg":"HS256"}`) + "." + b64(`{"sub":"a","exp":1893553445}`) + ".c2ln")
	f.Fuzz(func(t *testing.T, text string) {
		if i, err := s.Authenticate(t.Context(), auth.Credentials{Passcode: text}); err == nil {
			t.Errorf("%q: let in as %+v", text, i)
		}
	})
}

// FuzzUsersFile: nothing panics, and what is wrong is told without the hash.
func FuzzUsersFile(f *testing.F) {
	f.Add([]byte("a:$2a$04$abcdefghijklmnopqrstuuJH3l3m4o5p6q7r8s9t0u1v2w3x4y5z6:r,s\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := write(t, "users", text)
		_, err := auth.New(auth.Config{Mode: auth.ModeUsers, UsersFile: path})
		if err != nil && bytes.Contains([]byte(err.Error()), []byte("$2a$")) {
			t.Errorf("got %v", err)
		}
	})
}
