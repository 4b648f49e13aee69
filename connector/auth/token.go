package auth

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// maxToken is the octets of a token (DESIGN section 6).
const maxToken = 16 << 10

// tokens judges JSON Web Tokens.
type tokens struct {
	// Immutable.
	cfg    JWT
	files  []*watched // of public keys
	ring   *keyring   // nil: none
	parser *jwt.Parser
	now    func() time.Time

	static keyFiles
}

func openTokens(cfg JWT, now func() time.Time, log *slog.Logger) (*tokens, error) {
	options := []jwt.ParserOption{
		jwt.WithValidMethods(slices.Sorted(maps.Keys(algorithms))),
		jwt.WithTimeFunc(now),
		jwt.WithLeeway(cfg.Leeway),
		jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(),
		jwt.WithStrictDecoding(),
		jwt.WithIssuer(cfg.Issuer), // Empty: any.
	}
	if cfg.Audience != "" {
		options = append(options, jwt.WithAudience(cfg.Audience))
	}
	t := &tokens{cfg: cfg, parser: jwt.NewParser(options...), now: now}
	for _, file := range cfg.PublicKeyFiles {
		_, path := CutAlgorithm(file)
		t.files = append(t.files, &watched{path: path})
	}
	err := t.reloadFiles()
	if cfg.JWKS != "" {
		var fault error
		t.ring, fault = openKeyring(cfg.JWKS, newFetcher(cfg.RootCAs), now, log)
		err = errors.Join(err, fault)
	}
	if err == nil && t.ring == nil && len(t.static.all()) == 0 {
		err = errors.New("there is no key to check tokens with")
	}
	return t, err
}

// authenticate judges a token.
func (t *tokens) authenticate(ctx context.Context, text string) (Identity, error) {
	claims, err := t.verify(ctx, text)
	if err != nil {
		return Identity{}, err
	}
	expires := claims.time("exp")
	if most := t.cfg.MaxTokenLifetime; most > 0 && expires.Sub(t.now()) > most+t.cfg.Leeway {
		return Identity{}, refuse(CodeClaims, "token expires later than max_token_lifetime allows")
	}
	name, err := claims.name(t.cfg.ClientIDClaims)
	if err != nil {
		return Identity{}, err
	}
	roles, err := claims.roles(t.cfg.RolesClaim)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Name: name, Roles: roles, Expires: expires.Add(t.cfg.Leeway), Source: Token}, nil
}

// verify returns the claims of a token that is signed, in time, and for us.
func (t *tokens) verify(ctx context.Context, text string) (claims, error) {
	header, err := precheck(text)
	if err != nil {
		return nil, err
	}
	known := t.keys()
	claims, err := t.try(text, known, header)
	if t.ring == nil || !keyTrouble(err) {
		return claims, err
	}
	if unknown := header.kid != nil && !knows(known, *header.kid); t.ring.renew(ctx, unknown) {
		return t.try(text, t.keys(), header)
	}
	return claims, err
}

// keys returns all keys of now.
func (t *tokens) keys() []key {
	keys := t.static.all()
	if t.ring != nil {
		keys = slices.Concat(keys, t.ring.usable())
	}
	return keys
}

// keyTrouble says that another key may help.
func keyTrouble(err error) bool {
	var r *Refused
	return errors.As(err, &r) && (r.Code == CodeKey || r.Code == CodeSignature)
}

// knows says whether a key has the name.
func knows(keys []key, kid string) bool {
	return slices.ContainsFunc(keys, func(k key) bool { return k.id == kid })
}

// try judges a token by some keys: those that are bound to its algorithm, and have its name or none. Where the keys come
// from is never the token's choice: jku, jwk, x5u and x5c of its header are not looked at.
func (t *tokens) try(text string, keys []key, h header) (claims, error) {
	var fits jwt.VerificationKeySet
	for _, k := range keys {
		if k.algorithm == h.algorithm && (h.kid == nil || k.id == "" || k.id == *h.kid) {
			fits.Keys = append(fits.Keys, k.value)
		}
	}
	if len(fits.Keys) == 0 {
		return nil, refuse(CodeKey, "token: no key for it")
	}
	token, err := t.parser.ParseWithClaims(text, jwt.MapClaims{}, func(*jwt.Token) (any, error) { return fits, nil })
	if err != nil {
		return nil, explain(err)
	}
	return claims(token.Claims.(jwt.MapClaims)), nil
}

