package identity_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/rig"
)

// line is one of the users file.
func line(t *testing.T, name, passcode, roles string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(passcode), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return name + ":" + string(hash) + ":" + roles + "\n"
}

// TestUsers: logins over every transport, and what a change of the file does to those who are in.
func TestUsers(t *testing.T) {
	alice, bob, carol := line(t, "alice", "secret-a", "reader"), line(t, "bob", "secret-b", ""), line(t, "carol", "secret-c", "reader")
	file := rig.Put(t, "users.txt", alice+bob+carol)
	g := start(t, func(c *connector.Config) {
		c.Auth.Mode, c.Auth.UsersFile = "users", file
		c.Authz.Policy = rig.Put(t, "policy.csv", "p, role:reader, *, >, *, allow\np, bob, events, own.{sub}, *, allow\n")
	})
	for _, over := range []string{"tcp", "tls", "ws", "wss"} {
		if got := g.come(rig.Visit{Over: over}).Login("login", "alice", "passcode", "secret-a").Get("session"); got != "alice" {
			t.Errorf("over %s: got the session %q", over, got)
		}
		for _, shown := range [][]string{
			{"login", "alice", "passcode", "secret-b"},
			{"login", "alice"},
			{"passcode", "secret-a"},
			{"login", "nobody", "passcode", "secret-a"},
			{"login", "ALICE", "passcode", "secret-a"},
			{"login", "alice ", "passcode", "secret-a"},
			{"login", "alice", "passcode", "secret-a "},
			{"client-id", "alice", "passcode", "secret-a"},
			{"login", "bob", "passcode", "secret-a", "login", "alice"},
			{},
		} {
			c := g.come(rig.Visit{Over: over})
			c.Do("CONNECT", append(shown, "accept-version", "1.2")...)
			if got := c.Refused("").Get("message"); got != auth.RefusedText {
				t.Errorf("over %s, %q: got %q", over, shown, got)
			}
		}
	}
	a, b, c := g.login("login", "alice", "passcode", "secret-a"), g.login("login", "bob", "passcode", "secret-b"), g.login("login", "carol", "passcode", "secret-c")
	a.Subscribe("1", "/topic/any")
	b.Subscribe("1", "/topic/own/bob")
	c.Subscribe("1", "/topic/any")
	b.Do("BEGIN", "transaction", "t", "receipt", "t")
	b.Receipt("t")

	// A broken file changes nothing.
	rig.Replace(t, file, alice+"broken\n")
	if err := g.Reload(); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a broken file: got %v", err)
	}
	a.Alive()
	b.Alive()
	c.Alive()

	// The same line keeps its sessions, another hash ends them, so does no line, and other roles count at once.
	rig.Replace(t, file, line(t, "alice", "secret-new", "reader")+line(t, "carol", "secret-c", "reader")[:0]+strings.Replace(carol, ":reader", ":", 1)+bob)
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	a.Refused(auth.RefusedText)
	c.Refused("access denied: no right to read /topic/any")
	b.Publish("/topic/own/bob", "still there")
	if got := b.Next("MESSAGE"); string(got.Body) != "still there" {
		t.Errorf("got %s", got)
	}
	b.Alive()
	old := g.come(rig.Visit{})
	old.Do("CONNECT", "accept-version", "1.2", "login", "alice", "passcode", "secret-a")
	old.Refused(auth.RefusedText)
	g.login("login", "alice", "passcode", "secret-new").Alive()

	rig.Replace(t, file, line(t, "alice", "secret-new", "reader"))
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	b.Refused(auth.RefusedText)
}

// TestUsersFileIsFollowed without being told.
func TestUsersFileIsFollowed(t *testing.T) {
	t.Parallel()
	alice, bob := line(t, "alice", "secret-a", ""), line(t, "bob", "secret-b", "")
	file := rig.Put(t, "users.txt", alice+bob)
	g := start(t, func(c *connector.Config) {
		c.Auth.Mode, c.Auth.UsersFile = "users", file
		allow(t, c)
	})
	a, b := g.login("login", "alice", "passcode", "secret-a"), g.login("login", "bob", "passcode", "secret-b")
	rig.Replace(t, file, alice)
	b.Refused(auth.RefusedText)
	a.Alive()
}

// TestClientCertificate: the identity of a certificate is in CONNECTED, in policy and in durable subscriptions, and no part
// of the distinguished name is (FR-123). A passcode that is shown too must be right.
func TestClientCertificate(t *testing.T) {
	g := start(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Listeners.TLS.ClientCAFile = rig.Put(t, "authority.pem", string(rig.Authority().PEM()))
		c.Authz.Policy = rig.Put(t, "policy.csv", "p, spiffe://example.org/billing, *, >, *, allow\np, spiffe://example.org/other, *, >, *, allow\np, alice, events, >, *, allow\n")
	})
	far := time.Now().Add(time.Hour)
	with := func(uri string) rig.Visit {
		return rig.Visit{Over: "tls", Trust: rig.Authority().Trust(rig.Authority().Named(t, uri, far))}
	}
	billing := g.come(with("spiffe://example.org/billing"))
	if got := billing.Login("login", "admin", "client-id", "admin").Get("session"); got != "spiffe___example_org_billing" {
		t.Errorf("got the session %q", got)
	}
	durable := []string{"durable-subscription-name", "d", "ack", "client"}
	billing.Subscribe("1", "/topic-store/kept", durable...)
	_ = billing.Close()
	rig.Holds(t, "end of the session", func() bool { return len(g.Connections()) == 0 })
	other := g.come(with("spiffe://example.org/other"))
	other.Login()
	other.Subscribe("1", "/topic-store/kept", durable...)
	other.Do("UNSUBSCRIBE", append([]string{"id", "1", "receipt", "gone"}, durable[:2]...)...) // Its own one.
	other.Receipt("gone")
	other.Publish("/topic-store/kept", "meanwhile", "receipt", "stored")
	other.Receipt("stored")
	again := g.come(with("spiffe://example.org/billing"))
	again.Login()
	again.Subscribe("1", "/topic-store/kept", durable...)
	if got := again.Next("MESSAGE"); string(got.Body) != "meanwhile" {
		t.Errorf("got %s", got)
	}
	stranger := g.come(with("spiffe://example.org/billing/x"))
	stranger.Login()
	stranger.Do("SEND", "destination", "/topic/a")
	stranger.Refused("access denied")
	named := g.come(with("spiffe://example.org/billing"))
	if got := named.Login("passcode", token(t, nil)).Get("session"); got != "alice" {
		t.Errorf("with a token: got the session %q", got)
	}
	named.Do("SEND", "destination", "/queue/a")
	named.Refused("access denied")
	wrong := g.come(with("spiffe://example.org/billing"))
	wrong.Do("CONNECT", "accept-version", "1.2", "passcode", "x")
	wrong.Refused(auth.RefusedText)
	role := g.come(with("role:admin"))
	role.Do("CONNECT", "accept-version", "1.2")
	role.Refused(auth.RefusedText)
	for name, cert := range map[string]tls.Certificate{
		"another authority's": rig.NewIssuer().Named(t, "spiffe://example.org/billing", far),
		"a past one":          rig.Authority().Named(t, "spiffe://example.org/billing", time.Now().Add(-time.Second)),
		"none":                {},
	} {
		c, err := g.open(rig.Visit{Over: "tls", Trust: rig.Authority().Trust(cert)})
		if err == nil {
			_, err = c.Connect("1.2") // With TLS 1.3 the client hears of it at its first read.
			_ = c.Close()
		}
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
