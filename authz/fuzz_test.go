package authz_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/authz"
)

// FuzzPolicy loads anything. It is taken or refused with a reason for each fault, and decisions are taken either way.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{"", explained, "p, alice, events, a, read, allow", "g, a, role:b\ng, role:b, role:b", "p,\"a\n\",x", "\ufeffp, *, *, >, *, deny", "p, *, events, {sub}.>, *, deny"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, policy string) {
		a, err := authz.New(authz.Config{})
		if err != nil {
			t.Fatal(err)
		}
		err = a.Load("policy.csv", []byte(policy))
		var refused *authz.PolicyError
		switch {
		case err == nil:
			if st := a.Status(); st.Rules == 0 || st.Err != nil {
				t.Errorf("got %+v, want rules", st)
			}
		case !errors.As(err, &refused) || len(refused.Faults) == 0:
			t.Errorf("got %v, want a *PolicyError with faults", err)
		default:
			for i, fault := range refused.Faults {
				if fault.Text == "" || strings.ContainsAny(fault.Text, "\r\n\x00") || i > 0 && i < 100 && fault.Line < refused.Faults[i-1].Line {
					t.Errorf("got fault %+v, want a line of text, in order", fault)
				}
			}
		}
		for _, identity := range []string{"alice", "a.b", ""} {
			s, err := a.Session(identity, []string{"b"})
			if err != nil {
				continue
			}
			for _, channel := range []string{"a", "alice.x", "a.*", ">"} {
				x := s.Explain(authz.Read, "events", channel)
				if got := s.Allowed(authz.Read, "events", channel); got != x.Allowed || got && refused != nil {
					t.Errorf("%s by %q: got %t, explained %+v", channel, identity, got, x)
				}
			}
		}
	})
}

// FuzzChannels compares one rule and one channel with code that looks at lists of tokens.
func FuzzChannels(f *testing.F) {
	f.Add("a.*.>", "a.b.c", "alice")
	f.Add("{sub}.*", "alice.>", "alice")
	f.Add("{sub}", "*", "a.b")
	a, err := authz.New(authz.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, pattern, channel, identity string) {
		if strings.ContainsAny(pattern, "\",\r\n") || strings.TrimSpace(pattern) != pattern || authz.CheckChannel(authz.Read, channel) != nil {
			return
		}
		if a.Load("p", []byte("p, *, events, "+pattern+", read, allow\n")) != nil {
			return
		}
		s, err := a.Session(identity, nil)
		if err != nil {
			return
		}
		token := identity != "" && !strings.ContainsAny(identity, ".*>/ ,?\ufffd")
		p, c := strings.Split(pattern, "."), strings.Split(channel, ".")
		named := false
		for i := range p {
			if p[i] == "{sub}" {
				p[i], named = identity, true
			}
		}
		if got, want := s.Allowed(authz.Read, "events", channel), contains(p, c) && (token || !named); got != want {
			t.Errorf("allow %s: %s by %q: got %t, want %t", pattern, channel, identity, got, want)
		}
		if err := a.Load("p", []byte("p, *, events, >, read, allow\np, *, events, "+pattern+", read, deny\n")); err != nil {
			t.Fatal(err)
		}
		if got, want := s.Allowed(authz.Read, "events", channel), !overlaps(p, c) && (token || !named); got != want {
			t.Errorf("deny %s: %s by %q: got %t, want %t", pattern, channel, identity, got, want)
		}
	})
}
