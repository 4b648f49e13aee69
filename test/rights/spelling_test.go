package rights_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/rig"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector"
)

// secretPolicy allows everything to everybody, and to mallory nothing below secret: what slips past the parser is allowed.
const secretPolicy = "p, *, *, >, *, allow\np, mallory, *, secret.>, *, deny\n"

// spellings are ways to write the channel secret.a behind a prefix such as topic, and what could be taken for it.
func spellings(prefix string, aliases ...string) []string {
	var all []string
	for _, p := range append(aliases, prefix) {
		all = append(all, "/"+p+"/secret/a", p+"/secret/a", "/"+p+"/secret.a", "/"+p+"/secret/a/", "/"+p+".secret.a")
	}
	p := "/" + prefix + "/"
	return append(all, "/"+p+"secret/a", p+"/secret/a", p+"secret//a", p+"secret..a", p+"./secret/a", p+"x/../secret/a", p+".secret.a", p+"secret.a.",
		p+"SECRET/a", p+"Secret/a", strings.ToUpper(p)+"secret/a", strings.ToUpper(p[:2])+p[2:]+"secret/a",
		p+"%73ecret/a", p+"secret%2fa", p+"secret%2ea", p+"%2573ecret/a", p+"secret\\a", p+"secret;a",
		p+"s\u0435cret/a", p+"secret\u200b/a", p+"\uff53ecret/a", p+"secret\u2024a", p+"secret\uff0fa", p+"\xf3ecret/a", p+"\xc1\xb3ecret/a",
		p+"secret/a\u0000", p+"secret/a\n", p+"secret/a ", " "+p+"secret/a", p+"secret\t/a", p+"secret/a\r\nPUB secret.a 0",
		p+"secret/*", p+"*/a", p+"*/*", p+">", p+"secret/>", p+"#", p+"secret/#", p+"**", p+"secret/**", p+"*", p+"s*/a",
		"/secret/a", "secret/a", "secret.a", "/secret.a", p+"secret/a?x=1", p+"open,"+p+"secret/a")
}

// spelled are the patterns by their primary prefix.
var spelled = []struct {
	prefix  string
	aliases []string
	subject string
}{
	{"topic", []string{"events"}, "secret.a"},
	{"topic-store", []string{"store", "events-store"}, "stomp.store.secret.a"},
	{"queue", []string{"queues"}, "stomp.queue.secret.a"},
	{"command", []string{"commands"}, "stomp.command.secret.a"},
	{"query", []string{"queries"}, "stomp.query.secret.a"},
}

// TestC2C3C4SpellingsOfSend sends to a denied channel in every spelling: it is refused, or it is another channel.
func TestC2C3C4SpellingsOfSend(t *testing.T) {
	t.Parallel()
	s := start(t, secretPolicy, nil)
	nc := s.native()
	for _, pattern := range spelled {
		t.Run(pattern.prefix, func(t *testing.T) {
			sub := s.listen(nc, pattern.subject)
			accepted := 0
			for i, to := range spellings(pattern.prefix, pattern.aliases...) {
				c := s.over(transports[i%len(transports)], "mallory")
				c.Ask("SUBSCRIBE", "id", "r", "destination", "/reply/r")
				c.Do("SEND", "destination", to, "reply-to", "/reply/r", "receipt", "asked", "body", to)
				if refusal, _ := outcome(t, c); refusal == "" {
					accepted++
				}
				_ = c.Close()
				if err := nc.Flush(); err != nil {
					t.Fatal(err)
				}
				if m, err := sub.NextMsg(1); !errors.Is(err, nats.ErrTimeout) {
					t.Fatalf("a SEND to %q reached %s: %v, %v", to, pattern.subject, m, err)
				}
			}
			if accepted == 0 {
				t.Error("every spelling was refused, also of other channels: the test says nothing")
			}
		})
	}
}

// TestC2C3C4SpellingsOfSubscribe does the same with SUBSCRIBE.
func TestC2C3C4SpellingsOfSubscribe(t *testing.T) {
	t.Parallel()
	s := start(t, secretPolicy, nil)
	root := s.as("root")
	for _, pattern := range spelled[:3] {
		t.Run(pattern.prefix, func(t *testing.T) {
			accepted := 0
			for i, from := range spellings(pattern.prefix, pattern.aliases...) {
				c := s.over(transports[i%len(transports)], "mallory")
				c.Do("SUBSCRIBE", "id", "s", "destination", from, "receipt", "asked")
				refusal, messages := outcome(t, c)
				if len(messages) > 0 {
					t.Fatalf("SUBSCRIBE to %q was answered by %s before its receipt", from, messages[0])
				}
				if refusal != "" {
					_ = c.Close()
					continue
				}
				accepted++
				c.Ask("SUBSCRIBE", "id", "end", "destination", "/topic/end")
				root.Ask("SEND", "destination", "/"+pattern.prefix+"/secret/a", "body", "secret")
				root.Ask("SEND", "destination", "/topic/end", "body", "end")
				if f := c.Next("MESSAGE"); string(f.Body) != "end" {
					t.Fatalf("SUBSCRIBE to %q gave %s %q", from, f, f.Body)
				}
				_ = c.Close()
			}
			if accepted == 0 {
				t.Error("every spelling was refused, also of other channels: the test says nothing")
			}
		})
	}
}

