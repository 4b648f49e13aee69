package identity_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/tokens"
)

// TestReportDeniedSubscription holds FR-104: the ERROR for a subscription that the policy denies has its receipt and its
// destination, so that the client can leave it out when it comes again, and ends that connection only.
func TestReportDeniedSubscription(t *testing.T) {
	g := newRig(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Authz.Policy = put(t, "policy.csv", "p, alice, events, open.>, *, allow\n")
	})
	other := g.login("passcode", token(t, nil))
	other.subscribe("1", "/topic/open/a")
	wanted := []string{"/topic/open/a", "/topic/closed/b", "/queue/closed", "/topic/open/c"}
	for len(wanted) > 2 {
		c := g.login("passcode", token(t, nil))
		for i, destination := range wanted {
			c.do("SUBSCRIBE", "id", fmt.Sprint(i), "destination", destination, "receipt", destination)
		}
		f, err := c.Read(patience)
		for ; err == nil && f.Command == "RECEIPT"; f, err = c.Read(patience) {
		}
		denied := f.Get("receipt-id")
		if err != nil || f.Command != "ERROR" || !strings.HasSuffix(f.Get("message"), "no right to read "+denied) {
			t.Fatalf("got %s, %v, want an ERROR that names the destination", f, err)
		}
		if err := c.ExpectClose(patience); err != nil {
			t.Fatal(err)
		}
		wanted = slices.DeleteFunc(wanted, func(d string) bool { return d == denied })
	}
	c := g.login("passcode", token(t, nil))
	for i, destination := range wanted {
		c.subscribe(fmt.Sprint(i), destination)
	}
	c.send("/topic/open/a", "x")
	c.next("MESSAGE")
	other.next("MESSAGE")
}

// TestReportExpiredTokenInALoop holds FR-107 and FR-103: a client that comes again and again with a token that is over is
// answered and closed each time, soon late, and is one warning in the log each time, by its address. All are counted.
func TestReportExpiredTokenInALoop(t *testing.T) {
	t.Parallel()
	const rounds = 12
	g := newRig(t, func(c *connector.Config) { withTokens(t, c) })
	past := token(t, tokens.Values{"exp": time.Now().Add(-time.Hour).Unix()})
	from := elsewhere()
	var took time.Duration
	for range rounds {
		took += g.guess(from, "login", "browser", "passcode", past)
	}
	if took < time.Second { // 5 at once, then 5 per second.
		t.Errorf("%d refusals of one address took %v: nothing slows it down", rounds, took)
	}
	failed := 0
	for line := range strings.Lines(g.log.String()) {
		switch {
		case strings.Contains(line, `"msg":"client.auth_failed"`) && strings.Contains(line, "expired"):
			failed++
		case strings.Contains(line, `"level":"WARN"`) || strings.Contains(line, `"level":"ERROR"`):
			t.Errorf("more is logged of it: %s", line)
		}
	}
	if failed != rounds {
		t.Errorf("got %d lines for %d refusals", failed, rounds)
	}
	if want := fmt.Sprintf("natstomp_auth_failures_total{reason=\"expired\"} %d\n", rounds); !strings.Contains(g.metrics(), want) {
		t.Errorf("the metrics do not have %s", want)
	}
}

// metrics is what the admin listener tells of all.
func (g *rig) metrics() string {
	g.t.Helper()
	resp, err := http.Get("http://" + g.at("admin") + "/metrics")
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return string(text)
}

// TestReportLargeToken holds FR-137: a token of up to 16 KiB needs no setting, whatever it comes by, and of one beyond that
// the client hears the limit or, where that is the token's own, gets the refusal.
func TestReportLargeToken(t *testing.T) {
	g := newRig(t, func(c *connector.Config) { withTokens(t, c) })
	sized := func(size int) string {
		filler := size*3/4 - 300 // For what else is in it.
		return token(t, tokens.Values{"groups": strings.Repeat("g", filler)})
	}
	for _, kib := range []int{6, 12, 15} {
		text := sized(kib << 10)
		for _, over := range []string{"tcp", "tls", "ws", "wss"} {
			c := g.come(visit{over: over})
			c.connect("login", "alice", "passcode", text)
			c.alive()
		}
		c := g.come(visit{over: "ws", header: http.Header{"Authorization": {"Bearer " + text}}})
		c.connect()
		c.alive()
		c.send("/$auth/refresh", text, "receipt", "renewed")
		c.receipt("renewed")
	}
	large := sized(17 << 10)
	for _, over := range []string{"tcp", "wss"} {
		c := g.come(visit{over: over})
		c.do("CONNECT", "accept-version", "1.2", "passcode", large)
		c.refused("limits.passcode is 16384")
	}
	c := g.come(visit{over: "ws", header: http.Header{"Authorization": {"Bearer " + large}}})
	c.do("CONNECT", "accept-version", "1.2")
	c.refused(auth.RefusedText)
}
