package auth_test

import (
	"errors"
	"testing"

	"github.com/natstomp/natstomp/connector/auth"
)

// The reports of real users that concern this package, by the numbers under which they were collected. The list of all is in
// test/field.

// TestFR108OneTextForAll holds FR-108: what is refused by default is not left to defaults, and all of it has one text.
func TestFR108OneTextForAll(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	good := token(t, c.Now(), signers()["RS256"], nil, nil)
	for name, shown := range map[string]string{
		"alg none":                    b64(`{"alg":"none"}`) + good[len(b64(`{"alg":"RS256","typ":"JWT"}`)):],
		"alg in lower case":           token(t, c.Now(), signers()["RS256"], values{"alg": "rs256"}, nil),
		"HS256 with the public key":   token(t, c.Now(), signer{Algorithm: "HS256", Key: publicPEM(t, signers()["RS256"].Public())}, nil, nil),
		"nothing":                     "",
		"a passcode that is no token": "guest",
	} {
		_, err := s.Authenticate(t.Context(), auth.Credentials{Login: "guest", Passcode: shown})
		var r *auth.Refused
		if !errors.As(err, &r) || err.Error() != "authentication failed" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	admitted(t, s, good)
}

// TestFR109AudienceAsList holds FR-109: an audience among others counts, a list without it does not (CVE-2020-26160).
func TestFR109AudienceAsList(t *testing.T) {
	c := newClock()
	s := service(t, config(t), c)
	for name, tt := range map[string]struct {
		aud  any
		want bool
	}{
		"empty list": {[]string{}, false}, "list of others": {[]string{"other"}, false}, "missing": {nil, false}, "list of an empty one": {[]string{""}, false},
		"among others": {[]string{"ours", "natstomp"}, true}, "alone": {"natstomp", true},
	} {
		_, err := s.Authenticate(t.Context(), auth.Credentials{Passcode: token(t, c.Now(), signers()["HS256"], nil, values{"aud": tt.aud})})
		if (err == nil) != tt.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestFR122RefusedInALoop holds FR-122: hundreds of clients that retry without a pause are answered late, and cost no check of a
// passcode each second for each of them.
func TestFR122RefusedInALoop(t *testing.T) {
	c := newClock()
	d := auth.NewDamperAt(c.Now)
	answered := 0
	for range 10 { // Seconds.
		for range 1_000 {
			if d.Refused(auth.Local) == 0 {
				answered++
			}
		}
		c.add(1_000_000_000)
	}
	if answered > 10 {
		t.Errorf("%d refusals were answered at once", answered)
	}
}
