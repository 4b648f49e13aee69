package auth_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/tokens"
)

func TestJ1ToJ17(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	seen := map[string]bool{}
	for _, a := range tokens.Attacks(t, c.Now()) {
		t.Run(a.Name, func(t *testing.T) {
			for name, shown := range map[string]auth.Credentials{
				"passcode": {Passcode: a.Token}, "bearer": {Token: a.Token}, "beside a login": {Login: "alice", Passcode: a.Token},
			} {
				if code := refused(t, s, shown); a.Code != "" && code != a.Code {
					t.Errorf("%s: got code %s, want %s", name, code, a.Code)
				}
			}
		})
		id, _, _ := strings.Cut(a.Name, " ")
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
