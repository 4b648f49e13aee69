package identity_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/tokens"
)

// TestReportDeniedSubscription holds FR-104: the ERROR for a subscription that the policy denies has its receipt and its
// destination, so that the client can leave it out when it comes again, and ends that connection only.
func TestReportDeniedSubscription(t *testing.T) {
	g := start(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Authz.Policy = rig.Put(t, "policy.csv", "p, alice, events, open.>, *, allow\n")
	})
	other := g.login("passcode", token(t, nil))
	other.Subscribe("1", "/topic/open/a")
	wanted := []string{"/topic/open/a", "/topic/closed/b", "/queue/closed", "/topic/open/c"}
	for len(wanted) > 2 {
		c := g.login("passcode", token(t, nil))
		for i, destination := range wanted {
			c.Do("SUBSCRIBE", "id", fmt.Sprint(i), "destination", destination, "receipt", destination)
		}
		f, err := c.Read(rig.Patience)
		for ; err == nil && f.Command == "RECEIPT"; f, err = c.Read(rig.Patience) {
		}
		denied := f.Get("receipt-id")
		if err != nil || f.Command != "ERROR" || !strings.HasSuffix(f.Get("message"), "no right to read "+denied) {
			t.Fatalf("got %s, %v, want an ERROR that names the destination", f, err)
		}
		if err := c.ExpectClose(rig.Patience); err != nil {
			t.Fatal(err)
		}
		wanted = slices.DeleteFunc(wanted, func(d string) bool { return d == denied })
	}
	c := g.login("passcode", token(t, nil))
	for i, destination := range wanted {
		c.Subscribe(fmt.Sprint(i), destination)
	}
	c.Publish("/topic/open/a", "x")
	c.Next("MESSAGE")
	other.Next("MESSAGE")
}

// TestReportExpiredTokenInALoop holds FR-107 and FR-103: a client that comes again and again with a token that is over is
// answered and closed each time, soon late, and is one warning in the log, by its address, and then one with how often it came
// besides. The metrics count all, and somebody else is another warning.
func TestReportExpiredTokenInALoop(t *testing.T) {
	t.Parallel()
	const rounds = 12
	from := elsewhere()
	g := start(t, func(c *connector.Config) { withTokens(t, c) })
	past := token(t, tokens.Values{"exp": time.Now().Add(-time.Hour).Unix()})
	told := func() (lines []record) {
		for line := range strings.Lines(g.Log.String()) {
			var r record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			if r["level"] != "DEBUG" {
				lines = append(lines, r)
			}
		}
		return of(lines, ip(from))
	}
	var took time.Duration
	for range rounds {
		took += g.guess(from, "login", "browser", "passcode", past)
	}
	if took < time.Second { // 5 at once, then 5 per second.
		t.Errorf("%d refusals of one address took %v: nothing slows it down", rounds, took)
	}
	other := elsewhere()
	g.guess(other, "login", "browser", "passcode", past)
	if got := g.refusals("expired"); got != fmt.Sprint(rounds+1) {
		t.Errorf("the metrics count %s refusals, want %d", got, rounds+1)
	}
	if all := told(); len(all) != 1 || all[0]["msg"] != "client.auth_failed" || all[0]["level"] != "WARN" || all[0]["code"] != "expired" {
		t.Errorf("got %v of %d refusals, want one warning", all, rounds)
	}
	if all := of(g.audit("client.auth_failed"), ip(other)); len(all) != 1 {
		t.Errorf("got %v of somebody else", all)
	}
	g.Stop() // It tells what the end of the minute would.
	if all := told(); len(all) != 2 || all[1]["repeated"] != rounds-1.0 || all[1]["remote"] != ip(from) || all[1]["code"] != "expired" {
		t.Errorf("got %v at the end, want the other %d in one line", all, rounds-1)
	}
}

// refusals is how many logins the metrics say were refused for a reason.
func (g *server) refusals(reason string) string {
	return rig.Metric(g.t, g.At("admin"), `natstomp_auth_failures_total{reason="`+reason+`"}`)
}

