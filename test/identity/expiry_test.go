package identity_test

import (
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/tokens"
)

// soon is a moment that a token can name, a while from now.
func soon(least time.Duration) time.Time {
	return time.Now().Add(least).Truncate(time.Second).Add(time.Second)
}

// endsAt wants the ERROR at the end of a token: not before, and as soon as a busy machine has it.
func endsAt(t *testing.T, c *rig.Client, end time.Time, text string) {
	t.Helper()
	f := c.Next("ERROR")
	if late := time.Since(end); late < 0 || late > 10*time.Second {
		t.Errorf("the session ended %v after %s", late, end)
	}
	if got := f.Get("message"); got != text {
		t.Errorf("the ERROR says %q, want %q", got, text)
	}
	if err := c.ExpectClose(rig.Patience); err != nil {
		t.Error(err)
	}
}

// precise has no leeway, so that a session ends when its token says.
func precise(t *testing.T, c *connector.Config) {
	t.Helper()
	withTokens(t, c)
	c.Auth.JWT.Leeway = 0
}

// TestExpiry: each session ends within a second after its token or its certificate, whatever its client does (FR-106).
func TestExpiry(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *connector.Config) {
		precise(t, c)
		c.Listeners.TLS.ClientCAFile = rig.Put(t, "authority.pem", string(rig.Authority().PEM()))
	})
	end := soon(6 * time.Second)
	text := token(t, tokens.Values{"exp": end.Unix()})
	sessions := map[string]*rig.Client{}
	for _, over := range []string{"tcp", "ws", "wss"} {
		c := g.come(rig.Visit{Over: over})
		c.Login("passcode", text)
		sessions["idle over "+over] = c
	}
	sessions["certificate"] = g.come(rig.Visit{Over: "tls", Trust: rig.Authority().Trust(rig.Authority().Named(t, "urn:a", end))})
	sessions["certificate"].Login()
	sessions["holds messages"] = g.login("passcode", text)
	stays := g.login("passcode", token(t, nil))
	stays.Publish("/queue/held", "1", "receipt", "stored")
	stays.Receipt("stored")
	sessions["holds messages"].Subscribe("1", "/queue/held", "ack", "client")
	sessions["holds messages"].Next("MESSAGE")
	stays.Subscribe("1", "/queue/held", "ack", "client")

	sends, beats := g.login("passcode", text), g.come(rig.Visit{})
	beats.Login("passcode", text, "heart-beat", "100,0")
	sessions["sends"], sessions["beats"] = sends, beats
	var busy sync.WaitGroup
	busy.Go(func() { // A reader that always has something to do.
		frame := stompclient.New("SEND", "destination", "/topic/busy").WithBody(make([]byte, 512)).Encode("1.2")
		for sends.Write(frame) == nil {
		}
	})
	busy.Go(func() {
		for beats.Write([]byte("\n")) == nil {
			<-time.After(50 * time.Millisecond)
		}
	})
	for name, c := range sessions {
		want := "token expired"
		if name == "certificate" {
			want = "client certificate expired"
		}
		endsAt(t, c, end, want)
		_ = c.Close()
	}
	busy.Wait()
	if got := stays.Next("MESSAGE"); string(got.Body) != "1" { // At once, not after the ack wait.
		t.Errorf("got %s", got)
	}
	if got := g.audit("session.expired"); len(got) != len(sessions) {
		t.Errorf("got %d audit lines for %d sessions: %v", len(got), len(sessions), got)
	}
}

