package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/connector/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
}

// secret is the HMAC secret of the tests.
const secret = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// signer is a private key and its algorithm.
type signer struct {
	algorithm string
	key       any
}

func (s signer) public() crypto.PublicKey { return s.key.(crypto.Signer).Public() }

// signers are one key for each algorithm. RS and PS keys are all different.
var signers = sync.OnceValue(func() map[string]signer {
	all := make(map[string]signer)
	for _, alg := range []string{"HS256", "HS384", "HS512"} {
		all[alg] = signer{alg, []byte(secret)}
	}
	for _, alg := range []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		all[alg] = signer{alg, key}
	}
	for alg, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
		all[alg] = signer{alg, newEC(curve)}
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	all["EdDSA"] = signer{"EdDSA", key}
	return all
})

func newEC(curve elliptic.Curve) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// publicPEM is the public half of a key.
func publicPEM(t *testing.T, key crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// write makes a file and returns its path.
func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	replace(t, path, text)
	return path
}

// replace changes a file as programs do that care: all at once.
func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// jwk is the public half of a key as JSON Web Key.
func jwk(kid, alg string, key any) map[string]any {
	b64 := base64.RawURLEncoding.EncodeToString
	all := map[string]any{"use": "sig"}
	if kid != "" {
		all["kid"] = kid
	}
	if alg != "" {
		all["alg"] = alg
	}
	set := func(more map[string]any) map[string]any {
		for name, value := range more {
			all[name] = value
		}
		return all
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return set(map[string]any{"kty": "RSA", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())})
	case *ecdsa.PrivateKey:
		point, err := k.PublicKey.Bytes()
		if err != nil {
			panic(err)
		}
		half := (len(point) - 1) / 2
		return set(map[string]any{"kty": "EC", "crv": k.Params().Name, "x": b64(point[1 : 1+half]), "y": b64(point[1+half:])})
	case ed25519.PrivateKey:
		return set(map[string]any{"kty": "OKP", "crv": "Ed25519", "x": b64(k.Public().(ed25519.PublicKey))})
	case []byte:
		return set(map[string]any{"kty": "oct", "k": b64(k)})
	}
	panic("no such key")
}

func jwks(t *testing.T, keys ...map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// raw signs texts as they are.
func raw(t *testing.T, s signer, header, payload string) string {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	text := b64([]byte(header)) + "." + b64([]byte(payload))
	signature, err := jwt.GetSigningMethod(s.algorithm).Sign(text, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(signature)
}

// values are members of an object; nil takes one away.
type values map[string]any

func object(t *testing.T, all, changes values) string {
	t.Helper()
	for name, value := range changes {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// token signs a good token with changes.
func token(t *testing.T, now time.Time, s signer, header, payload values) string {
	t.Helper()
	return raw(t, s,
		object(t, values{"alg": s.algorithm, "typ": "JWT"}, header),
		object(t, values{"sub": "alice", "aud": "natstomp", "iss": "https://issuer.example", "exp": now.Add(time.Hour).Unix()}, payload))
}

// config accepts tokens of every algorithm: HS256, RS256, PS256, ES256, ES384, ES512 and EdDSA by keys without a name, the
// others by a key set.
func config(t *testing.T) auth.Config {
	t.Helper()
	var files []string
	for _, alg := range []string{"RS256", "ES256", "ES384", "ES512", "EdDSA"} {
		files = append(files, write(t, alg+".pem", publicPEM(t, signers()[alg].public())))
	}
	files = append(files, "PS256:"+write(t, "PS256.pem", publicPEM(t, signers()["PS256"].public())))
	var keys []map[string]any
	for _, alg := range []string{"HS384", "HS512", "RS384", "RS512", "PS384", "PS512"} {
		keys = append(keys, jwk(alg, alg, signers()[alg].key))
	}
	return auth.Config{Mode: auth.ModeJWT, JWT: auth.JWT{
		HMACSecret:       func() string { return secret },
		PublicKeyFiles:   files,
		JWKS:             write(t, "jwks.json", jwks(t, keys...)),
		Issuer:           "https://issuer.example",
		Audience:         "natstomp",
		Leeway:           30 * time.Second,
		MaxTokenLifetime: 24 * time.Hour,
		ClientIDClaims:   []string{"ClientID", "client_id", "sub"},
		RolesClaim:       "roles",
	}}
}

func service(t *testing.T, cfg auth.Config, c *clock) *auth.Service {
	t.Helper()
	s, err := auth.NewAt(cfg, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// admitted wants a token to be accepted.
func admitted(t *testing.T, s *auth.Service, text string) auth.Identity {
	t.Helper()
	i, err := s.Authenticate(t.Context(), auth.Credentials{Passcode: text})
	if err != nil {
		t.Fatalf("got %v (%s), want an identity", err, reason(err))
	}
	return i
}

// refused wants credentials to be refused with the one text, and returns the code.
func refused(t *testing.T, s *auth.Service, c auth.Credentials) string {
	t.Helper()
	i, err := s.Authenticate(t.Context(), c)
	var r *auth.Refused
	if !errors.As(err, &r) {
		t.Fatalf("got %+v, %v, want a refusal", i, err)
	}
	if err.Error() != auth.RefusedText || r.Reason == "" || r.Code == "" {
		t.Errorf("got %q with code %q and reason %q, want %q with both", err, r.Code, r.Reason, auth.RefusedText)
	}
	if i.Name != "" || i.Roles != nil {
		t.Errorf("got %+v beside a refusal", i)
	}
	return r.Code
}

func reason(err error) string {
	var r *auth.Refused
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}
