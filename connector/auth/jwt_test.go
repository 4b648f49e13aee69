package auth_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/auth"
)

// attack is a token that must be refused, and the code that it must have.
type attack struct {
	name, token, code string
}

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// attacks are the cases J1 to J17, for every algorithm where that makes a difference. J18 to J20 are tests of their own.
func attacks(t *testing.T, now time.Time) []attack {
	t.Helper()
	var all []attack
	add := func(name, token, code string) { all = append(all, attack{name, token, code}) }
	hs, rs, es := signers()["HS256"], signers()["RS256"], signers()["ES256"]
	good := object(t, values{"sub": "alice", "aud": "natstomp", "iss": "https://issuer.example", "exp": now.Add(time.Hour).Unix()}, nil)

	for _, alg := range []string{"none", "None", "nOnE", "NONE", "", "hs256", "ES256K", "HS256 "} {
		head := b64(fmt.Sprintf(`{"alg":%q,"typ":"JWT"}`, alg))
		add("J1 alg "+alg, head+"."+b64(good)+".", auth.CodeMalformed)
		signed := token(t, now, hs, nil, nil)
		add("J1 alg "+alg+" with a signature", head+"."+b64(good)+signed[strings.LastIndex(signed, "."):], auth.CodeMalformed)
	}
	add("J1 no alg", raw(t, hs, `{"typ":"JWT"}`, good), auth.CodeMalformed)
	add("J1 alg null", raw(t, hs, `{"alg":null}`, good), auth.CodeMalformed)
	add("J1 alg list", raw(t, hs, `{"alg":["HS256"]}`, good), auth.CodeMalformed)

	for name, key := range publicTexts(t) {
		for _, alg := range []string{"HS256", "HS384", "HS512"} {
			add("J2 "+alg+" with the public key as "+name, token(t, now, signer{alg, key}, nil, nil), "")
		}
	}

	for _, alg := range []string{"RS384", "RS512", "PS256", "PS384", "PS512"} { // The key of RS256.
		add("J3 "+alg+" by the key of RS256", token(t, now, signer{alg, rs.key}, nil, nil), "")
		add("J3 "+alg+" by the key of RS256, under its name", token(t, now, signer{alg, rs.key}, values{"kid": alg}, nil), "")
	}
	add("J3 RS256 by the key of RS512", token(t, now, signer{"RS256", signers()["RS512"].key}, values{"kid": "RS512"}, nil), "")
	add("J3 RS256 by the key of PS256", token(t, now, signer{"RS256", signers()["PS256"].key}, nil, nil), auth.CodeSignature)
	add("J3 HS384 by the secret of HS512", token(t, now, hs, values{"alg": "HS384"}, nil), "")

	for alg := range signers() {
		foreign := signer{"ES256", newEC(es.key.(*ecdsa.PrivateKey).Curve)}
		own, err := json.Marshal(jwk("mine", "ES256", foreign.key))
		if err != nil {
			t.Fatal(err)
		}
		for name, head := range map[string]values{
			"jwk": {"jwk": json.RawMessage(own)}, "jku": {"jku": "https://127.0.0.1:1/jwks"}, "x5u": {"x5u": "https://127.0.0.1:1/c"},
			"x5c": {"x5c": []string{"MIIB"}}, "jku and kid": {"jku": "https://127.0.0.1:1/jwks", "kid": alg},
		} {
			add("J4 "+name+" of the attacker, "+alg, token(t, now, foreign, head, nil), "")
		}
	}

	for _, kid := range []string{"../../../dev/null", "' OR 1=1 --", "RS384\x00", strings.Repeat("k", 64<<10), "of another issuer"} {
		add("J5 kid "+kid[:min(len(kid), 20)], token(t, now, signers()["RS384"], values{"kid": kid}, nil), "")
	}
	add("J5 kid number", token(t, now, rs, values{"kid": 7}, nil), auth.CodeMalformed)
	add("J5 kid of another key", token(t, now, signers()["RS384"], values{"kid": "PS384"}, nil), auth.CodeKey)

	for alg, s := range signers() {
		kid := values{"kid": alg}
		text := token(t, now, s, kid, nil)
		dot := strings.LastIndex(text, ".")
		other := token(t, now, s, kid, values{"sub": "mallory"})
		altered := []byte(text)
		altered[dot+5] ^= 1
		add("J6 altered signature "+alg, string(altered), "")
		add("J6 no signature "+alg, text[:dot+1], auth.CodeSignature)
		add("J6 no third part "+alg, text[:dot], auth.CodeMalformed)
		add("J6 short signature "+alg, text[:len(text)-4], "")
		add("J6 signature of another token "+alg, text[:dot]+other[strings.LastIndex(other, "."):], auth.CodeSignature)
		head, _, _ := strings.Cut(text, ".")
		add("J7 altered payload "+alg, head+"."+b64(object(t, values{"sub": "root", "exp": now.Add(time.Hour).Unix()}, nil))+text[dot:], auth.CodeSignature)
		add("J7 blank behind it "+alg, text+" ", auth.CodeMalformed)
		add("J7 line end behind it "+alg, text+"\n", auth.CodeMalformed)
		add("J7 padded "+alg, text+"=", auth.CodeMalformed)
	}
	head := `{"alg":"HS256"}`
	add("J7 sub twice", raw(t, hs, head, `{"sub":"bob",`+good[1:]), auth.CodeMalformed)
	add("J7 alg twice", raw(t, hs, `{"alg":"none","alg":"HS256"}`, good), auth.CodeMalformed)
	add("J7 something behind the claims", raw(t, hs, head, good+`{}`), auth.CodeMalformed)
	add("J7 claims no object", raw(t, hs, head, `["alice"]`), auth.CodeMalformed)
	add("J7 claims no UTF-8", raw(t, hs, head, `{"x":"`+"\xff"+`",`+good[1:]), auth.CodeMalformed)

	with := func(name, code string, change values) { add(name, token(t, now, hs, nil, change), code) }
	unix := func(d time.Duration) int64 { return now.Add(d).Unix() }
	with("J8 exp missing", auth.CodeClaims, values{"exp": nil})
	with("J8 exp past", auth.CodeExpired, values{"exp": unix(-31 * time.Second)})
	with("J8 exp text", auth.CodeClaims, values{"exp": fmt.Sprint(unix(time.Hour))})
	with("J8 exp 1e300", auth.CodeClaims, values{"exp": 1e300})
	with("J8 exp negative", auth.CodeClaims, values{"exp": -1})
	with("J8 exp null", auth.CodeClaims, values{"exp": json.RawMessage("null")})
	with("J8 exp 0", auth.CodeClaims, values{"exp": 0})
	with("J9 nbf in the future", auth.CodeEarly, values{"nbf": unix(31 * time.Second)})
	with("J9 nbf text", auth.CodeClaims, values{"nbf": "0"})
	with("J9 nbf 1e300", auth.CodeClaims, values{"nbf": 1e300})
	for name, aud := range map[string]any{
		"missing": nil, "wrong": "other", "empty": "", "empty list": []string{}, "list without ours": []string{"a", "b"},
		"a prefix": "natstom", "in capitals": "NATSTOMP", "a number": 7,
	} {
		with("J10 aud "+name, auth.CodeClaims, values{"aud": aud})
	}
	for name, iss := range map[string]any{"missing": nil, "wrong": "https://evil.example", "with a slash": "https://issuer.example/", "a list": []string{"https://issuer.example"}} {
		with("J10 iss "+name, auth.CodeClaims, values{"iss": iss})
	}
	with("J11 iat in the future", auth.CodeEarly, values{"iat": unix(31 * time.Second)})
	with("J11 iat text", auth.CodeClaims, values{"iat": "now"})
	for name, sub := range map[string]any{
		"missing": nil, "empty": "", "a number": 1, "a list": []string{"alice"}, "LF": "a\nb", "CR": "a\rb", "NUL": "a\x00b",
		"DEL": "a\x7fb", "C1": "a\u0085b", "tab": "\t", "role": "role:admin", "star": "*", "greater": ">", "long": strings.Repeat("a", 10<<10),
		"257 octets": strings.Repeat("a", 257), "replaced": "a\ufffdb",
	} {
		with("J12 sub "+name, auth.CodeIdentity, values{"sub": sub})
	}
	add("J12 half a surrogate", raw(t, hs, head, strings.Replace(good, `"alice"`, `"a\ud800"`, 1)), auth.CodeIdentity)
	with("J12 bad ClientID beside a good sub", auth.CodeIdentity, values{"ClientID": ""})
	with("J12 bad client_id beside a good sub", auth.CodeIdentity, values{"client_id": 7})
	with("J13 exp too far", auth.CodeClaims, values{"exp": unix(24*time.Hour + 31*time.Second)})
	add("J14 crit", token(t, now, hs, values{"crit": []string{"x"}, "x": 1}, nil), auth.CodeMalformed)
	add("J14 crit empty", token(t, now, hs, values{"crit": []string{}}, nil), auth.CodeMalformed)
	add("J14 b64", token(t, now, hs, values{"crit": []string{"b64"}, "b64": false}, nil), auth.CodeMalformed)
	add("J14 b64 without crit", token(t, now, hs, values{"b64": false}, nil), auth.CodeMalformed)
	for _, typ := range []string{"logout+jwt", "dpop+jwt", "JWE", "application/secevent+jwt"} {
		add("J15 typ "+typ, token(t, now, hs, values{"typ": typ}, nil), auth.CodeMalformed)
	}
	with("J15 refresh token", auth.CodeIdentity, values{"typ": "Refresh"})
	with("J15 refresh token", auth.CodeIdentity, values{"token_use": "refresh"})
	with("J16 17 KiB", auth.CodeMalformed, values{"x": strings.Repeat("x", 13<<10)})
	add("J16 dots", strings.Repeat(".", 1<<20), auth.CodeMalformed)
	add("J16 few dots", strings.Repeat(".", 1<<10), auth.CodeMalformed)
	add("J16 deep", raw(t, hs, head, `{"x":`+strings.Repeat("[", 5_000)+strings.Repeat("]", 5_000)+`,"alg":"x"}`), "")
	add("J16 deep and open", raw(t, hs, head, strings.Repeat(`{"x":`, 2_000)), auth.CodeMalformed)
	add("J17 five parts", "a.b.c.d.e", auth.CodeMalformed)
	add("J17 cty", token(t, now, hs, values{"cty": "JWT"}, nil), auth.CodeMalformed)
	add("J17 enc", token(t, now, hs, values{"enc": "A128GCM"}, nil), auth.CodeMalformed)
	add("J17 a token in a token", raw(t, hs, head, token(t, now, hs, nil, nil)), auth.CodeMalformed)
	return all
}