// TestDefaultPatternIsAsked sends to and reads from a destination without a prefix that the default pattern takes.
func TestDefaultPatternIsAsked(t *testing.T) {
	t.Parallel()
	for pattern, resource := range map[string]string{"queues": "queues", "store": "events_store", "events": "events"} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			s := start(t, "p, *, *, >, *, allow\np, mallory, "+resource+", secret.>, *, deny\n",
				func(cfg *connector.Config) { cfg.Destinations.DefaultPattern = pattern })
			for _, to := range []string{"/secret/a", "secret/a", "secret.a"} {
				c := s.as("mallory")
				c.Do("SEND", "destination", to)
				c.Denied("write", to)
				c = s.as("mallory")
				c.Do("SUBSCRIBE", "id", "1", "destination", to)
				c.Denied("read", to)
			}
		})
	}
}

// TestC5LoginsThatAreSomebodyElse connects with names that could be taken for a role, for anybody or for nobody.
func TestC5LoginsThatAreSomebodyElse(t *testing.T) {
	t.Parallel()
	s := start(t, "p, role:admin, *, >, *, allow\np, anna, *, >, *, allow\np, *, events, open, *, allow\ng, chief, role:admin\n", nil)
	for _, login := range []string{"role:admin", "role:", "*", "anna\x01", "\xff", strings.Repeat("a", 257)} {
		for _, header := range []string{"login", "client-id"} {
			for _, transport := range transports {
				c := s.dial(transport)
				c.Do("CONNECT", "accept-version", "1.2", header, login)
				if f := c.Next("ERROR"); f.Get("message") != "authentication failed" {
					t.Errorf("%s %q: got %s", header, login, f)
				}
			}
		}
	}
	for _, login := range []string{"", "Anna", "anna ", " anna", "admin", "ROLE:admin", "anna$$events", "an*na", ">", "{sub}", "anna,role:admin"} {
		c := s.as(login)
		c.Ask("SEND", "destination", "/topic/open")
		c.Do("SEND", "destination", "/topic/other")
		c.Denied("write", "/topic/other")
	}
	s.as("chief").Ask("SEND", "destination", "/topic/other")
}

// TestC6Placeholder has identities stand for {sub} that are more than one token.
func TestC6Placeholder(t *testing.T) {
	t.Parallel()
	s := start(t, "p, *, queues, inbox.{sub}, *, allow\np, *, events, user.{sub}.>, *, allow\n", nil)
	anna := s.as("anna")
	anna.Ask("SUBSCRIBE", "id", "1", "destination", "/queue/inbox/anna")
	anna.Ask("SUBSCRIBE", "id", "2", "destination", "/topic/user/anna/>")
	for login, destination := range map[string]string{
		"*": "/queue/inbox/anna", "anna.x": "/queue/inbox/anna/x", "an na": "/queue/inbox/an na", "anna/x": "/queue/inbox/anna/x",
		">": "/topic/user/anna/x", "bob": "/queue/inbox/anna", "Anna": "/queue/inbox/anna", "": "/queue/inbox/anna", "{sub}": "/queue/inbox/anna",
	} {
		for _, command := range []string{"SEND", "SUBSCRIBE"} {
			c := s.dial("tcp")
			c.Do("CONNECT", "accept-version", "1.2", "login", login)
			c.Do(command, "id", "1", "destination", destination, "receipt", "asked")
			if f, err := c.Read(rig.Patience); err != nil || f.Command == "CONNECTED" {
				if f, err = c.Read(rig.Patience); err != nil || f.Command != "ERROR" {
					t.Errorf("%q: %s %s: got %s, %v, want an ERROR", login, command, destination, f, err)
				}
			}
		}
	}
	s.load("p, *, *, >, *, allow\np, *, queues, private.{sub}, *, deny\n")
	c := s.dial("tcp")
	c.Do("CONNECT", "accept-version", "1.2", "login", "anna.x")
	c.Refused("authentication failed")
	for _, destination := range []string{"/queue/private/bob", "/queue/private.bob", "/queues/private/bob"} {
		c := s.as("bob")
		c.Do("SEND", "destination", destination)
		c.Denied("write", destination)
	}
}
