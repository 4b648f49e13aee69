package identity_test

import (
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/tokens"
)

// keys is where a server gets its key set from.
type keys struct {
	*httptest.Server
	mu    sync.Mutex
	set   []byte // guarded by mu; nil: answers 500
	asked int    // guarded by mu
}

func newKeys(t *testing.T, set []byte) *keys {
	t.Helper()
	k := &keys{set: set}
	k.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.asked++
		if k.set == nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(k.set) // Who asked may have gone.
	}))
	k.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{
		rig.Authority().Sign(x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, time.Now().Add(time.Hour)),
	}}
	k.StartTLS()
	t.Cleanup(k.Close)
	return k
}

func (k *keys) become(set []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.set = set
}

func (k *keys) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

// TestJ5UnknownKid has 1,000 clients at once name a key that is not there: the key set is asked for once more, nothing else
// goes out, and whose key is known is let in meanwhile. A key that is new at the issuer is found by its first token (J19), one
// that was taken away is not accepted any more, and an issuer that is gone changes nothing (FR-111).
func TestJ5UnknownKid(t *testing.T) {
	first := tokens.Signer{Algorithm: "ES256", Key: tokens.NewEC(elliptic.P256())}
	second := tokens.Signer{Algorithm: "ES256", Key: tokens.NewEC(elliptic.P256())}
	source := newKeys(t, tokens.Set(t, tokens.JWK("first", "ES256", first.Key)))
	trap := newKeys(t, nil)
	g := start(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Auth.JWT.HMACSecret, c.Auth.JWT.PublicKeyFiles, c.Auth.JWT.JWKS = "", nil, source.URL+"/keys"
	})
	good := tokens.Sign(t, time.Now(), first, tokens.Values{"kid": "first"}, nil)
	live := g.login("passcode", good)
	if n := source.count(); n != 1 {
		t.Errorf("the key set was asked for %d times by the first login", n)
	}
	source.become(tokens.Set(t, tokens.JWK("second", "ES256", second.Key)))
	const strangers = 1_000
	each(strangers, func(i int) {
		head := tokens.Values{"kid": fmt.Sprint("unknown-", i), "jku": trap.URL, "x5u": trap.URL}
		s := &showing{g: g, v: rig.Visit{}, token: tokens.Sign(t, time.Now(), second, head, nil)}
		s.connect("passcode", s.token)
		s.mustBeRefused(t, "unknown kid", "")
	})
	if n := source.count(); n != 2 {
		t.Errorf("%d tokens with unknown keys had the key set asked for %d times, want once", strangers, n-1)
	}
	if n := trap.count(); n != 0 {
		t.Errorf("an attacker's URL was asked %d times", n)
	}
	g.login("passcode", tokens.Sign(t, time.Now(), second, tokens.Values{"kid": "second"}, nil))
	c := g.come(rig.Visit{})
	c.Do("CONNECT", "accept-version", "1.2", "passcode", good) // Its key was taken away.
	c.Refused(auth.RefusedText)
	live.Alive() // Who is in stays until the token ends.
	source.become(nil)
	if err := g.Reload(); err != nil {
		t.Error(err)
	}
	rig.Holds(t, "another attempt", func() bool { return source.count() == 3 })
	g.login("passcode", tokens.Sign(t, time.Now(), second, tokens.Values{"kid": "second"}, nil))
	if failed := g.audit("client.auth_failed"); len(failed) != strangers+1 {
		t.Errorf("got %d audit lines of refused logins, want %d", len(failed), strangers+1)
	}
}
