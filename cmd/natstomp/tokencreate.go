package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
)

// tokenFlags are those of token create.
type tokenFlags struct {
	config, keyFile, secretFile, algorithm, kid, name string
	roles                                             []string
	expires                                           time.Duration
}

func newTokenCreate(p process) *cobra.Command {
	var f tokenFlags
	c := &cobra.Command{
		Use:   "create --client-id NAME",
		Short: "Make a token",
		Long: "create writes a token to stdout, signed with the private key of --key-file, or with the secret of --secret-file, or\n" +
			"with auth.jwt.hmac_secret of the configuration. Issuer, audience and the claims that it uses are those of the\n" +
			"configuration, so that a server with the same one accepts it.",
		Example: "  natstomp token create --client-id alice --role reader --secret-file secret.txt\n" +
			"  natstomp token create --client-id alice --key-file private.pem --auth-jwt-issuer https://issuer.example --expires-in 8h",
		Args: atMost(0),
	}
	flags := c.Flags()
	flags.StringVar(&f.name, "client-id", "", "`name` of the client; required")
	flags.StringArrayVar(&f.roles, "role", nil, "`role` of the client; may be repeated")
	flags.DurationVar(&f.expires, "expires-in", time.Hour, "`time` until it expires, not more than auth.jwt.max_token_lifetime")
	flags.StringVar(&f.keyFile, "key-file", "", "PEM `file` with the private key to sign with")
	flags.StringVar(&f.secretFile, "secret-file", "", "`file` with the HMAC secret to sign with")
	flags.StringVar(&f.algorithm, "algorithm", "", "`algorithm` to sign with; by default HS256, RS256, ES256, ES384, ES512 or EdDSA by the kind of the key")
	flags.StringVar(&f.kid, "kid", "", "`name` of the key, for servers that choose it by that")
	addAuthFlags(c, &f.config)
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case f.name == "":
			return usageOf(c, errors.New("--client-id is missing"))
		case f.keyFile != "" && f.secretFile != "":
			return usageOf(c, errors.New("--key-file and --secret-file are both given"))
		}
		config, err := loadAuth(p, c, f.config)
		if err != nil {
			return err
		}
		key, err := f.key(config.config.Auth)
		if err != nil {
			return err
		}
		text, err := f.sign(config.config.Auth.JWT, key, time.Now())
		if err != nil {
			return fmt.Errorf("making a token: %w", err)
		}
		_, err = fmt.Fprintln(p.stdout, text)
		return err
	}
	return c
}

// key reads the key that is named, or takes the secret of the configuration.
func (f *tokenFlags) key(a connector.Auth) (auth.SigningKey, error) {
	file := f.keyFile
	if file == "" {
		file = f.secretFile
	}
	text := a.JWT.HMACSecret.Reveal()
	switch {
	case file != "":
		var err error
		if text, err = readSecret(file); err != nil {
			return auth.SigningKey{}, err
		}
	case text == "":
		return auth.SigningKey{}, errors.New("there is no key to sign with: name one with --key-file or --secret-file, or set auth.jwt.hmac_secret")
	}
	key, err := auth.NewSigningKey(f.algorithm, []byte(text))
	if err != nil {
		return key, fmt.Errorf("the key to sign with cannot be used: %w", err)
	}
	return key, nil
}

// sign makes a token that a server with the same configuration accepts.
func (f *tokenFlags) sign(j connector.JWT, key auth.SigningKey, now time.Time) (string, error) {
	if j.MaxTokenLifetime > 0 && f.expires > j.MaxTokenLifetime {
		return "", fmt.Errorf("--expires-in %v is more than auth.jwt.max_token_lifetime, %v: it would be refused", f.expires, j.MaxTokenLifetime)
	}
	claim := j.ClientIDClaims[0] // Validated: there is one.
	if slices.Contains(j.ClientIDClaims, "sub") {
		claim = "sub"
	}
	now = now.Truncate(time.Second)
	return key.Sign(auth.Draft{
		Name: f.name, NameClaim: claim,
		Roles: f.roles, RolesClaim: j.RolesClaim,
		Issuer: j.Issuer, Audience: j.Audience,
		Issued: now, Expires: now.Add(f.expires),
		KeyID: f.kid,
	})
}