// TestReportConnectionsOfAUser holds FR-122: of the hundreds of clients of a public feed nobody takes more connections than he
// may, whatever names and transports he uses; that is no failed login, and takes nothing from others. Each way in which a session
// ends gives its place back.
func TestReportConnectionsOfAUser(t *testing.T) {
	const most = 2
	g := start(t, func(c *connector.Config) {
		precise(t, c)
		c.Limits.ConnectionsPerUser = most
	})
	of := func(name string, end time.Time) string {
		return token(t, tokens.Values{"sub": name, "exp": end.Unix()})
	}
	far := time.Now().Add(time.Hour)
	come := func(over, name string, end time.Time) *rig.Client {
		c := g.come(rig.Visit{Over: over})
		c.Login("login", "any", "passcode", of(name, end))
		return c
	}
	from := elsewhere()
	refused := func() {
		t.Helper()
		for _, over := range []string{"tcp", "tls", "ws", "wss"} {
			c := g.come(rig.Visit{Over: over, From: from})
			c.Do("CONNECT", "accept-version", "1.2", "login", over, "passcode", of("alice", far))
			c.Refused("connection limit reached for this user: limits.connections_per_user is 2")
		}
	}
	a, b := come("tcp", "alice", far), come("wss", "alice", far)
	refused()
	others := []*rig.Client{come("tcp", "bob", far), come("ws", "alice/", far), come("tls", "Alice", far)}
	for end, c := range map[string]*rig.Client{"closed": a, "kicked": b} {
		switch end {
		case "closed":
			_ = c.Close()
		case "kicked":
			for _, shown := range g.Connections() {
				if shown.Transport == "wss" && !g.Disconnect(shown.ID) {
					t.Error("nobody was disconnected")
				}
			}
			c.Refused("disconnected by an operator")
		}
		rig.Holds(t, "end of it", func() bool { return len(g.Connections()) == most-1+len(others) })
		c = come("tcp", "alice", soon(5*time.Second))
		refused()
		c.Refused("token expired")
		come("tcp", "alice", far)
	}
	refused()
	for _, c := range others {
		c.Alive()
	}
	if failed := g.audit("client.auth_failed"); len(failed) != 0 {
		t.Errorf("got %v, as if the logins were wrong", failed)
	}
}

// TestReportLargeToken holds FR-137: a token of up to 16 KiB needs no setting, whatever it comes by, and of one beyond that
// the client hears the limit or, where that is the token's own, gets the refusal.
func TestReportLargeToken(t *testing.T) {
	g := start(t, func(c *connector.Config) { withTokens(t, c) })
	sized := func(size int) string {
		filler := size*3/4 - 300 // For what else is in it.
		return token(t, tokens.Values{"groups": strings.Repeat("g", filler)})
	}
	for _, kib := range []int{6, 12, 15} {
		text := sized(kib << 10)
		for _, over := range []string{"tcp", "tls", "ws", "wss"} {
			c := g.come(rig.Visit{Over: over})
			c.Login("login", "alice", "passcode", text)
			c.Alive()
		}
		c := g.come(rig.Visit{Over: "ws", Header: http.Header{"Authorization": {"Bearer " + text}}})
		c.Login()
		c.Alive()
		c.Publish("/$auth/refresh", text, "receipt", "renewed")
		c.Receipt("renewed")
	}
	large := sized(17 << 10)
	for _, over := range []string{"tcp", "wss"} {
		c := g.come(rig.Visit{Over: over})
		c.Do("CONNECT", "accept-version", "1.2", "passcode", large)
		c.Refused("limits.passcode is 16384")
	}
	c := g.come(rig.Visit{Over: "ws", Header: http.Header{"Authorization": {"Bearer " + large}}})
	c.Do("CONNECT", "accept-version", "1.2")
	c.Refused(auth.RefusedText)
}
