package connector

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// minHMACSecret is the octets below which an HMAC secret can be guessed (RFC 7518, 3.2, for HS256).
const minHMACSecret = 32

func (v *validation) auth(a Auth) {
	if v.oneOf("auth.mode", a.Mode, "none", "users", "jwt") {
		v.modeKeys(a)
	}
	j := a.JWT
	if s := j.HMACSecret.Reveal(); s != "" && len(s) < minHMACSecret {
		v.fault("auth.jwt.hmac_secret", "", fmt.Sprintf("has %d octets, fewer than %d", len(s), minHMACSecret), "make one with: openssl rand -hex 32")
	}
	each(v, "auth.jwt.public_key_files", j.PublicKeyFiles, itself, func(at, file string) {
		v.required(at, file, "name a PEM file")
	})
	v.jwks(j.JWKS)
	atLeast(v, "auth.jwt.leeway", j.Leeway, 0, "")
	atLeast(v, "auth.jwt.max_token_lifetime", j.MaxTokenLifetime, 0, "0 sets no bound")
	if len(j.ClientIDClaims) == 0 {
		v.fault("auth.jwt.client_id_claims", "", "is empty", "list the claims that may name the client, such as sub")
	}
	each(v, "auth.jwt.client_id_claims", j.ClientIDClaims, itself, func(at, claim string) {
		v.required(at, claim, "name a claim")
	})
}

// cookie checks the cookie that may hold a token: a browser sends it with every page's WebSocket, so that an origin list
// that lets every page in would let every page act for the user.
func (v *validation) cookie(c Config) {
	const path = "auth.jwt.cookie"
	name := c.Auth.JWT.Cookie
	switch {
	case name == "":
	case c.Auth.Mode != "jwt":
		v.faultQuoted(path, name, "is not used with auth.mode "+c.Auth.Mode, "set auth.mode: jwt, or remove it")
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }):
		v.faultQuoted(path, name, "is no name of a cookie", "")
	case slices.Contains(c.Listeners.WS.Origins, "*") || slices.Contains(c.Listeners.WSS.Origins, "*"):
		v.faultQuoted(path, name, "would let every web page act for the user: an origin list has *", "list the origins of your own pages")
	}
}

// modeKeys checks that the keys of the chosen mode are there, and that none of another mode is: a users file beside
// auth.mode none would look like protection and be none.
func (v *validation) modeKeys(a Auth) {
	jwtKeys := []struct {
		path string
		set  bool
	}{
		{"auth.jwt.hmac_secret", a.JWT.HMACSecret != ""},
		{"auth.jwt.public_key_files", len(a.JWT.PublicKeyFiles) > 0},
		{"auth.jwt.jwks", a.JWT.JWKS != ""},
	}
	if a.Mode == "users" {
		v.required("auth.users_file", a.UsersFile, "auth.mode users needs one")
	} else if a.UsersFile != "" {
		v.faultQuoted("auth.users_file", a.UsersFile, "is not used with auth.mode "+a.Mode, "set auth.mode: users, or remove it")
	}
	keys := false
	for _, k := range jwtKeys {
		keys = keys || k.set
		if k.set && a.Mode != "jwt" {
			v.fault(k.path, "", "is not used with auth.mode "+a.Mode, "set auth.mode: jwt, or remove it")
		}
	}
	if a.Mode == "jwt" && !keys {
		v.fault("auth.jwt", "", "has no key to check tokens with", "set hmac_secret, public_key_files or jwks")
	}
}

// jwks checks the name of a JWKS file or its https URL.
func (v *validation) jwks(source string) {
	scheme, _, isURL := strings.Cut(source, "://")
	if !isURL {
		return
	}
	u, err := url.Parse(source)
	switch {
	case !strings.EqualFold(scheme, "https"):
		v.fault("auth.jwt.jwks", "", fmt.Sprintf("has the scheme %q", scheme), "name a file or an https URL: keys must not come over an open line")
	case err != nil || u.Host == "":
		v.fault("auth.jwt.jwks", "", "is no URL", "name a file or an https URL")
	}
}

func (v *validation) authz(a Authz) {
	if a.KV && a.Policy != "" {
		v.faultQuoted("authz.policy", a.Policy, "is not used with authz.kv: true", "remove one of them; natstomp policy push puts a file into the bucket")
	}
	if a.Model != "" && a.Policy == "" && !a.KV {
		v.faultQuoted("authz.model", a.Model, "has no effect without a policy", "set authz.policy or authz.kv")
	}
}
