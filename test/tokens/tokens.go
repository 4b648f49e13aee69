package tokens

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
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Secret is the HMAC secret of a Config.
const Secret = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// Signer is a private key and its algorithm.
type Signer struct {
	Algorithm string
	Key       any // a crypto.Signer, or the octets of a secret
}

// Public is the public half.
func (s Signer) Public() crypto.PublicKey { return s.Key.(crypto.Signer).Public() }

// Signers are one key for each algorithm. RS and PS keys are all different.
var Signers = sync.OnceValue(func() map[string]Signer {
	all := make(map[string]Signer)
	for _, alg := range []string{"HS256", "HS384", "HS512"} {
		all[alg] = Signer{alg, []byte(Secret)}
	}
	for _, alg := range []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		all[alg] = Signer{alg, key}
	}
	for alg, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
		all[alg] = Signer{alg, NewEC(curve)}
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	all["EdDSA"] = Signer{"EdDSA", key}
	return all
})

// NewEC makes a key.
func NewEC(curve elliptic.Curve) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

// PublicPEM is the public half of a key.
func PublicPEM(t testing.TB, key crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// JWK is the public half of a key as JSON Web Key.
func JWK(kid, alg string, key any) map[string]any {
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

// Set is a JSON Web Key Set.
func Set(t testing.TB, keys ...map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Raw signs texts as they are.
func Raw(t testing.TB, s Signer, header, payload string) string {
	t.Helper()
	text := Base64(header) + "." + Base64(payload)
	signature, err := jwt.GetSigningMethod(s.Algorithm).Sign(text, s.Key)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + Base64(string(signature))
}

// Base64 encodes a part of a token.
func Base64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// Values are members of an object; nil takes one away.
type Values map[string]any

func object(t testing.TB, all, changes Values) string {
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

// Sign signs a good token of alice for an hour, with changes of its header and its claims.
func Sign(t testing.TB, now time.Time, s Signer, header, payload Values) string {
	t.Helper()
	return Raw(t, s,
		object(t, Values{"alg": s.Algorithm, "typ": "JWT"}, header),
		object(t, Values{"sub": "alice", "aud": Audience, "iss": Issuer, "exp": now.Add(time.Hour).Unix()}, payload))
}
