package broker_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nkeys"
)

// operator makes an operator, an account with JetStream and a user of it, and returns the configuration of a server that
// knows them and the user's credentials file.
func operator(t *testing.T) (config string, creds []byte) {
	t.Helper()
	pair := func(p nkeys.KeyPair, err error) (nkeys.KeyPair, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		public, err := p.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return p, public
	}
	op, opKey := pair(nkeys.CreateOperator())
	acc, accKey := pair(nkeys.CreateAccount())
	system, systemKey := pair(nkeys.CreateAccount())
	_ = system
	user, userKey := pair(nkeys.CreateUser())
	limits := map[string]any{
		"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
		"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1, "max_ack_pending": -1,
	}
	operatorToken := token(t, op, opKey, opKey, map[string]any{"type": "operator", "version": 2, "system_account": systemKey})
	accountToken := token(t, op, opKey, accKey, map[string]any{"type": "account", "version": 2, "limits": limits})
	systemToken := token(t, op, opKey, systemKey, map[string]any{"type": "account", "version": 2, "limits": map[string]any{"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1}})
	userToken := token(t, acc, accKey, userKey, map[string]any{"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": map[string]any{}, "sub": map[string]any{}})
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	config = fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { %s: %s, %s: %s }\n",
		operatorToken, systemKey, accKey, accountToken, systemKey, systemToken)
	return config, fmt.Appendf(nil, "-----BEGIN NATS USER JWT-----\n%s\n------END NATS USER JWT------\n\n"+
		"-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n", userToken, seed)
}

// token signs the claims of NATS about a key.
func token(t *testing.T, issuer nkeys.KeyPair, issuerKey, subject string, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	text := part(map[string]string{"typ": "JWT", "alg": "ed25519-nkey"}) + "." +
		part(map[string]any{"jti": subject, "iat": 1_700_000_000, "iss": issuerKey, "sub": subject, "name": "test", "nats": claims})
	signature, err := issuer.Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
