package identity_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/tokens"
)

// TestAuditLog: what happens is in the audit log once, with who and from where.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	policy := rig.Put(t, "policy.csv", "p, *, events, a.>, *, allow\np, *, queues, >, *, allow\n")
	g := start(t, func(c *connector.Config) {
		precise(t, c)
		c.Authz.Policy = policy
		c.Limits.Body, c.Limits.PendingBytes, c.Limits.Heartbeat = 256<<10, 256<<10, 200*time.Millisecond
	})
	come := func(sub string, end time.Time, nameValue ...string) *rig.Client {
		c := g.come(rig.Visit{})
		c.Login(append(nameValue, "passcode", token(t, tokens.Values{"sub": sub, "exp": end.Unix()}))...)
		return c
	}
	far := time.Now().Add(time.Hour)
	want := map[string]*rig.Client{} // by message; "": not of a client
	begun := len(g.audit("policy.reloaded"))

	refused := g.come(rig.Visit{})
	refused.Do("CONNECT", "accept-version", "1.2", "passcode", "x")
	refused.Refused(auth.RefusedText)
	want["client.auth_failed"] = refused

	denied := come("denied/one", far)
	denied.Do("SEND", "destination", "/topic/b")
	denied.Refused("access denied: no right to write /topic/b")
	want["client.denied"] = denied

	silent := come("silent", far, "heart-beat", "1,0")
	want["client.timeout"] = silent

	expired := come("expired", soon(3*time.Second))
	expired.Next("ERROR")
	want["session.expired"] = expired

	kicked := come("kicked", far)
	for _, c := range g.Connections() {
		if c.Session == "kicked" && !g.Disconnect(c.ID) {
			t.Error("there was nobody to disconnect")
		}
	}
	kicked.Refused("disconnected by an operator")
	want["client.kicked"] = kicked

	slow, sends := come("slow", far), come("sends", far)
	slow.Subscribe("1", "/topic/a/b")
	for range 200 {
		sends.Publish("/topic/a/b", strings.Repeat("x", 200<<10))
	}
	sends.Publish("/topic/a/b", "", "receipt", "all")
	sends.Receipt("all")
	rig.Holds(t, "slow", func() bool { return len(g.audit("client.slow")) > 0 })
	want["client.slow"] = slow

	rig.Replace(t, policy, "p, *, events, a.>, *, allow\np, *, queues, >, *, allow\np, x, queues, >, *, allow\n")
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := g.audit("policy.reloaded"); len(got) != begun+1 || got[begun]["rules"] != 3.0 {
		t.Errorf("got the lines %v", got)
	}
	rig.Replace(t, policy, "p, broken\n")
	if err := g.Reload(); err == nil {
		t.Error("a broken policy is taken")
	}
	if got := g.audit("policy.refused"); len(got) != 1 {
		t.Errorf("got the lines %v", got)
	}
	rig.Holds(t, "timeout", func() bool { return len(g.audit("client.timeout")) > 0 })

	sessions := map[string]string{
		"client.denied": "denied_one", "client.timeout": "silent", "session.expired": "expired", "client.kicked": "kicked", "client.slow": "slow",
	}
	for message, c := range want {
		all := g.audit(message)
		if len(all) != 1 {
			t.Errorf("%s: got %d lines: %v", message, len(all), all)
			continue
		}
		if got, remote := all[0]["remote"], c.NetConn().LocalAddr().String(); got != remote {
			t.Errorf("%s: got the remote %v, want %s", message, got, remote)
		}
		if got, _ := all[0]["session"].(string); got != sessions[message] {
			t.Errorf("%s: got the session %q, want %q", message, got, sessions[message])
		}
	}
	for _, c := range []*rig.Client{denied, silent, expired, kicked, slow, sends} {
		all := of(g.audit("client.connected"), c.NetConn().LocalAddr().String())
		if len(all) != 1 || all[0]["identity"] == "" || all[0]["transport"] != "tcp" {
			t.Errorf("got the lines %v of one login", all)
		}
	}
	if got := g.audit("client.connected")[0]["identity"]; got != "denied/one" {
		t.Errorf("got the identity %v", got)
	}
}

