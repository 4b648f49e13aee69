package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// SigningKey signs tokens. It does not show its secret when it is printed.
type SigningKey struct{ secret *key }

// String returns the algorithm.
func (k SigningKey) String() string {
	if k.secret == nil {
		return "no key"
	}
	return k.secret.algorithm
}

// GoString returns what String returns.
func (k SigningKey) GoString() string { return k.String() }

// NewSigningKey returns the key in a PEM file with a private key, or the secret that the text is where it is no PEM. The
// algorithm may be empty: then it is HS256, RS256, ES256, ES384, ES512 or EdDSA by the kind of the key, or that before the
// secret, as in hmac_secret.
func NewSigningKey(algorithm string, text []byte) (SigningKey, error) {
	if algorithm != "" {
		if _, known := algorithms[algorithm]; !known {
			return SigningKey{}, fmt.Errorf("there is no algorithm %q", algorithm)
		}
	}
	block, _ := pem.Decode(text)
	if block == nil {
		before, secret := CutAlgorithm(string(text))
		if algorithm == "" {
			algorithm = before
		}
		k, err := bind(algorithm, []byte(secret))
		if err != nil {
			return SigningKey{}, fmt.Errorf("the secret %w", err)
		}
		return SigningKey{&k}, nil
	}
	private, err := parsePrivate(block)
	if err != nil {
		return SigningKey{}, err
	}
	k, err := bind(algorithm, private.Public())
	if err != nil {
		return SigningKey{}, fmt.Errorf("the key %w", err)
	}
	k.value = private
	return SigningKey{&k}, nil
}

func parsePrivate(block *pem.Block) (crypto.Signer, error) {
	var value any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		value, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		value, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		value, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("a PEM block %q is no private key that can be read", block.Type)
	}
	if err != nil {
		return nil, errors.New("the private key cannot be read") // What the parser says tells nobody more.
	}
	switch k := value.(type) {
	case *rsa.PrivateKey:
		return k, nil
	case *ecdsa.PrivateKey:
		return k, nil
	case ed25519.PrivateKey:
		return k, nil
	}
	return nil, errors.New("the private key is of a kind for which there is no algorithm")
}

// Draft is what a token is to say.
type Draft struct {
	// Name is the identity; CheckName must hold for it. Required.
	Name string
	// NameClaim is the claim that it goes into. Default sub.
	NameClaim string
	// Roles are the roles, none of them empty.
	Roles []string
	// RolesClaim is the claim that they go into; required with roles.
	RolesClaim string
	// Issuer and Audience are left out where they are empty.
	Issuer, Audience string
	// Issued is when the token is made, Expires when it ends; both in whole seconds. Required.
	Issued, Expires time.Time
	// KeyID names the key; empty for none.
	KeyID string
}

// Sign makes a token.
func (k SigningKey) Sign(d Draft) (string, error) {
	switch err := CheckName(d.Name); {
	case err != nil:
		return "", fmt.Errorf("the identity %w", err)
	case len(d.Roles) > 0 && d.RolesClaim == "":
		return "", errors.New("there is no claim for roles")
	case !d.Expires.After(d.Issued):
		return "", errors.New("the token would expire before it is made")
	}
	for _, role := range d.Roles {
		if err := checkText(role); err != nil {
			return "", fmt.Errorf("a role %w", err)
		}
	}
	if d.NameClaim == "" {
		d.NameClaim = "sub"
	}
	all := jwt.MapClaims{d.NameClaim: d.Name, "iat": d.Issued.Unix(), "exp": d.Expires.Unix()}
	if len(d.Roles) > 0 {
		all[d.RolesClaim] = d.Roles
	}
	if d.Issuer != "" {
		all["iss"] = d.Issuer
	}
	if d.Audience != "" {
		all["aud"] = d.Audience
	}
	token := jwt.NewWithClaims(jwt.GetSigningMethod(k.secret.algorithm), all)
	if d.KeyID != "" {
		token.Header["kid"] = d.KeyID
	}
	text, err := token.SignedString(k.secret.value)
	switch {
	case err != nil:
		return "", errors.New("the key does not sign")
	case len(text) > maxToken:
		return "", errors.New("the token would be longer than 16 KiB")
	}
	return text, nil
}

// Inspect returns the header and the claims of a token as JSON, without checking anything: anybody may have written them.
func Inspect(token string) (header, claims json.RawMessage, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, nil, fmt.Errorf("is no signed JSON Web Token: it has %d parts, not 3", len(parts))
	}
	for i, to := range []*json.RawMessage{&header, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || !json.Valid(text) {
			return nil, nil, fmt.Errorf("is no JSON Web Token: part %d is no JSON in base64url", i+1)
		}
		*to = text
	}
	return header, claims, nil
}
