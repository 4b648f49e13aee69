package authz_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/authz"
)

// TestChannels holds one rule at a time against channels. A rule that allows covers what it lists in covers; one that
// denies refuses what it lists in meets, both for the identity alice. A rule covers neither what is below it (FR-117) nor
// another last token behind a star (FR-119).
func TestChannels(t *testing.T) {
	for _, tt := range []struct{ rule, covers, meets, apart string }{
		{"a", "a", "a * >", "b a.a A aa a.> *.> a.*"},
		{"a.b", "a.b", "a.b a.* *.b *.* a.> *.> >", "a b a.c b.b a.b.c a.b.> a.*.c * *.a"},
		{"*", "a *", "a * >", "a.b *.* a.> *.>"},
		{"a.*", "a.b a.*", "a.b a.* *.b *.* a.> *.> >", "a b.c a.b.c a.b.> * *.b.c"},
		{"a.*.c", "a.b.c a.*.c", "a.b.c a.*.c a.b.* a.> a.b.> > *.*.* *.> a.*.>", "a.b.d a.c a.b.c.d a.*.d a.b.c.>"},
		{">", "a a.b * *.b a.* a.> >", "a a.b * *.b a.* a.> >", ""},
		{"a.>", "a.b a.b.c a.* a.> a.b.> a.*.c", "a.b a.b.c a.* a.> a.b.> a.*.c *.b *.> > *.*", "a b b.c b.> *"},
		{"*.>", "a.b a.b.c *.* *.> a.>", "a.b a.b.c *.* *.> a.> >", "a *"},
		{"a.*.>", "a.b.c a.b.> a.*.c a.*.> a.b.c.d", "a.b.c a.b.> a.*.c a.*.> a.> > *.b.* *.>", "a.b a.* *.*"},
		{"user.{sub}", "user.alice", "user.alice user.* user.> > *.alice *.*", "user.bob user.alice.x user.{sub} alice.user"},
		{"{sub}.>", "alice.x alice.x.y alice.>", "alice.x alice.x.y alice.> *.x > *.>", "bob.x alice"},
		{"{sub}", "alice", "alice * >", "bob {sub}"},
	} {
		allowed := newSession(t, newAuthorizer(t, "p, alice, events, "+tt.rule+", read, allow"), "alice")
		denied := newSession(t, newAuthorizer(t, "p, alice, events, >, read, allow\np, alice, events, "+tt.rule+", read, deny"), "alice")
		check := func(list string, wantCovers func(string) bool, wantMeets bool) {
			for channel := range strings.FieldsSeq(list) {
				if got, want := allowed.Allowed(authz.Read, "events", channel), wantCovers(channel); got != want {
					t.Errorf("allow %s: %s: got %t, want %t", tt.rule, channel, got, want)
				}
				if got := denied.Allowed(authz.Read, "events", channel); got != !wantMeets {
					t.Errorf("deny %s: %s: got %t, want %t", tt.rule, channel, got, !wantMeets)
				}
			}
		}
		covers := strings.Fields(tt.covers)
		in := func(channel string) bool {
			for _, c := range covers {
				if c == channel {
					return true
				}
			}
			return false
		}
		check(tt.covers, in, true)
		check(tt.meets, in, true)
		check(tt.apart, func(string) bool { return false }, false)
	}
}

// TestNoChannel asks for what package router never returns.
func TestNoChannel(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, *, *, >, *, allow"), "alice")
	for _, channel := range []string{
		"", ".", "a.", ".a", "a..b", "a/b", "/topic/a", "a b", "a\x00", "\x00a", "a\n", ">.a", "a*", "a.b>", "\xff",
		strings.Repeat("a", 513), strings.Repeat("a.", 32) + "a",
	} {
		if s.Allowed(authz.Write, "events", channel) {
			t.Errorf("%q: got allowed, want denied", channel)
		}
	}
	for _, channel := range []string{"a", strings.Repeat("a", 512), strings.Repeat("a.", 31) + "a", "größe.#1", ">", "*.*"} {
		if !s.Allowed(authz.Read, "events", channel) {
			t.Errorf("%q: got denied, want allowed", channel)
		}
	}
}

// TestResources asks for each resource and action beside what one rule is about.
func TestResources(t *testing.T) {
	for _, resource := range authz.Resources() {
		for _, action := range []authz.Action{authz.Read, authz.Write} {
			s := newSession(t, newAuthorizer(t, fmt.Sprintf("p, alice, %s, a, %v, allow", resource, action)), "alice")
			for _, r := range append(authz.Resources(), "reply", "*", "", "Events") {
				for _, act := range []authz.Action{authz.Read, authz.Write, 0, 3} {
					if got, want := s.Allowed(act, r, "a"), r == resource && act == action; got != want {
						t.Errorf("%v on %s under a rule for %v on %s: got %t, want %t", act, r, action, resource, got, want)
					}
				}
			}
		}
	}
}
