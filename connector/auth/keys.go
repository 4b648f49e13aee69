package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	minRSA, maxRSA = 2048, 8192 // bits: smaller ones can be broken, larger ones cost milliseconds per token
	maxKeys        = 100        // of one source
)

// algorithms are all that a key can be bound to. The value is the octets of an HMAC secret below which it can be guessed
// (RFC 7518, 3.2), and 0 for the others.
var algorithms = map[string]int{
	"HS256": 32, "HS384": 48, "HS512": 64,
	"RS256": 0, "RS384": 0, "RS512": 0,
	"PS256": 0, "PS384": 0, "PS512": 0,
	"ES256": 0, "ES384": 0, "ES512": 0,
	"EdDSA": 0,
}

// key is a key and the one algorithm that it is good for, so that nothing that is known as a public key can be taken for
// a secret.
type key struct {
	algorithm string
	id        string // kid; empty fits every token
	value     any    // as golang-jwt wants it
}

// CutAlgorithm splits "PS256:rest", as a key file or a secret may be written. The algorithm is empty where there is none
// before the colon.
func CutAlgorithm(text string) (algorithm, rest string) {
	before, after, ok := strings.Cut(text, ":")
	if _, known := algorithms[before]; ok && known {
		return before, after
	}
	return "", text
}

// bind binds a public key or a secret to an algorithm, or to the usual one of its kind where there is none.
func bind(algorithm string, value any) (key, error) {
	fits, err := fitting(value)
	switch {
	case err != nil:
		return key{}, err
	case algorithm == "":
		algorithm = fits[0]
	case !slices.Contains(fits, algorithm):
		return key{}, fmt.Errorf("does not fit %s: its algorithms are %s", algorithm, strings.Join(fits, ", "))
	}
	if secret, ok := value.([]byte); ok && len(secret) < algorithms[algorithm] {
		return key{}, fmt.Errorf("has %d octets, fewer than the %d of %s", len(secret), algorithms[algorithm], algorithm)
	}
	return key{algorithm: algorithm, value: value}, nil
}

// fitting returns the algorithms that a key can be used with, the usual one first.
func fitting(value any) ([]string, error) {
	switch k := value.(type) {
	case []byte:
		return []string{"HS256", "HS384", "HS512"}, nil
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSA || bits > maxRSA {
			return nil, fmt.Errorf("is an RSA key of %d bits: from %d to %d are accepted", bits, minRSA, maxRSA)
		}
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, nil
	case *ecdsa.PublicKey:
		if name, ok := map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[k.Curve.Params().Name]; ok {
			return []string{name}, nil
		}
		return nil, fmt.Errorf("is on the curve %s, for which there is no algorithm", k.Curve.Params().Name)
	case ed25519.PublicKey:
		return []string{"EdDSA"}, nil
	}
	return nil, errors.New("is of a kind for which there is no algorithm")
}

// parsePEM returns all public keys of a PEM file: bare ones and those of certificates.
func parsePEM(algorithm string, text []byte) ([]key, error) {
	var keys []key
	for n := 1; ; n++ {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		value, err := parseBlock(block)
		var k key
		if err == nil {
			k, err = bind(algorithm, value)
		}
		if err != nil {
			return nil, fmt.Errorf("block %d %w", n, err)
		}
		keys = append(keys, k)
	}
	switch {
	case len(keys) == 0:
		return nil, errors.New("has no PEM block")
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("has more than %d keys", maxKeys)
	}
	return keys, nil
}

func parseBlock(block *pem.Block) (any, error) {
	var value any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		value, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		value, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var cert *x509.Certificate
		if cert, err = x509.ParseCertificate(block.Bytes); err == nil {
			value = cert.PublicKey
		}
	default:
		if strings.Contains(block.Type, "PRIVATE") {
			return nil, errors.New("is a private key: only its public half belongs here")
		}
		return nil, errors.New("is neither a public key nor a certificate")
	}
	if err != nil {
		return nil, errors.New("cannot be read as " + strings.ToLower(block.Type)) // What the parser says tells nobody more.
	}
	return value, nil
}
