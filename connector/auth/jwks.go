package auth

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/MicahParks/keyfunc/v3"
)

// parseJWKS returns the keys of a JSON Web Key Set (RFC 7517). Keys that are not for signatures, or of a kind that is
// not known, are left out, as section 5 asks; secrets too, unless symmetric. A set without any key left is an error.
func parseJWKS(text []byte, symmetric bool) ([]key, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, errors.New("is no JSON Web Key Set")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("has %d keys, more than %d", len(set.Keys), maxKeys)
	}
	var keys []key
	var left []string
	for i, text := range set.Keys {
		k, err := parseJWK(text, symmetric)
		if err != nil {
			left = append(left, fmt.Sprintf("key %d %v", i+1, err))
			continue
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errors.New(strings.Join(append([]string{"has no key that can be used"}, left...), "; "))
	}
	return keys, nil
}

// parseJWK returns one key. What its alg does not say is bound to the usual algorithm of its kind.
func parseJWK(text []byte, symmetric bool) (key, error) {
	one, err := keyfunc.NewJWKJSON(text)
	if err != nil {
		return key{}, errors.New("cannot be read") // The error may show the key.
	}
	all, err := one.Storage().KeyReadAll(context.Background())
	if err != nil || len(all) != 1 {
		return key{}, errors.New("cannot be read") // See above.
	}
	jwk := all[0].Marshal()
	var ops []string
	for _, o := range jwk.KEYOPS {
		ops = append(ops, o.String())
	}
	switch {
	case jwk.USE != "" && jwk.USE != "sig":
		return key{}, errors.New("is not for signatures")
	case len(ops) > 0 && !slices.Contains(ops, "verify"):
		return key{}, errors.New("is not to verify with")
	}
	value := all[0].Key()
	if private, ok := value.(interface{ Public() crypto.PublicKey }); ok {
		value = private.Public()
	}
	if _, secret := value.([]byte); secret && !symmetric {
		return key{}, errors.New("is a secret, which has no place at a URL")
	}
	k, err := bind(jwk.ALG.String(), value)
	k.id = jwk.KID
	return k, err
}