// TestExpiryOfAPausedSession: a publisher that is not read, for memory_limit, hears of the end of its token as well.
func TestExpiryOfAPausedSession(t *testing.T) {
	ballast := make([]byte, 96<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	g := start(t, func(c *connector.Config) {
		precise(t, c)
		c.MemoryLimit = 64 << 20
	})
	rig.Holds(t, "pause", func() bool { return len(g.lines("memory.paused")) > 0 })
	end := soon(6 * time.Second)
	c := g.login("passcode", token(t, tokens.Values{"exp": end.Unix()}))
	c.Publish("/topic/a", "1", "receipt", "never")
	endsAt(t, c, end, "token expired")
	if ballast[1] != 1 {
		t.Error("the ballast is gone")
	}
}

// TestRefresh renews a session over /$auth/refresh, also where no destination without a prefix is one (FR-106).
func TestRefresh(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *connector.Config) {
		precise(t, c)
		c.Destinations.DefaultPattern = "none"
		c.Authz.Policy = rig.Put(t, "policy.csv", "p, role:reader, events, a, read, allow\np, role:writer, events, a, write, allow\n")
	})
	end := soon(5 * time.Second)
	roles := func(end time.Time, sub string, roles ...string) string {
		return token(t, tokens.Values{"sub": sub, "exp": end.Unix(), "roles": roles})
	}
	const there = "/$auth/refresh"
	c := g.login("passcode", roles(end, "alice", "reader"))
	c.Subscribe("1", "/topic/a")
	next := soon(12 * time.Second)
	c.Publish(there, roles(next, "alice", "reader", "writer"), "receipt", "renewed", "content-type", "application/jwt")
	c.Receipt("renewed")
	c.Publish("/topic/a", "with the new role") // The roles of the new token count at once.
	if got := c.Next("MESSAGE"); string(got.Body) != "with the new role" {
		t.Errorf("got %s", got)
	}
	loses := g.login("passcode", roles(next, "alice", "reader"))
	loses.Subscribe("1", "/topic/a")
	loses.Publish(there, roles(next, "alice", "writer"))
	loses.Refused("access denied: no right to read /topic/a")

	for name, body := range map[string]string{
		"of another identity": roles(next, "bob", "reader"), "no token": "x", "nothing": "", "a past one": roles(time.Now().Add(-time.Second), "alice"),
	} {
		d := g.login("passcode", roles(next, "alice", "reader"))
		d.Publish(there, body, "receipt", "r")
		if got := d.Refused(auth.RefusedText); got.Get("receipt-id") != "r" {
			t.Errorf("%s: got %s", name, got)
		}
	}
	d := g.login("passcode", roles(next, "alice"))
	d.Do("BEGIN", "transaction", "t")
	d.Publish(there, roles(next, "alice"), "transaction", "t")
	d.Refused("a SEND to /$auth/refresh cannot be in a transaction")
	d = g.login("passcode", roles(next, "alice"))
	d.Do("SUBSCRIBE", "id", "1", "destination", there)
	d.Refused("takes a SEND with a new token, nothing comes from it")
	for _, near := range []string{"/$auth/refresh/", "/$AUTH/refresh", "$auth/refresh", "/topic/$auth/refresh", "/$auth"} {
		d = g.login("passcode", roles(next, "alice"))
		d.Publish(near, roles(next, "alice"))
		d.Refused("destination")
	}
	endsAt(t, c, next, "token expired") // And not at the end of the first token.
	if got := g.audit("session.renewed"); len(got) != 2 || got[0]["session"] != "alice" {
		t.Errorf("got the audit lines %v", got)
	}
}

// TestRefreshWithoutToken: only a session that a token opened can be renewed by one.
func TestRefreshWithoutToken(t *testing.T) {
	const want = "is for sessions that a token opened"
	g := start(t, nil)
	c := g.login()
	c.Publish("/$auth/refresh", "x")
	c.Refused(want)
	g = start(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Listeners.TLS.ClientCAFile = rig.Put(t, "authority.pem", string(rig.Authority().PEM()))
	})
	c = g.come(rig.Visit{Over: "tls", Trust: rig.Authority().Trust(rig.Authority().Named(t, "urn:a", time.Now().Add(time.Hour)))})
	c.Login()
	c.Publish("/$auth/refresh", token(t, tokens.Values{"sub": "urn:a"}))
	c.Refused(want)
}