// publicTexts are the texts of public keys that an attacker may try as an HMAC secret.
func publicTexts(t *testing.T) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for _, alg := range []string{"RS256", "PS256", "ES256", "EdDSA", "RS384"} {
		s := signers()[alg]
		text := publicPEM(t, s.public())
		all[alg+" PEM"] = text
		all[alg+" PEM without line end"] = bytes.TrimSpace(text)
		der, err := x509.MarshalPKIXPublicKey(s.public())
		if err != nil {
			t.Fatal(err)
		}
		all[alg+" DER"] = der
		web, err := json.Marshal(jwk(alg, alg, s.key))
		if err != nil {
			t.Fatal(err)
		}
		all[alg+" JWK"] = web
		if k, ok := s.key.(*rsa.PrivateKey); ok {
			all[alg+" PKCS 1"] = x509.MarshalPKCS1PublicKey(&k.PublicKey)
			all[alg+" modulus"] = k.N.Bytes()
		}
	}
	return all
}

func TestJ1ToJ17(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	seen := map[string]bool{}
	for _, a := range attacks(t, c.Now()) {
		t.Run(a.name, func(t *testing.T) {
			for name, shown := range map[string]auth.Credentials{
				"passcode": {Passcode: a.token}, "bearer": {Token: a.token}, "beside a login": {Login: "alice", Passcode: a.token},
			} {
				if code := refused(t, s, shown); a.code != "" && code != a.code {
					t.Errorf("%s: got code %s, want %s", name, code, a.code)
				}
			}
		})
		id, _, _ := strings.Cut(a.name, " ")
		seen[id] = true
	}
	for i := 1; i <= 17; i++ {
		if !seen[fmt.Sprintf("J%d", i)] {
			t.Errorf("J%d was not tried", i)
		}
	}
}

