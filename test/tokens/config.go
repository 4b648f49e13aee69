package tokens

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/auth"
)

// Config accepts tokens of every algorithm; its files are in a directory of the test. The keys of HS256, RS256, PS256,
// ES256, ES384, ES512 and EdDSA are files without names, the others a key set with their algorithms as names.
func Config(t testing.TB) auth.Config {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var files []string
	for _, alg := range []string{"RS256", "ES256", "ES384", "ES512", "EdDSA"} {
		files = append(files, put(alg+".pem", PublicPEM(t, Signers()[alg].Public())))
	}
	files = append(files, "PS256:"+put("PS256.pem", PublicPEM(t, Signers()["PS256"].Public())))
	var keys []map[string]any
	for _, alg := range []string{"HS384", "HS512", "RS384", "RS512", "PS384", "PS512"} {
		keys = append(keys, JWK(alg, alg, Signers()[alg].Key))
	}
	return auth.Config{Mode: auth.ModeJWT, JWT: auth.JWT{
		HMACSecret:       func() string { return Secret },
		PublicKeyFiles:   files,
		JWKS:             put("jwks.json", Set(t, keys...)),
		Issuer:           Issuer,
		Audience:         Audience,
		Leeway:           30 * time.Second,
		MaxTokenLifetime: 24 * time.Hour,
		ClientIDClaims:   []string{"ClientID", "client_id", "sub"},
		RolesClaim:       "roles",
	}}
}

// Issuer and Audience are those of Config and of what Sign makes.
const (
	Issuer   = "https://issuer.example"
	Audience = "natstomp"
)
