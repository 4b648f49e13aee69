package authz_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/authz"
)

// TestPolicyFaults loads policies with one fault each over a good one. It stays in force.
func TestPolicyFaults(t *testing.T) {
	const good = "p, alice, events, a, read, allow\n"
	long := strings.Repeat("x", 257)
	a := newAuthorizer(t, good)
	s := newSession(t, a, "alice")
	for _, tt := range []struct{ name, policy, want string }{
		{"empty", "", "policy.csv: has no rule, which would deny everything to everybody"},
		{"only comments", "# nothing\n\n  # here\n", "policy.csv: has no rule, which would deny everything to everybody"},
		{"only roles", "g, alice, role:a\n", "policy.csv: has no rule, which would deny everything to everybody"},
		{"too large", good + strings.Repeat("#", 64<<20), "policy.csv: has 67108897 octets, the limit is 67108864"},
		{"short line", good + "p, bob, events, a, read", "policy.csv:2: a rule has 6 fields (p, subject, resource, channel, action, effect), this one has 5"},
		{"shortest line", good + "p", "policy.csv:2: a rule has 6 fields (p, subject, resource, channel, action, effect), this one has 1"},
		{"long line", good + "p, bob, events, a, read, allow, x", "policy.csv:2: a rule has 6 fields (p, subject, resource, channel, action, effect), this one has 7"},
		{"semicolons", good + "p; bob; events; a; read; allow", `policy.csv:2: begins with "p; bob; events; a; read; allow": a line is a rule (p) or gives a role (g)`},
		{"unknown kind", good + "p2, bob, events, a, read, allow", `policy.csv:2: begins with "p2": a line is a rule (p) or gives a role (g)`},
		{"kind in capitals", good + "P, bob, events, a, read, allow", `policy.csv:2: begins with "P": a line is a rule (p) or gives a role (g)`},
		{"bad CSV", good + `p, "bob, events, a, read, allow`, `policy.csv:2: is no CSV: extraneous or missing " in quoted-field in column 32`},
		{"quote inside", good + `p, b"ob, events, a, read, allow`, `policy.csv:2: is no CSV: bare " in non-quoted-field in column 5`},
		{"no UTF-8", good + "p, b\xff, events, a, read, allow", "policy.csv:2: is not valid UTF-8"},
		{"control character", good + "p, b\x00b, events, a, read, allow", `policy.csv:2: subject "b\x00b" has a control character`},
		{"no subject", good + "p, , events, a, read, allow", `policy.csv:2: subject "" is empty`},
		{"long subject", good + "p, " + long + ", events, a, read, allow", `policy.csv:2: subject "` + long[:64] + `"... has 257 octets, the limit is 256`},
		{"role without name", good + "p, role:, events, a, read, allow", `policy.csv:2: subject "role:" names no role`},
		{"role in capitals", good + "p, Role:x, events, a, read, allow", `policy.csv:2: subject "Role:x" is no role: write role:x`},
		{"wildcard in a subject", good + "p, role:*, events, a, read, allow", `policy.csv:2: subject "role:*" has a wildcard: only * alone stands for anybody`},
		{"placeholder as subject", good + "p, {sub}, events, a, read, allow", `policy.csv:2: subject "{sub}" is a placeholder: {sub} is for channels, * is anybody`},
		{"unknown resource", good + "p, bob, topic, a, read, allow", `policy.csv:2: resource "topic" is not one of events, events_store, queues, commands, queries, * (did you mean events?)`},
		{"no resource", good + "p, bob, , a, read, allow", `policy.csv:2: resource "" is not one of events, events_store, queues, commands, queries, *`},
		{"reply", good + "p, bob, reply, a, read, allow", `policy.csv:2: resource "reply" is not one of events, events_store, queues, commands, queries, * (there are no rights on reply addresses)`},
		{"unknown action", good + "p, bob, events, a, publish, allow", `policy.csv:2: action "publish" is not one of read, write, * (did you mean write?)`},
		{"unknown effect", good + "p, bob, events, a, read, alow", `policy.csv:2: effect "alow" is not one of allow, deny`},
		{"effect in capitals", good + "p, bob, events, a, read, Deny", `policy.csv:2: effect "Deny" is not one of allow, deny`},
		{"no channel", good + "p, bob, events, , read, deny", `policy.csv:2: the channel is empty: > is any`},
		{"empty token", good + "p, bob, events, a..b, read, deny", `policy.csv:2: channel "a..b" has an empty token (two dots together, or one at an edge)`},
		{"token of wildcards", good + "p, bob, events, a.b*, read, deny", `policy.csv:2: channel "a.b*" has a wildcard inside a token: * and > are whole tokens`},
		{"rest in the middle", good + "p, bob, events, a.>.b, read, deny", `policy.csv:2: channel "a.>.b" has > elsewhere than at its end`},
		{"other wildcards", good + "p, bob, events, a.#, read, deny", `policy.csv:2: channel "a.#" has #: the wildcard for the rest is >`},
		{"destination", good + "p, bob, events, /topic/a, read, deny", `policy.csv:2: channel "/topic/a" has a slash: write the channel without prefix and with dots, orders.eu for /topic/orders/eu`},
		{"space", good + "p, bob, events, a b, read, deny", `policy.csv:2: channel "a b" has a space`},
		{"quoted control character", good + "p, bob, events, \"a\tb\", read, deny", `policy.csv:2: channel "a\tb" has the control character U+0009`},
		{"comma", good + `p, bob, events, "a,b", read, deny`, `policy.csv:2: channel "a,b" has ',', which no destination has`},
		{"unknown placeholder", good + "p, bob, events, a.{user}, read, deny", `policy.csv:2: channel "a.{user}" has {user}: the only placeholder is {sub}`},
		{"placeholder in a token", good + "p, bob, events, a.u-{sub}, read, deny", `policy.csv:2: channel "a.u-{sub}" has {sub} inside a token: it is always a whole one`},
		{"many tokens", good + "p, bob, events, " + strings.Repeat("a.", 32) + "a, read, deny", `policy.csv:2: channel "` + strings.Repeat("a.", 32) + `"... has more than 32 tokens`},
		{"long channel", good + "p, bob, events, " + strings.Repeat("a", 513) + ", read, deny", `policy.csv:2: channel "` + strings.Repeat("a", 64) + `"... has 513 octets, the limit is 512`},
		{"short role line", good + "g, bob", "policy.csv:2: a role is given by 3 fields (g, member, role), here are 2"},
		{"bad role", good + "g, bob, admin", `policy.csv:2: role "admin" does not begin with role:`},
		{"nameless role", good + "g, bob, role:", `policy.csv:2: role "role:" names no role`},
		{"role of everybody", good + "g, *, role:a", "policy.csv:2: gives a role to everybody: write rules for the subject * instead"},
		{"role of itself", good + "g, role:a, role:a", "policy.csv:2: makes a circle of roles: role:a > role:a"},
		{"circle", good + "g, role:a, role:b\ng, x, role:a\ng, role:b, role:c\ng, role:c, role:a", "policy.csv:5: makes a circle of roles: role:a > role:b > role:c > role:a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := a.Status()
			err := a.Load("policy.csv", []byte(tt.policy))
			var refused *authz.PolicyError
			if !errors.As(err, &refused) || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			st := a.Status()
			if st.Epoch != before.Epoch || st.Rules != 1 || !errors.Is(st.Err, err) || st.Failed.IsZero() || st.Refused != before.Refused+1 {
				t.Errorf("got status %+v, want that of the policy before and the fault", st)
			}
			if !s.Allowed(authz.Read, "events", "a") || s.Allowed(authz.Write, "events", "a") {
				t.Error("the policy before is not in force any more")
			}
		})
	}
	load(t, a, good)
	if st := a.Status(); st.Epoch != 2 || st.Err != nil || !st.Failed.IsZero() {
		t.Errorf("got status %+v after a good policy, want ready", st)
	}
}

