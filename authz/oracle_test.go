package authz_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"

	"github.com/natstomp/natstomp/authz"
)

// scene is a policy and who asks, small enough to look at every channel there is.
type scene struct {
	rules    []authz.Rule
	links    [][2]string
	identity string
	claims   []string
}

// tokens are all that rules and channels are made of, and one ("z") that no rule names.
var tokens = []string{"a", "b", "al", "z"}

// longest bounds rules and patterns; channels may be longer by one.
const longest = 3

func randomScene(r *rand.Rand) scene {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	s := scene{identity: pick("al", "al", "b", "x.y", "x*", "")}
	roles := []string{"role:1", "role:2", "role:3"}
	for range 1 + r.IntN(12) {
		s.rules = append(s.rules, authz.Rule{
			Subject:  pick("*", s.identity, s.identity, "al", "b", "x.y", roles[0], roles[1], roles[2]),
			Resource: pick("events", "events", "events", "*", "queues"), Channel: randomPattern(r, true),
			Action: pick("read", "read", "read", "*", "write"), Effect: pick("allow", "allow", "allow", "deny"),
		})
	}
	for range r.IntN(3) {
		from := r.IntN(3)
		s.links = append(s.links, [2]string{pick("al", "b", "x.y", roles[from]), roles[min(from+1+r.IntN(2), 2)]})
	}
	s.links = slices.DeleteFunc(s.links, func(l [2]string) bool { return l[0] == l[1] })
	for range r.IntN(2) {
		s.claims = append(s.claims, pick("1", "2", "3"))
	}
	s.rules = slices.DeleteFunc(s.rules, func(r authz.Rule) bool { return r.Subject == "" || r.Subject == "x*" }) // No policy has them.
	return s
}

func randomPattern(r *rand.Rand, rule bool) string {
	list := make([]string, 1+r.IntN(longest))
	for i := range list {
		list[i] = tokens[r.IntN(len(tokens)-1)]
		switch r.IntN(6) {
		case 0:
			list[i] = "*"
		case 1:
			if rule {
				list[i] = "{sub}"
			}
		case 2:
			if i == len(list)-1 {
				list[i] = ">"
			}
		}
	}
	return strings.Join(list, ".")
}

func (s scene) policy() string {
	var b strings.Builder
	for _, r := range s.rules {
		b.WriteString(r.String() + "\n")
	}
	for _, l := range s.links {
		fmt.Fprintf(&b, "g, %s, %s\n", l[0], l[1])
	}
	return b.String()
}

// universe lists every channel without wildcards.
var universe = func() (all []string) {
	level := []string{""}
	for range longest + 1 {
		var next []string
		for _, head := range level {
			for _, t := range tokens {
				next = append(next, head+t+".")
			}
		}
		for _, channel := range next {
			all = append(all, strings.TrimSuffix(channel, "."))
		}
		level = next
	}
	return all
}()

// matches is NATS's rule for subjects, written once more.
func matches(pattern, channel string) bool {
	p, c := strings.Split(pattern, "."), strings.Split(channel, ".")
	if last := len(p) - 1; p[last] == ">" {
		return len(c) > last && matches(strings.Join(append(slices.Clone(p[:last]), "*"), "."), strings.Join(append(slices.Clone(c[:last]), c[last]), "."))
	}
	return slices.EqualFunc(p, c, func(p, c string) bool { return p == "*" || p == c })
}

// extent is the set of the channels that a pattern matches, as places in the universe.
type extent [6]uint64

var extents = make(map[string]extent)

func extentOf(pattern string) extent {
	e, known := extents[pattern]
	if !known {
		for i, channel := range universe {
			if matches(pattern, channel) {
				e[i/64] |= 1 << (i % 64)
			}
		}
		extents[pattern] = e
	}
	return e
}

// within reports whether all of e is in o, meets whether any is.
func (e extent) within(o extent) bool { return e.and(o) == e }

func (e extent) meets(o extent) bool { return e.and(o) != extent{} }