// explain says why the library refused a token. What the library itself says may quote the token.
func explain(err error) error {
	for _, e := range []struct {
		is           error
		code, reason string
	}{
		{jwt.ErrTokenMalformed, CodeMalformed, "token: malformed"},
		{jwt.ErrTokenSignatureInvalid, CodeSignature, "token: wrong signature"},
		{jwt.ErrTokenUnverifiable, CodeKey, "token: no key for it"},
		{jwt.ErrTokenRequiredClaimMissing, CodeClaims, "token: exp, iss or aud is missing"},
		{jwt.ErrInvalidType, CodeClaims, "token: a claim is of the wrong type"},
		{jwt.ErrTokenInvalidIssuer, CodeClaims, "token: of another issuer"},
		{jwt.ErrTokenInvalidAudience, CodeClaims, "token: for another audience"},
		{jwt.ErrTokenExpired, CodeExpired, "token: expired"},
		{jwt.ErrTokenNotValidYet, CodeEarly, "token: nbf is in the future"},
		{jwt.ErrTokenUsedBeforeIssued, CodeEarly, "token: iat is in the future"},
	} {
		if errors.Is(err, e.is) {
			return refuse(e.code, e.reason)
		}
	}
	return refuse(CodeMalformed, "token: not accepted")
}

// header is what counts of a token's header.
type header struct {
	algorithm string
	kid       *string // nil: none
}

// precheck refuses what the library would accept, before any work is done: what is too long, what names a thing twice, so
// that two readers could read two tokens, and headers that ask for more than a signature.
func precheck(text string) (header, error) {
	switch {
	case text == "":
		return header{}, refuse(CodeNoToken, "no token")
	case len(text) > maxToken:
		return header{}, refuse(CodeMalformed, "token: longer than 16 KiB")
	case strings.Count(text, ".") != 2 || strings.ContainsFunc(text, foreign):
		return header{}, refuse(CodeMalformed, "token: is no signed JSON Web Token")
	}
	parts := strings.Split(text, ".")
	head, err := members(parts[0])
	if err != nil {
		return header{}, err
	}
	payload, err := members(parts[1])
	if err != nil {
		return header{}, err
	}
	if err := checkTimes(payload); err != nil {
		return header{}, err
	}
	return checkHeader(head)
}

// foreign says whether a character has no place in a token. Decoders skip line ends, so that several texts would be one
// token.
func foreign(r rune) bool { return r != '.' && !plain(r) }

// members decodes an object of a token. Names must be unique (RFC 7519, 4).
func members(part string) (map[string]json.RawMessage, error) {
	malformed := refuse(CodeMalformed, "token: malformed")
	text, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil || !utf8.Valid(text) {
		return nil, malformed
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, malformed
	}
	all := make(map[string]json.RawMessage)
	for dec.More() {
		name, err := dec.Token()
		key, ok := name.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return nil, malformed
		}
		if _, twice := all[key]; twice {
			return nil, refuse(CodeMalformed, "token: a name is given twice")
		}
		all[key] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, malformed
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed
	}
	return all, nil
}

// checkHeader refuses what is no plain signed token, whatever its signature.
func checkHeader(head map[string]json.RawMessage) (header, error) {
	for _, name := range []string{"crit", "b64", "enc", "zip"} {
		if _, ok := head[name]; ok {
			return header{}, refuse(CodeMalformed, "token: its header has "+name)
		}
	}
	var h header
	var typ, cty string
	for name, to := range map[string]any{"alg": &h.algorithm, "kid": &h.kid, "typ": &typ, "cty": &cty} {
		if value, ok := head[name]; ok && json.Unmarshal(value, to) != nil {
			return header{}, refuse(CodeMalformed, "token: "+name+" of its header is no text")
		}
	}
	if _, known := algorithms[h.algorithm]; !known {
		return header{}, refuse(CodeMalformed, "token: its algorithm is not accepted")
	}
	// RFC 8725, 3.11: what calls itself something else, such as a logout token, is not for us.
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "", "jwt", "at+jwt":
	default:
		return header{}, refuse(CodeMalformed, "token: it is of another type")
	}
	if cty != "" {
		return header{}, refuse(CodeMalformed, "token: there is another one in it")
	}
	return h, nil
}

// maxTime is the last second of the year 9999, in seconds.
const maxTime = 253402300799

// checkTimes refuses times that do not fit into one, which the library would round to something.
func checkTimes(payload map[string]json.RawMessage) error {
	for _, name := range []string{"exp", "nbf", "iat"} {
		value, ok := payload[name]
		if !ok {
			continue
		}
		var at *float64
		if json.Unmarshal(value, &at) != nil || at == nil || *at < 0 || *at > maxTime {
			return refuse(CodeClaims, "token: "+name+" is no time")
		}
	}
	return nil
}
