package auth_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/auth"
)

// TestSignedIsAccepted: what a key of each algorithm signs is let in by its public half.
func TestSignedIsAccepted(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	for alg, one := range signers() {
		text := []byte(secret)
		if _, symmetric := one.Key.([]byte); !symmetric {
			text = privatePEM(t, one.Key)
		}
		key, err := auth.NewSigningKey(alg, text)
		if err != nil {
			t.Fatalf("%s: %v", alg, err)
		}
		if shown := fmt.Sprintf("%v %+v %#v %s", key, key, key, key); strings.Contains(shown, secret[:8]) || strings.Count(shown, alg) != 4 {
			t.Errorf("%s: the key shows itself: %s", alg, shown)
		}
		draft := auth.Draft{
			Name: "häns", Roles: []string{"a", "b c"}, RolesClaim: "roles", Issuer: "https://issuer.example", Audience: "natstomp",
			Issued: c.Now(), Expires: c.Now().Add(time.Hour), KeyID: alg,
		}
		signed, err := key.Sign(draft)
		if err != nil {
			t.Fatalf("%s: %v", alg, err)
		}
		i := admitted(t, s, signed)
		if i.Name != "häns" || strings.Join(i.Roles, "|") != "a|b c" || !i.Expires.Equal(draft.Expires.Add(30*time.Second)) {
			t.Errorf("%s: got %+v", alg, i)
		}
		header, claims, err := auth.Inspect(signed)
		if err != nil || !json.Valid(header) || !strings.Contains(string(claims), "häns") || !strings.Contains(string(header), alg) {
			t.Errorf("%s: got %s, %s, %v", alg, header, claims, err)
		}
	}
}

func TestDrafts(t *testing.T) {
	now := newClock().Now()
	key, err := auth.NewSigningKey("", []byte("HS512:"+secret))
	if err != nil || key.String() != "HS512" {
		t.Fatalf("got %v, %v", key, err)
	}
	good := auth.Draft{Name: "a", Issued: now, Expires: now.Add(time.Hour)}
	for name, change := range map[string]func(*auth.Draft){
		"no name":    func(d *auth.Draft) { d.Name = "" },
		"role":       func(d *auth.Draft) { d.Name = "role:a" },
		"no claim":   func(d *auth.Draft) { d.Roles = []string{"a"} },
		"empty role": func(d *auth.Draft) { d.Roles, d.RolesClaim = []string{""}, "roles" },
		"over":       func(d *auth.Draft) { d.Expires = now },
		"too long": func(d *auth.Draft) {
			d.Roles, d.RolesClaim = strings.Split(strings.Repeat(strings.Repeat("r", 250)+",", 60)+"r", ","), "roles"
		},
	} {
		d := good
		change(&d)
		if text, err := key.Sign(d); err == nil {
			t.Errorf("%s: got %s", name, text)
		}
	}
	for name, text := range map[string]string{
		"short": "canary", "public": string(publicPEM(t, signers()["ES256"].Public())), "broken": "-----BEGIN PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----\n",
	} {
		if _, err := auth.NewSigningKey("", []byte(text)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := auth.NewSigningKey("RS256", privatePEM(t, signers()["ES256"].Key)); err == nil {
		t.Error("an EC key for RS256: got no error")
	}
	for _, text := range []string{"", "a.b", "a.b.c", "e30.x.", "e30.e30.x.y"} {
		if _, _, err := auth.Inspect(text); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
}
