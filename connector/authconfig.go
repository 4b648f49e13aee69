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

// embeddedPort is the address of the embedded NATS server's port. Nobody must get past the logins of STOMP clients there:
// without users or a configuration of its own the port is off (DESIGN section 6).
func (c Config) embeddedPort() string {
	e := c.NATS.Embedded
	if c.Auth.Mode != "none" && len(e.Users) == 0 && e.ConfigFile == "" {
		return "off"
	}
	return e.Listen
}