func (e extent) and(o extent) extent {
	for i := range e {
		e[i] &= o[i]
	}
	return e
}

// without returns e without what is in o.
func (e extent) without(o extent) extent {
	for i := range e {
		e[i] &^= o[i]
	}
	return e
}

// subjects are whom the rules take the session for.
func (s scene) subjects() map[string]bool {
	all := map[string]bool{"*": true, s.identity: s.identity != ""}
	for _, c := range s.claims {
		all["role:"+c] = true
	}
	for range s.links { // As often as it could take.
		for _, l := range s.links {
			if all[l[0]] {
				all[l[1]] = true
			}
		}
	}
	return all
}

// concerning returns the rules that are about who asks, resource and action, with the placeholder filled in. Those that
// cannot be are left out; sealed tells that one of them denies.
func (s scene) concerning(resource, action string) (rules []authz.Rule, sealed bool) {
	who := s.subjects()
	for _, r := range s.rules {
		named := slices.Contains(strings.Split(r.Channel, "."), "{sub}")
		broken := s.identity == "" || strings.ContainsAny(s.identity, ".*>")
		if who[r.Subject] && named && broken && r.Effect == "deny" {
			sealed = true
		}
		if !who[r.Subject] || r.Resource != "*" && r.Resource != resource || r.Action != "*" && r.Action != action || named && broken {
			continue
		}
		r.Channel = strings.ReplaceAll(r.Channel, "{sub}", s.identity)
		rules = append(rules, r)
	}
	return rules, sealed
}

// exact is the set of the channels that are allowed by themselves: what decides about a message.
func exact(rules []authz.Rule) (allowed extent) {
	for _, effect := range []string{"allow", "deny"} {
		for _, r := range rules {
			switch e := extentOf(r.Channel); {
			case r.Effect != effect:
			case effect == "allow":
				for i := range e {
					allowed[i] |= e[i]
				}
			default:
				allowed = allowed.without(e)
			}
		}
	}
	return allowed
}

// wide is the decision on a subscription with wildcards, by looking at every channel: one rule allows all that it
// matches, none denies any.
func wide(rules []authz.Rule, pattern string) bool {
	covered := false
	for _, r := range rules {
		if r.Effect == "deny" && extentOf(pattern).meets(extentOf(r.Channel)) {
			return false
		}
		covered = covered || r.Effect == "allow" && extentOf(pattern).within(extentOf(r.Channel))
	}
	return covered
}