// lineEnds are what could begin a line of a log, or do something to a terminal.
const lineEnds = "\r\x1b[31m\x07\x7f\u0085\u2028\u2029\ufeff"

// TestLogInjection puts control characters wherever a client's text goes: each record stays one line, and no terminal acts
// on any.
func TestLogInjection(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"none", "jwt"} {
		t.Run(mode, func(t *testing.T) {
			var text rig.Log
			g := start(t, func(c *connector.Config) {
				if mode == "jwt" {
					withTokens(t, c)
				}
				options := &slog.HandlerOptions{Level: slog.LevelDebug}
				c.Logger = slog.New(slog.NewMultiHandler(c.Logger.Handler(), slog.NewTextHandler(&text, options)))
			})
			passcode := token(t, nil)
			for _, raw := range []string{
				"CONNECT\naccept-version:1.2\nlogin:eve" + lineEnds + "x\nclient-id:eve" + lineEnds + "x\nhost:" + lineEnds + "x\npasscode:" + passcode + "\n\n\x00",
				"CONNECT\naccept-version:9" + lineEnds + "\n\n\x00",
				"CON" + lineEnds + "\n\n\x00",
				"CONNECT\naccept-version:1.2\nlogin" + lineEnds + "\n\n\x00",
				"GET /" + lineEnds + " HTTP/1.1\r\n\r\n",
			} {
				c := g.come(rig.Visit{})
				if err := c.Write([]byte(raw)); err != nil {
					t.Fatal(err)
				}
				if f, err := c.Read(rig.Patience); err == nil && f.Command == "CONNECTED" {
					_ = c.Close()
				}
			}
			escaped := "\n" + lineEnds
			for _, f := range []stompclient.Frame{
				stompclient.New("SEND", "destination", "/topic/"+escaped),
				stompclient.New("SEND", "destination", escaped),
				stompclient.New("SUBSCRIBE", "id", escaped, "destination", "/topic/a", "ack", escaped),
				stompclient.New("SUBSCRIBE", "id", "1", "destination", "/queue/"+escaped),
				stompclient.New("UNSUBSCRIBE", "id", escaped),
				stompclient.New("ACK", "id", escaped),
				stompclient.New("COMMIT", "transaction", escaped),
				stompclient.New("SEND", "destination", "/queue/a", "x-delay", escaped),
				stompclient.New(escaped[1:], "destination", "/queue/a"),
			} {
				c := g.login("passcode", passcode)
				c.DoFrame(f)
				answer := c.Next("ERROR")
				if got := answer.Get("message"); clean(got) != got {
					t.Errorf("%s: the ERROR says %q", f, got)
				}
			}
			if mode == "jwt" {
				for _, sub := range []string{"a\nb", "a\x1b[31mb"} {
					c := g.come(rig.Visit{})
					c.Do("CONNECT", "accept-version", "1.2", "passcode", token(t, tokens.Values{"sub": sub}))
					c.Refused(auth.RefusedText)
				}
			}
			header := http.Header{"Origin": {"http://evil\x1b[31m"}}
			if c, err := g.open(rig.Visit{Over: "ws", Header: header}); err == nil {
				_ = c.Close()
			}
			rig.Holds(t, "end of all sessions", func() bool { return strings.Count(g.Log.String(), "client.error") >= 12 })
			g.lines("") // Each line is one record, or this fails.
			for _, log := range []string{g.Log.String(), text.String()} {
				for line := range strings.Lines(log) {
					if line = strings.TrimSuffix(line, "\n"); clean(line) != line {
						t.Errorf("control characters in the log: %q", line)
					}
					if !strings.HasPrefix(line, "time=") && !strings.HasPrefix(line, `{"time":`) {
						t.Errorf("a line of the log that is no record: %q", line)
					}
				}
			}
		})
	}
}

// clean leaves out what lineEnds has.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
}

// outputs are what a server shows to whoever asks.
func (g *server) outputs() map[string]string {
	g.t.Helper()
	all := map[string]string{"log": g.Log.String()}
	for _, path := range []string{"/metrics", "/livez", "/readyz", "/startupz", "/api/stomp/connections", "/api/v1/connections", "/stomp", "/", "/debug/vars"} {
		all[path] = rig.Fetch(g.t, "http://"+g.At("admin")+path)
	}
	return all
}
