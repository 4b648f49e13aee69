package connector

import "github.com/natstomp/natstomp/connector/auth"

// AuthConfig returns what c says of authentication as package auth takes it. Its Changed is not set.
func (c Config) AuthConfig() auth.Config {
	j := c.Auth.JWT
	return auth.Config{
		Mode:      auth.Mode(c.Auth.Mode),
		UsersFile: c.Auth.UsersFile,
		JWT: auth.JWT{
			HMACSecret:       j.HMACSecret.Reveal,
			PublicKeyFiles:   j.PublicKeyFiles,
			JWKS:             j.JWKS,
			Issuer:           j.Issuer,
			Audience:         j.Audience,
			Leeway:           j.Leeway,
			MaxTokenLifetime: j.MaxTokenLifetime,
			ClientIDClaims:   j.ClientIDClaims,
			RolesClaim:       j.RolesClaim,
		},
		Logger: c.Logger,
	}
}