// TestOracle is C8. For random policies, sessions, subscriptions and subjects it looks at every message that an allowed
// subscription would get, and asks for each channel by itself.
func TestOracle(t *testing.T) {
	left := 100_000
	if raceEnabled || testing.Short() {
		left = 10_000
	}
	r := rand.New(rand.NewPCG(4, 8))
	a, err := authz.New(authz.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var counts struct{ sealed, wideAllowed, wideDenied, exactAllowed, exactDenied int }
	for left > 0 {
		sc := randomScene(r)
		if len(sc.rules) == 0 {
			continue
		}
		load(t, a, sc.policy())
		rules, sealed := sc.concerning("events", "read")
		s, err := a.Session(sc.identity, sc.claims)
		if (err != nil) != sealed {
			t.Fatalf("%+v: got session error %v, want refused %t", sc, err, sealed)
		}
		if sealed {
			counts.sealed++
			left--
			continue
		}
		for range 4 {
			left--
			pattern := randomPattern(r, false)
			got := s.Allowed(authz.Read, "events", pattern)
			if want := wide(rules, pattern); got != want {
				t.Fatalf("SUBSCRIBE %s by %q with %v: got %t, want %t\n%s", pattern, sc.identity, sc.claims, got, want, sc.policy())
			}
			if got {
				counts.wideAllowed++
				if denied := extentOf(pattern).without(exact(rules)); denied != (extent{}) {
					t.Fatalf("SUBSCRIBE %s by %q with %v: got %v delivered, want none of them\n%s", pattern, sc.identity, sc.claims, denied, sc.policy())
				}
			} else {
				counts.wideDenied++
			}
			place := r.IntN(len(universe))
			channel := universe[place]
			got, want := s.Allowed(authz.Read, "events", channel), exact(rules)[place/64]>>(place%64)&1 == 1
			if got != want {
				t.Fatalf("%s by %q with %v: got %t, want %t\n%s", channel, sc.identity, sc.claims, got, want, sc.policy())
			}
			if got {
				counts.exactAllowed++
			} else {
				counts.exactDenied++
			}
		}
	}
	t.Logf("%+v", counts)
	if min(counts.sealed, counts.wideAllowed, counts.wideDenied, counts.exactAllowed, counts.exactDenied) < 100 {
		t.Errorf("got %+v, want a hundred of each", counts)
	}
}

// models are ones that differ from the default in what they may differ in.
var models = map[string]func(string) string{
	"default":  func(m string) string { return m },
	"first":    strings.NewReplacer("some(where (p.eft == allow)) && !some(where (p.eft == deny))", "priority(p.eft) || deny").Replace,
	"ranked":   strings.NewReplacer("some(where (p.eft == allow)) && !some(where (p.eft == deny))", "subjectPriority(p.eft) || deny").Replace,
	"open":     strings.NewReplacer("some(where (p.eft == allow)) && !some(where (p.eft == deny))", "!some(where (p.eft == deny))").Replace,
	"no roles": strings.NewReplacer("[role_definition]\ng = _, _\n", "", "g(r.sub, p.sub)", "r.sub == p.sub").Replace,
	"master":   strings.NewReplacer(`p.sub == "*" ||`, `p.sub == "*" || r.sub == "b" ||`).Replace,
	"root":     strings.NewReplacer(`(p.res == "*"`, `(r.sub == "al" || p.res == "*"`).Replace,
}

// TestCasbin takes the same decisions with Casbin alone, over all rules and with its own roles: what it is shown of a
// policy makes no difference.
func TestCasbin(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for name, edit := range models {
		t.Run(name, func(t *testing.T) {
			text := edit(authz.DefaultModel)
			if name != "default" && text == authz.DefaultModel {
				t.Fatal("the model is the default")
			}
			a, err := authz.New(authz.Config{Model: text})
			if err != nil {
				t.Fatal(err)
			}
			for range 300 {
				sc := randomScene(r)
				if len(sc.rules) == 0 || sc.identity == "" { // Casbin takes the empty name for a subject.
					continue
				}
				sc.claims = nil // Casbin's roles are those of the policy.
				if name == "no roles" {
					sc.links = nil
				}
				load(t, a, sc.policy())
				s, err := a.Session(sc.identity, nil)
				if err != nil {
					continue // Nobody to ask for.
				}
				plain := casbinAlone(t, text, sc)
				for range 10 {
					channel := universe[r.IntN(len(universe))]
					want, err := plain.Enforce(sc.identity, "events", channel, "read")
					if err != nil {
						t.Fatal(err)
					}
					if got := s.Allowed(authz.Read, "events", channel); got != want {
						t.Fatalf("%s by %q: got %t, want %t\n%s", channel, sc.identity, got, want, sc.policy())
					}
				}
			}
		})
	}
}

// casbinAlone returns an enforcer of Casbin's with the whole policy and a matcher for exact channels.
func casbinAlone(t *testing.T, text string, sc scene) *casbin.Enforcer {
	t.Helper()
	m, err := model.NewModelFromString(text)
	if err != nil {
		t.Fatal(err)
	}
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		t.Fatal(err)
	}
	e.AddFunction("chanMatch", func(args ...any) (any, error) {
		return matches(strings.ReplaceAll(args[1].(string), "{sub}", args[2].(string)), args[0].(string)), nil
	})
	for _, r := range sc.rules {
		if _, err := e.AddPolicy(r.Subject, r.Resource, r.Channel, r.Action, r.Effect); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range sc.links {
		if _, err := e.AddGroupingPolicy(l[0], l[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.SortPoliciesBySubjectHierarchy(); err != nil {
		t.Fatal(err)
	}
	return e
}