// TestAllFaults wants all that is wrong with a policy at once.
func TestAllFaults(t *testing.T) {
	a := newAuthorizer(t, "p, *, *, >, *, allow")
	err := a.Load("p.csv", []byte("# head\np, a, topics, a*, send, no\n\nx\np, a, events, a, read, allow\ng, role:b, role:b\ng, c\n"))
	want := []int{2, 2, 2, 2, 4, 6, 7}
	var refused *authz.PolicyError
	if !errors.As(err, &refused) || refused.Origin != "p.csv" {
		t.Fatalf("got %v, want a *PolicyError of p.csv", err)
	}
	var got []int
	for _, f := range refused.Faults {
		got = append(got, f.Line)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got faults in lines %v, want %v: %v", got, want, err)
	}

	err = a.Load("p.csv", []byte(strings.Repeat("x\n", 100_000)))
	if !errors.As(err, &refused) || len(refused.Faults) != 101 || refused.Faults[100].Text != "and 99900 more" {
		t.Errorf("got %d faults, want a hundred and their number", len(refused.Faults))
	}
}

// TestPolicySpelling writes one policy in the ways that CSV knows.
func TestPolicySpelling(t *testing.T) {
	for name, policy := range map[string]string{
		"plain":          "p,alice,events,a,read,allow",
		"blanks":         "  p ,\talice ,  events  , a , read , allow  ",
		"line ends":      "\r\np, alice, events, a, read, allow\r\n\r\n",
		"byte order":     "\ufeffp, alice, events, a, read, allow\n",
		"quotes":         `"p", "alice", "events", "a", "read", "allow"`,
		"comments":       "# p, bob, events, >, read, allow\n   # x\np, alice, events, a, read, allow",
		"twice":          "p, alice, events, a, read, allow\np, alice, events, a, read, allow",
		"no end of line": "g, bob, role:x\np, alice, events, a, read, allow",
	} {
		a := newAuthorizer(t, policy)
		if !newSession(t, a, "alice").Allowed(authz.Read, "events", "a") || newSession(t, a, "bob").Allowed(authz.Read, "events", "a") {
			t.Errorf("%s: got another policy than meant", name)
		}
	}
	quoted := newAuthorizer(t, `p, "doe, john ""j""", events, a, read, allow`)
	if !newSession(t, quoted, `doe, john "j"`).Allowed(authz.Read, "events", "a") {
		t.Error("quoted identity: got denied, want allowed")
	}
}

