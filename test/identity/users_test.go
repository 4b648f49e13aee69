package identity_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
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
	file := put(t, "users.txt", alice+bob+carol)
	g := newRig(t, func(c *connector.Config) {
		c.Auth.Mode, c.Auth.UsersFile = "users", file
		c.Authz.Policy = put(t, "policy.csv", "p, role:reader, *, >, *, allow\np, bob, events, own.{sub}, *, allow\n")
	})
	for _, over := range []string{"tcp", "tls", "ws", "wss"} {
		if got := g.come(visit{over: over}).connect("login", "alice", "passcode", "secret-a").Get("session"); got != "alice" {
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
			c := g.come(visit{over: over})
			c.do("CONNECT", append(shown, "accept-version", "1.2")...)
			if got := c.refused("").Get("message"); got != auth.RefusedText {
				t.Errorf("over %s, %q: got %q", over, shown, got)
			}
		}
	}
	a, b, c := g.login("login", "alice", "passcode", "secret-a"), g.login("login", "bob", "passcode", "secret-b"), g.login("login", "carol", "passcode", "secret-c")
	a.subscribe("1", "/topic/any")
	b.subscribe("1", "/topic/own/bob")
	c.subscribe("1", "/topic/any")
	b.do("BEGIN", "transaction", "t", "receipt", "t")
	b.receipt("t")

	// A broken file changes nothing.
	replace(t, file, alice+"broken\n")
	if err := g.Reload(); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a broken file: got %v", err)
	}
	a.alive()
	b.alive()
	c.alive()

	// The same line keeps its sessions, another hash ends them, so does no line, and other roles count at once.
	replace(t, file, line(t, "alice", "secret-new", "reader")+line(t, "carol", "secret-c", "reader")[:0]+strings.Replace(carol, ":reader", ":", 1)+bob)
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	a.refused(auth.RefusedText)
	c.refused("access denied: no right to read /topic/any")
	b.send("/topic/own/bob", "still there")
	if got := b.next("MESSAGE"); string(got.Body) != "still there" {
		t.Errorf("got %s", got)
	}
	b.alive()
	old := g.come(visit{over: "tcp"})
	old.do("CONNECT", "accept-version", "1.2", "login", "alice", "passcode", "secret-a")
	old.refused(auth.RefusedText)
	g.login("login", "alice", "passcode", "secret-new").alive()

	replace(t, file, line(t, "alice", "secret-new", "reader"))
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	b.refused(auth.RefusedText)
}

// TestUsersFileIsFollowed without being told.
func TestUsersFileIsFollowed(t *testing.T) {
	t.Parallel()
	alice, bob := line(t, "alice", "secret-a", ""), line(t, "bob", "secret-b", "")
	file := put(t, "users.txt", alice+bob)
	g := newRig(t, func(c *connector.Config) {
		c.Auth.Mode, c.Auth.UsersFile = "users", file
		allow(t, c)
	})
	a, b := g.login("login", "alice", "passcode", "secret-a"), g.login("login", "bob", "passcode", "secret-b")
	replace(t, file, alice)
	b.refused(auth.RefusedText)
	a.alive()
}

// TestClientCertificate: the identity of a certificate is in CONNECTED, in policy and in durable subscriptions, and no part
// of the distinguished name is (FR-123). A passcode that is shown too must be right.
func TestClientCertificate(t *testing.T) {
	g := newRig(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Listeners.TLS.ClientCAFile = put(t, "authority.pem", string(authority().pem()))
		c.Authz.Policy = put(t, "policy.csv", "p, spiffe://example.org/billing, *, >, *, allow\np, spiffe://example.org/other, *, >, *, allow\np, alice, events, >, *, allow\n")
	})
	far := time.Now().Add(time.Hour)
	with := func(uri string) visit {
		return visit{over: "tls", trust: authority().trust(authority().named(t, uri, far))}
	}
	billing := g.come(with("spiffe://example.org/billing"))
	if got := billing.connect("login", "admin", "client-id", "admin").Get("session"); got != "spiffe___example_org_billing" {
		t.Errorf("got the session %q", got)
	}
	durable := []string{"durable-subscription-name", "d", "ack", "client"}
	billing.subscribe("1", "/topic-store/kept", durable...)
	_ = billing.Close()
	until(t, "end of the session", func() bool { return len(g.Connections()) == 0 })
	other := g.come(with("spiffe://example.org/other"))
	other.connect()
	other.subscribe("1", "/topic-store/kept", durable...)
	other.do("UNSUBSCRIBE", append([]string{"id", "1", "receipt", "gone"}, durable[:2]...)...) // Its own one.
	other.receipt("gone")
	other.send("/topic-store/kept", "meanwhile", "receipt", "stored")
	other.receipt("stored")
	again := g.come(with("spiffe://example.org/billing"))
	again.connect()
	again.subscribe("1", "/topic-store/kept", durable...)
	if got := again.next("MESSAGE"); string(got.Body) != "meanwhile" {
		t.Errorf("got %s", got)
	}
	stranger := g.come(with("spiffe://example.org/billing/x"))
	stranger.connect()
	stranger.do("SEND", "destination", "/topic/a")
	stranger.refused("access denied")
	named := g.come(with("spiffe://example.org/billing"))
	if got := named.connect("passcode", token(t, nil)).Get("session"); got != "alice" {
		t.Errorf("with a token: got the session %q", got)
	}
	named.do("SEND", "destination", "/queue/a")
	named.refused("access denied")
	wrong := g.come(with("spiffe://example.org/billing"))
	wrong.do("CONNECT", "accept-version", "1.2", "passcode", "x")
	wrong.refused(auth.RefusedText)
	role := g.come(with("role:admin"))
	role.do("CONNECT", "accept-version", "1.2")
	role.refused(auth.RefusedText)
	for name, cert := range map[string]tls.Certificate{
		"another authority's": newIssuer().named(t, "spiffe://example.org/billing", far),
		"a past one":          authority().named(t, "spiffe://example.org/billing", time.Now().Add(-time.Second)),
		"none":                {},
	} {
		c, err := g.open(visit{over: "tls", trust: authority().trust(cert)})
		if err == nil {
			_, err = c.Connect("1.2") // With TLS 1.3 the client hears of it at its first read.
			_ = c.Close()
		}
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
