package tokens

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/auth"
)

// Attack is a token that must be refused.
type Attack struct {
	// Name begins with the number of the case, such as J4.
	Name string
	// Token is the token. It may have characters that a header cannot carry.
	Token string
	// Code is the code of the refusal; empty where several are right.
	Code string
}

// Attacks are the cases J1 to J17 against a Config, for every algorithm where that makes a difference. J18 to J20 are no
// single tokens.
func Attacks(t testing.TB, now time.Time) []Attack {
	t.Helper()
	var all []Attack
	add := func(name, token, code string) { all = append(all, Attack{name, token, code}) }
	hs, rs, es := Signers()["HS256"], Signers()["RS256"], Signers()["ES256"]
	good := object(t, Values{"sub": "alice", "aud": "natstomp", "iss": "https://issuer.example", "exp": now.Add(time.Hour).Unix()}, nil)

	for _, alg := range []string{"none", "None", "nOnE", "NONE", "", "hs256", "ES256K", "HS256 "} {
		head := Base64(fmt.Sprintf(`{"alg":%q,"typ":"JWT"}`, alg))
		add("J1 alg "+alg, head+"."+Base64(good)+".", auth.CodeMalformed)
		signed := Sign(t, now, hs, nil, nil)
		add("J1 alg "+alg+" with a signature", head+"."+Base64(good)+signed[strings.LastIndex(signed, "."):], auth.CodeMalformed)
	}
	add("J1 no alg", Raw(t, hs, `{"typ":"JWT"}`, good), auth.CodeMalformed)
	add("J1 alg null", Raw(t, hs, `{"alg":null}`, good), auth.CodeMalformed)
	add("J1 alg list", Raw(t, hs, `{"alg":["HS256"]}`, good), auth.CodeMalformed)

	for name, key := range publicTexts(t) {
		for _, alg := range []string{"HS256", "HS384", "HS512"} {
			add("J2 "+alg+" with the public key as "+name, Sign(t, now, Signer{alg, key}, nil, nil), "")
		}
	}

	for _, alg := range []string{"RS384", "RS512", "PS256", "PS384", "PS512"} { // The key of RS256.
		add("J3 "+alg+" by the key of RS256", Sign(t, now, Signer{alg, rs.Key}, nil, nil), "")
		add("J3 "+alg+" by the key of RS256, under its name", Sign(t, now, Signer{alg, rs.Key}, Values{"kid": alg}, nil), "")
	}
	add("J3 RS256 by the key of RS512", Sign(t, now, Signer{"RS256", Signers()["RS512"].Key}, Values{"kid": "RS512"}, nil), "")
	add("J3 RS256 by the key of PS256", Sign(t, now, Signer{"RS256", Signers()["PS256"].Key}, nil, nil), auth.CodeSignature)
	add("J3 HS384 by the secret of HS512", Sign(t, now, hs, Values{"alg": "HS384"}, nil), "")

	for alg := range Signers() {
		foreign := Signer{"ES256", NewEC(es.Key.(*ecdsa.PrivateKey).Curve)}
		own, err := json.Marshal(JWK("mine", "ES256", foreign.Key))
		if err != nil {
			t.Fatal(err)
		}
		for name, head := range map[string]Values{
			"jwk": {"jwk": json.RawMessage(own)}, "jku": {"jku": "https://127.0.0.1:1/jwks"}, "x5u": {"x5u": "https://127.0.0.1:1/c"},
			"x5c": {"x5c": []string{"MIIB"}}, "jku and kid": {"jku": "https://127.0.0.1:1/jwks", "kid": alg},
		} {
			add("J4 "+name+" of the attacker, "+alg, Sign(t, now, foreign, head, nil), "")
		}
	}

	for _, kid := range []string{"../../../dev/null", "' OR 1=1 --", "RS384\x00", strings.Repeat("k", 64<<10), "of another issuer"} {
		add("J5 kid "+kid[:min(len(kid), 20)], Sign(t, now, Signers()["RS384"], Values{"kid": kid}, nil), "")
	}
	add("J5 kid number", Sign(t, now, rs, Values{"kid": 7}, nil), auth.CodeMalformed)
	add("J5 kid of another key", Sign(t, now, Signers()["RS384"], Values{"kid": "PS384"}, nil), auth.CodeKey)

	for alg, s := range Signers() {
		kid := Values{"kid": alg}
		text := Sign(t, now, s, kid, nil)
		dot := strings.LastIndex(text, ".")
		other := Sign(t, now, s, kid, Values{"sub": "mallory"})
		altered := []byte(text)
		altered[dot+5] ^= 1
		add("J6 altered signature "+alg, string(altered), "")
		add("J6 no signature "+alg, text[:dot+1], auth.CodeSignature)
		add("J6 no third part "+alg, text[:dot], auth.CodeMalformed)
		add("J6 short signature "+alg, text[:len(text)-4], "")
		add("J6 signature of another token "+alg, text[:dot]+other[strings.LastIndex(other, "."):], auth.CodeSignature)
		head, _, _ := strings.Cut(text, ".")
		add("J7 altered payload "+alg, head+"."+Base64(object(t, Values{"sub": "root", "exp": now.Add(time.Hour).Unix()}, nil))+text[dot:], auth.CodeSignature)
		add("J7 blank behind it "+alg, text+" ", auth.CodeMalformed)
		add("J7 line end behind it "+alg, text+"\n", auth.CodeMalformed)
		add("J7 padded "+alg, text+"=", auth.CodeMalformed)
	}
	head := `{"alg":"HS256"}`
	add("J7 sub twice", Raw(t, hs, head, `{"sub":"bob",`+good[1:]), auth.CodeMalformed)
	add("J7 alg twice", Raw(t, hs, `{"alg":"none","alg":"HS256"}`, good), auth.CodeMalformed)
	add("J7 something behind the claims", Raw(t, hs, head, good+`{}`), auth.CodeMalformed)
	add("J7 claims no object", Raw(t, hs, head, `["alice"]`), auth.CodeMalformed)
	add("J7 claims no UTF-8", Raw(t, hs, head, `{"x":"`+"\xff"+`",`+good[1:]), auth.CodeMalformed)

	with := func(name, code string, change Values) { add(name, Sign(t, now, hs, nil, change), code) }
	unix := func(d time.Duration) int64 { return now.Add(d).Unix() }
	with("J8 exp missing", auth.CodeClaims, Values{"exp": nil})
	with("J8 exp past", auth.CodeExpired, Values{"exp": unix(-31 * time.Second)})
	with("J8 exp text", auth.CodeClaims, Values{"exp": fmt.Sprint(unix(time.Hour))})
	with("J8 exp 1e300", auth.CodeClaims, Values{"exp": 1e300})
	with("J8 exp negative", auth.CodeClaims, Values{"exp": -1})
	with("J8 exp null", auth.CodeClaims, Values{"exp": json.RawMessage("null")})
	with("J8 exp 0", auth.CodeClaims, Values{"exp": 0})
	with("J9 nbf in the future", auth.CodeEarly, Values{"nbf": unix(31 * time.Second)})
	with("J9 nbf text", auth.CodeClaims, Values{"nbf": "0"})
	with("J9 nbf 1e300", auth.CodeClaims, Values{"nbf": 1e300})
	for name, aud := range map[string]any{
		"missing": nil, "wrong": "other", "empty": "", "empty list": []string{}, "list without ours": []string{"a", "b"},
		"a prefix": "natstom", "in capitals": "NATSTOMP", "a number": 7,
	} {
		with("J10 aud "+name, auth.CodeClaims, Values{"aud": aud})
	}
	for name, iss := range map[string]any{"missing": nil, "wrong": "https://evil.example", "with a slash": "https://issuer.example/", "a list": []string{"https://issuer.example"}} {
		with("J10 iss "+name, auth.CodeClaims, Values{"iss": iss})
	}
	with("J11 iat in the future", auth.CodeEarly, Values{"iat": unix(31 * time.Second)})
	with("J11 iat text", auth.CodeClaims, Values{"iat": "now"})
	for name, sub := range map[string]any{
		"missing": nil, "empty": "", "a number": 1, "a list": []string{"alice"}, "LF": "a\nb", "CR": "a\rb", "NUL": "a\x00b",
		"DEL": "a\x7fb", "C1": "a\u0085b", "tab": "\t", "role": "role:admin", "star": "*", "greater": ">", "long": strings.Repeat("a", 10<<10),
		"257 octets": strings.Repeat("a", 257), "replaced": "a\ufffdb",
	} {
		with("J12 sub "+name, auth.CodeIdentity, Values{"sub": sub})
	}
	add("J12 half a surrogate", Raw(t, hs, head, strings.Replace(good, `"alice"`, `"a\ud800"`, 1)), auth.CodeIdentity)
	with("J12 bad ClientID beside a good sub", auth.CodeIdentity, Values{"ClientID": ""})
	with("J12 bad client_id beside a good sub", auth.CodeIdentity, Values{"client_id": 7})
	with("J13 exp too far", auth.CodeClaims, Values{"exp": unix(24*time.Hour + 31*time.Second)})
	add("J14 crit", Sign(t, now, hs, Values{"crit": []string{"x"}, "x": 1}, nil), auth.CodeMalformed)
	add("J14 crit empty", Sign(t, now, hs, Values{"crit": []string{}}, nil), auth.CodeMalformed)
	add("J14 b64", Sign(t, now, hs, Values{"crit": []string{"b64"}, "b64": false}, nil), auth.CodeMalformed)
	add("J14 b64 without crit", Sign(t, now, hs, Values{"b64": false}, nil), auth.CodeMalformed)
	for _, typ := range []string{"logout+jwt", "dpop+jwt", "JWE", "application/secevent+jwt"} {
		add("J15 typ "+typ, Sign(t, now, hs, Values{"typ": typ}, nil), auth.CodeMalformed)
	}
	with("J15 refresh token", auth.CodeIdentity, Values{"typ": "Refresh"})
	with("J15 refresh token", auth.CodeIdentity, Values{"token_use": "refresh"})
	with("J16 17 KiB", auth.CodeMalformed, Values{"x": strings.Repeat("x", 13<<10)})
	add("J16 dots", strings.Repeat(".", 1<<20), auth.CodeMalformed)
	add("J16 few dots", strings.Repeat(".", 1<<10), auth.CodeMalformed)
	add("J16 deep", Raw(t, hs, head, `{"x":`+strings.Repeat("[", 5_000)+strings.Repeat("]", 5_000)+`,"alg":"x"}`), "")
	add("J16 deep and open", Raw(t, hs, head, strings.Repeat(`{"x":`, 2_000)), auth.CodeMalformed)
	add("J17 five parts", "a.b.c.d.e", auth.CodeMalformed)
	add("J17 cty", Sign(t, now, hs, Values{"cty": "JWT"}, nil), auth.CodeMalformed)
	add("J17 enc", Sign(t, now, hs, Values{"enc": "A128GCM"}, nil), auth.CodeMalformed)
	add("J17 a token in a token", Raw(t, hs, head, Sign(t, now, hs, nil, nil)), auth.CodeMalformed)
	return all
}

// publicTexts are the texts of public keys that an attacker may try as an HMAC secret.
func publicTexts(t testing.TB) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	for _, alg := range []string{"RS256", "PS256", "ES256", "EdDSA", "RS384"} {
		s := Signers()[alg]
		text := PublicPEM(t, s.Public())
		all[alg+" PEM"] = text
		all[alg+" PEM without line end"] = bytes.TrimSpace(text)
		der, err := x509.MarshalPKIXPublicKey(s.Public())
		if err != nil {
			t.Fatal(err)
		}
		all[alg+" DER"] = der
		web, err := json.Marshal(JWK(alg, alg, s.Key))
		if err != nil {
			t.Fatal(err)
		}
		all[alg+" JWK"] = web
		if k, ok := s.Key.(*rsa.PrivateKey); ok {
			all[alg+" PKCS 1"] = x509.MarshalPKCS1PublicKey(&k.PublicKey)
			all[alg+" modulus"] = k.N.Bytes()
		}
	}
	return all
}