// TestEveryAlgorithm: what must be accepted, or the tests above would prove nothing.
func TestEveryAlgorithm(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	for alg, key := range signers() {
		for name, head := range map[string]values{"with": {"kid": alg}, "without": nil} {
			i := admitted(t, s, token(t, c.Now(), key, head, values{"roles": []string{"a", "b"}}))
			if i.Name != "alice" || i.Source != auth.Token || strings.Join(i.Roles, " ") != "a b" {
				t.Errorf("%s %s kid: got %+v", alg, name, i)
			}
		}
	}
}

func TestAccepted(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	hs, unix := signers()["HS256"], func(d time.Duration) int64 { return c.Now().Add(d).Unix() }
	for name, change := range map[string]values{
		"J8 exp past within leeway":   {"exp": unix(-29 * time.Second)},
		"J8 exp with a fraction":      {"exp": float64(unix(time.Hour)) + 0.5},
		"J9 nbf within leeway":        {"nbf": unix(29 * time.Second)},
		"J10 aud list with ours":      {"aud": []string{"other", "natstomp"}},
		"J11 iat within leeway":       {"iat": unix(29 * time.Second)},
		"J13 exp at the bound":        {"exp": unix(24 * time.Hour)},
		"J13 exp ahead by the leeway": {"exp": unix(24*time.Hour + 30*time.Second)},
		"J12 odd but no control":      {"sub": "a$$/b.c*>d äöü"},
		"J12 256 octets":              {"sub": strings.Repeat("ü", 128)},
		"J15 of a known type":         {"token_use": "access"},
		"J16 below 16 KiB":            {"x": strings.Repeat("x", 11<<10)},
	} {
		i := admitted(t, s, token(t, c.Now(), hs, values{"typ": "at+jwt"}, change))
		want := "alice"
		if sub, ok := change["sub"].(string); ok {
			want = sub
		}
		if i.Name != want {
			t.Errorf("%s: got the name %q, want %q", name, i.Name, want)
		}
	}
}

