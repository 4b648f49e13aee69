package authz_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/authz"
)

const explained = `# The rules that are explained.
p, role:sales, events, orders.>, *, allow
p, *, events, news.*, read, allow
p, alice, queues, jobs, write, allow
p, role:sales, events, orders.secret.>, read, deny
p, *, events, user.{sub}.>, *, allow

p, bob, events, >, *, allow
p, alice, events, orders.eu, read, allow
g, alice, role:sales
`

func TestExplain(t *testing.T) {
	a := newAuthorizer(t, explained)
	for _, tt := range []struct {
		identity          string
		action            authz.Action
		resource, channel string
		want              string // The decision, its reason, and a reason for each other rule, unless it is one line.
	}{
		{"alice", authz.Read, "events", "orders.eu", `true: line 2 allows
3: is about other channels: news.*
4: is about queues
5: is about other channels: orders.secret.>
6: is about other channels: user.{sub}.>
8: is for bob
9: matches, but line 2 decides`},
		{"alice", authz.Read, "events", "orders.>", `false: line 5 denies
2: matches, but line 5 decides
3: is about other channels: news.*
4: is about queues
6: is about other channels: user.{sub}.>
8: is for bob
9: covers only a part of orders.>`},
		{"alice", authz.Write, "events", "news.eu", `false: no rule allows
2: is about other channels: orders.>
3: is about read
4: is about queues
5: is about read
6: is about other channels: user.{sub}.>
8: is for bob
9: is about read`},
		{"alice", authz.Read, "events", ">", `false: line 5 denies
2: covers only a part of >
3: covers only a part of >
4: is about queues
6: covers only a part of >
8: is for bob
9: covers only a part of >`},
		{"x.y", authz.Read, "events", "user.*.a", `false: no rule allows
2: is for role:sales
3: is about other channels: news.*
4: is for alice
5: is for role:sales
6: needs an identity that is a single token for {sub}
8: is for bob
9: is for alice`},
		{"alice", authz.Read, "events", "a..b", "false: there is no such channel"},
		{"alice", authz.Read, "topic", "a", "false: there is no such resource or action"},
	} {
		x := newSession(t, a, tt.identity).Explain(tt.action, tt.resource, tt.channel)
		got := fmt.Sprintf("%t: %s", x.Allowed, x.Reason)
		for _, o := range x.Others {
			if strings.Contains(tt.want, "\n") {
				got += fmt.Sprintf("\n%d: %s", o.Line, o.Reason)
			}
		}
		if got != tt.want {
			t.Errorf("%v %s %s by %s: got\n%s\nwant\n%s", tt.action, tt.resource, tt.channel, tt.identity, got, tt.want)
		}
		if want := newSession(t, a, tt.identity).Allowed(tt.action, tt.resource, tt.channel); x.Allowed != want {
			t.Errorf("%s: explained %t, decided %t", tt.channel, x.Allowed, want)
		}
	}
	x := newSession(t, a, "alice", "staff").Explain(authz.Read, "events", "orders.eu")
	if got := strings.Join(x.Subjects, " "); got != "alice role:staff role:sales" || x.Rule.Line != 2 || x.Rule.String() != "p, role:sales, events, orders.>, *, allow" || x.Epoch != 1 {
		t.Errorf("got %+v, want three subjects and the rule of line 2", x)
	}
}

// TestTurnedRoles asks g the wrong way round: who has the identity as a role. Nobody has, but the identity itself.
func TestTurnedRoles(t *testing.T) {
	a, err := authz.New(authz.Config{Model: strings.Replace(authz.DefaultModel, "g(r.sub, p.sub)", "g(p.sub, r.sub)", 1)})
	if err != nil {
		t.Fatal(err)
	}
	load(t, a, "p, bob, events, a, read, allow\np, alice, events, b, read, allow\np, role:x, events, c, read, allow\ng, alice, role:x")
	s := newSession(t, a, "alice")
	for channel, want := range map[string]bool{"a": false, "b": true, "c": false} {
		if got := s.Allowed(authz.Read, "events", channel); got != want {
			t.Errorf("%s: got %t, want %t", channel, got, want)
		}
	}
}

// TestExplainNothing explains where there is nothing to go by.
func TestExplainNothing(t *testing.T) {
	a, err := authz.New(authz.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, a, "x.y")
	if x := s.Explain(authz.Read, "events", "a"); x.Allowed || x.Reason != "no policy is loaded" {
		t.Errorf("got %+v, want that there is no policy", x)
	}
	load(t, a, "p, *, *, >, *, allow\np, *, events, a.{sub}, *, deny")
	if x := s.Explain(authz.Read, "queues", "a"); x.Allowed || !strings.HasPrefix(x.Reason, "the identity is no single token") {
		t.Errorf("got %+v, want that the identity is in the way", x)
	}
}

// TestExplainModel explains under a model of somebody else's, where only Casbin knows what matches.
func TestExplainModel(t *testing.T) {
	a, err := authz.New(authz.Config{Model: models["root"](authz.DefaultModel)})
	if err != nil {
		t.Fatal(err)
	}
	load(t, a, "p, *, queues, a, read, allow\np, bob, events, a, read, allow\np, *, *, a, *, allow")
	x := newSession(t, a, "al").Explain(authz.Read, "events", "a")
	if !x.Allowed || x.Rule.Line != 1 || x.Others[0].Reason != "is refused by the matcher of the model" || x.Others[0].Matched || !x.Others[1].Matched {
		t.Errorf("got %+v, want line 1, which the model opens for al, and line 3", x)
	}
}
