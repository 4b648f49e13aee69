package rights_test

import (
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/tokens"
)

// withTokens has sessions opened by tokens.
func withTokens(cfg *connector.Config) {
	cfg.Auth.Mode = "jwt"
	cfg.Auth.JWT.HMACSecret = tokens.Secret
	cfg.NATS.Embedded.Listen = "off"
}

// token is one of somebody with roles.
func token(t *testing.T, name string, roles ...string) string {
	t.Helper()
	now := time.Now()
	return tokens.Sign(t, now, tokens.Signers()["HS256"], nil, tokens.Values{"sub": name, "exp": now.Add(time.Hour).Unix(), "roles": roles})
}

// bearer opens a session with a token. What login says does not count.
func (s *server) bearer(transport, token string) *rig.Client {
	s.t.Helper()
	c := s.dial(transport)
	if _, err := c.Connect("1.2", "login", "root", "client-id", "root", "passcode", token); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// TestRefreshWithOtherRoles renews sessions: what the new token does not give is gone at once, what it gives is there.
func TestRefreshWithOtherRoles(t *testing.T) {
	t.Parallel()
	s := start(t, "p, root, *, >, *, allow\np, role:reader, *, a, read, allow\np, role:writer, *, a, write, allow\n", withTokens)
	for _, transport := range transports {
		c := s.bearer(transport, token(t, "anna", "reader", "writer"))
		c.Ask("SUBSCRIBE", "id", "1", "destination", "/topic/a")
		c.Ask("SEND", "destination", "/$auth/refresh", "body", token(t, "anna", "reader"))
		c.Do("SEND", "destination", "/topic/a")
		c.Denied("write", "/topic/a")

		c = s.bearer(transport, token(t, "anna", "reader"))
		c.Ask("SUBSCRIBE", "id", "1", "destination", "/topic-store/a")
		c.Do("SEND", "destination", "/$auth/refresh", "body", token(t, "anna", "writer"), "receipt", "asked")
		c.Denied("read", "/topic-store/a")

		c = s.bearer(transport, token(t, "anna"))
		c.Ask("SEND", "destination", "/$auth/refresh", "body", token(t, "anna", "writer"))
		c.Ask("SEND", "destination", "/queue/a", "body", "written")
		c.Ask("BEGIN", "transaction", "t")
		c.Ask("SEND", "destination", "/queue/a", "transaction", "t", "body", "never")
		c.Ask("SEND", "destination", "/$auth/refresh", "body", token(t, "anna", "reader"))
		c.Do("COMMIT", "transaction", "t")
		c.Denied("write", "/queue/a")
	}
	for _, attempt := range [][]string{
		{"body", token(t, "bob", "writer")}, {"body", token(t, "root")}, {"body", "none"}, {"transaction", "t", "body", token(t, "anna", "writer")},
	} {
		c := s.bearer("tcp", token(t, "anna"))
		c.Ask("BEGIN", "transaction", "t")
		c.Do("SEND", append(attempt, "destination", "/$auth/refresh", "receipt", "asked")...)
		if refusal, _ := outcome(t, c); refusal == "" {
			t.Errorf("a refresh with %q was accepted", attempt)
		}
	}
	for _, destination := range []string{"$auth/refresh", "/topic/$auth/refresh", "/$auth/refresh/", "/$auth.refresh"} {
		c := s.bearer("tcp", token(t, "anna"))
		c.Do("SEND", "destination", destination, "body", token(t, "anna", "writer"), "receipt", "asked")
		if refusal, _ := outcome(t, c); refusal == "" {
			t.Errorf("a SEND to %s was accepted", destination)
		}
	}
}

// TestC1NothingWithoutAPolicy has a server with logins and no policy: nobody may do anything.
func TestC1NothingWithoutAPolicy(t *testing.T) {
	t.Parallel()
	s := start(t, "", func(cfg *connector.Config) { withTokens(cfg); cfg.Authz.Policy = "" })
	for _, transport := range transports {
		for _, destination := range []string{"/topic/a", "/queue/a", "/topic-store/a", "/query/a"} {
			c := s.bearer(transport, token(t, "anna", "admin"))
			c.Do("SUBSCRIBE", "id", "1", "destination", destination)
			c.Denied("read", destination)
			c = s.bearer(transport, token(t, "anna", "admin"))
			c.Do("SEND", "destination", destination)
			c.Denied("write", destination)
		}
	}
}