func TestJ18SameTokenTwice(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	text := token(t, c.Now(), signers()["ES256"], nil, values{"jti": "1"})
	if a, b := admitted(t, s, text), admitted(t, s, text); a.Name != b.Name {
		t.Errorf("got %q and %q", a.Name, b.Name)
	}
}

func TestJ20ExpiryDuringConnect(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	exp := c.Now().Add(time.Second)
	text := token(t, c.Now(), signers()["RS256"], nil, values{"exp": exp.Unix()})
	want := exp.Add(30 * time.Second)
	c.add(31*time.Second - time.Nanosecond)
	i := admitted(t, s, text) // In its last nanosecond.
	if !i.Expires.Equal(want) {
		t.Errorf("got the end %v, want %v", i.Expires, want)
	}
	c.add(time.Nanosecond)
	if left := i.Expires.Sub(c.Now()); left > 0 {
		t.Errorf("got %v left, want none", left)
	}
	if code := refused(t, s, auth.Credentials{Passcode: text}); code != auth.CodeExpired {
		t.Errorf("got code %s", code)
	}
}

// TestLoginDoesNotCount: a token without an identity is refused whatever login says, and login changes no identity.
func TestLoginDoesNotCount(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	nobody := token(t, c.Now(), signers()["HS256"], nil, values{"sub": nil})
	for _, shown := range []auth.Credentials{{Login: "alice", Passcode: nobody}, {Client: "alice", Passcode: nobody}, {Login: "alice", Token: nobody}} {
		if code := refused(t, s, shown); code != auth.CodeIdentity {
			t.Errorf("%+v: got code %s", shown, code)
		}
	}
	i, err := s.Authenticate(t.Context(), auth.Credentials{Login: "root", Passcode: token(t, c.Now(), signers()["HS256"], nil, nil)})
	if err != nil || i.Name != "alice" {
		t.Errorf("got %q, %v, want alice", i.Name, err)
	}
	if code := refused(t, s, auth.Credentials{Login: "alice"}); code != auth.CodeNoToken {
		t.Errorf("no token: got code %s", code)
	}
}