// TestModelFaults hands in models under which the promises would not hold.
func TestModelFaults(t *testing.T) {
	edit := func(old, with string) string { return strings.Replace(authz.DefaultModel, old, with, 1) }
	for _, tt := range []struct{ name, model, want string }{
		{"no model", "# nothing", "missing required sections"},
		{"not a model", "p, alice, events, a, read, allow", "parse the content error"},
		{"other request", edit("r = sub, res, chan, act", "r = sub, obj, act"), "request_definition: must be"},
		{"other rule", edit("act, eft", "act"), "policy_definition: must be"},
		{"roles with domains", edit("g = _, _", "g = _, _, _"), "role_definition: must be"},
		{"two kinds of roles", edit("g = _, _", "g = _, _\ng2 = _, _"), "g g2: only one definition each"},
		{"bad effect", edit("e = some", "e = any"), "policy_effect: is none"},
		{"no channels", edit(" && chanMatch(r.chan, p.chan, r.sub)", ""), "chanMatch(r.chan, p.chan, r.sub) must be"},
		{"other channels", edit("chanMatch(r.chan, p.chan, r.sub)", "keyMatch(r.chan, p.chan)"), "matchers: keyMatch is not offered"},
		{"arguments swapped", edit("chanMatch(r.chan, p.chan, r.sub)", "chanMatch(p.chan, r.chan, r.sub)"), "chanMatch(r.chan, p.chan, r.sub) must be"},
		{"a way round", edit("m = ", `m = r.sub == "root" || `), "chanMatch(r.chan, p.chan, r.sub) must be"},
		{"a way round in parentheses", edit("chanMatch(r.chan, p.chan, r.sub)", `(chanMatch(r.chan, p.chan, r.sub) || r.sub == "root")`), "chanMatch(r.chan, p.chan, r.sub) must be"},
		{"a choice", edit("chanMatch(r.chan, p.chan, r.sub)", `chanMatch(r.chan, p.chan, r.sub) ? true : true`), "chanMatch(r.chan, p.chan, r.sub) must be"},
		{"the contrary", edit("chanMatch", "!chanMatch"), "chanMatch(r.chan, p.chan, r.sub) must be"},
		{"in a text", edit("chanMatch(r.chan, p.chan, r.sub)", `r.sub != " && chanMatch(r.chan, p.chan, r.sub) && "`), "chanMatch(r.chan, p.chan, r.sub) must be"},
		{"regular expression", edit("p.res == r.res", "p.res =~ r.res"), "regular expressions are not offered"},
		{"regexMatch", edit("p.res == r.res", "regexMatch(r.res, p.res)"), "matchers: regexMatch is not offered"},
		{"eval", edit("p.res == r.res", "eval(p.res)"), "matchers: eval is not offered"},
		{"g without roles", edit("[role_definition]\ng = _, _\n", ""), "matchers: g is not offered"},
		{"g with one name", edit("g(r.sub, p.sub)", "g(r.sub)"), "g takes 2 values"},
		{"unknown name", edit("p.res == r.res", "p.resource == r.res"), "p_resource"},
		{"not a condition", edit("p.res == r.res", "p.res + r.res"), ""},
		{"broken matcher", edit("(p.res == ", "((p.res == "), ""},
		{"rank without roles", strings.NewReplacer("[role_definition]\ng = _, _\n", "", `p.sub == "*" || g(r.sub, p.sub)`, `p.sub == r.sub`,
			"some(where (p.eft == allow)) && !some(where (p.eft == deny))", "subjectPriority(p.eft) || deny").Replace(authz.DefaultModel), "subjectPriority needs a role_definition"},
	} {
		a, err := authz.New(authz.Config{Model: tt.model})
		if a != nil || err == nil || !strings.HasPrefix(err.Error(), "reading the model: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v, want no authorizer and %q", tt.name, a, err, tt.want)
		}
	}
}