func TestClaims(t *testing.T) {
	c := newClock()
	cfg := config(t)
	for _, tt := range []struct {
		rolesClaim string
		payload    values
		name       string
		roles      string // joined with |
		refused    bool
	}{
		{"roles", values{"ClientID": "a", "client_id": "b"}, "a", "", false},
		{"roles", values{"client_id": "b"}, "b", "", false},
		{"roles", values{"ClientID": json.RawMessage("null")}, "alice", "", false},
		{"roles", values{"roles": "one two  three"}, "alice", "one|two|three", false},
		{"roles", values{"roles": ""}, "alice", "", false},
		{"roles", values{"roles": []string{"with blank", "b"}}, "alice", "with blank|b", false},
		{"roles", values{"roles": []string{}}, "alice", "", false},
		{"roles", values{"roles": []any{"a", 1}}, "", "", true},
		{"roles", values{"roles": 1}, "", "", true},
		{"roles", values{"roles": "a\nb"}, "", "", true},
		{"roles", values{"roles": []string{""}}, "", "", true},
		{"roles", values{"roles": strings.Split(strings.Repeat("r", 257), "")}, "", "", true},
		{"", values{"": []string{"a"}, "roles": []string{"b"}}, "alice", "", false},
		{"realm_access.roles", values{"realm_access": values{"roles": []string{"a"}}}, "alice", "a", false},
		{"https://x.example/roles", values{"https://x.example/roles": []string{"a"}}, "alice", "a", false},
		{"realm_access.roles", values{"realm_access.roles": "exact", "realm_access": values{"roles": "path"}}, "alice", "exact", false},
	} {
		cfg.JWT.RolesClaim = tt.rolesClaim
		s := service(t, cfg, c)
		i, err := s.Authenticate(t.Context(), auth.Credentials{Passcode: token(t, c.Now(), signers()["HS256"], nil, tt.payload)})
		if (err != nil) != tt.refused || i.Name != tt.name || strings.Join(i.Roles, "|") != tt.roles {
			t.Errorf("%s of %v: got %q, %v, %v (%s), want %q, %q", tt.rolesClaim, tt.payload, i.Name, i.Roles, err, reason(err), tt.name, tt.roles)
		}
	}
}

// TestReasonsHoldNothingOfTheToken: neither the refusal nor its reason shows what the client sent.
func TestReasonsHoldNothingOfTheToken(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	const canary = "canary7f3a"
	for _, text := range []string{
		canary, canary + "." + canary + "." + canary,
		token(t, c.Now(), signers()["HS256"], values{"kid": canary}, values{"sub": canary + "\n"}),
		token(t, c.Now(), signers()["HS256"], values{"alg": canary}, nil),
		token(t, c.Now(), signers()["HS256"], nil, values{"exp": canary}),
		token(t, c.Now(), signers()["HS256"], nil, values{"iss": canary}),
	} {
		_, err := s.Authenticate(t.Context(), auth.Credentials{Passcode: text})
		if err == nil || strings.Contains(fmt.Sprintf("%+v %#v %s", err, err, reason(err)), canary) {
			t.Errorf("got %+v (%s)", err, reason(err))
		}
	}
}

func TestRefresh(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	now := admitted(t, s, token(t, c.Now(), signers()["HS256"], nil, values{"roles": "old"}))
	c.add(30 * time.Minute)
	next, err := s.Refresh(t.Context(), now, token(t, c.Now(), signers()["RS256"], nil, values{"roles": "new"}))
	if err != nil || !next.Expires.After(now.Expires) || strings.Join(next.Roles, " ") != "new" {
		t.Errorf("got %+v, %v", next, err)
	}
	for name, text := range map[string]string{
		"of another identity": token(t, c.Now(), signers()["HS256"], nil, values{"sub": "bob"}),
		"in other letters":    token(t, c.Now(), signers()["HS256"], nil, values{"sub": "Alice"}),
		"expired":             token(t, c.Now(), signers()["HS256"], nil, values{"exp": c.Now().Add(-time.Minute).Unix()}),
		"none":                "",
	} {
		if _, err := s.Refresh(t.Context(), now, text); err == nil || err.Error() != auth.RefusedText {
			t.Errorf("%s: got %v", name, err)
		}
	}
	none, err := auth.New(auth.Config{Mode: auth.ModeNone})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Refresh(t.Context(), auth.Identity{Name: "alice"}, token(t, c.Now(), signers()["HS256"], nil, nil)); err == nil {
		t.Error("without tokens: got no refusal")
	}
}
