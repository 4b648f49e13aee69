package authz_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natstomp/natstomp/authz"
)

// rulesFor returns a policy of n rules, ten for each role, with one denial among ten.
func rulesFor(n int) string {
	var b strings.Builder
	for i := range n {
		effect := "allow"
		if i%10 == 9 {
			effect = "deny"
		}
		fmt.Fprintf(&b, "p, role:r%d, events, dept%d.team%d.>, *, %s\n", i/10, i/10, i%10, effect)
	}
	for i := range n / 10 {
		fmt.Fprintf(&b, "g, user%d, role:r%d\n", i, i)
	}
	return b.String()
}

// rulesOfOne returns a policy of n rules that are all for one role.
func rulesOfOne(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "p, role:all, events, dept.team%d.>, *, allow\n", i)
	}
	return b.String() + "g, user0, role:all\n"
}

func newAuthorizer(t testing.TB, policy string) *authz.Authorizer {
	t.Helper()
	a, err := authz.New(authz.Config{})
	if err != nil {
		t.Fatal(err)
	}
	load(t, a, policy)
	return a
}

func load(t testing.TB, a *authz.Authorizer, policy string) {
	t.Helper()
	if err := a.Load("policy.csv", []byte(policy)); err != nil {
		t.Fatal(err)
	}
}

func newSession(t testing.TB, a *authz.Authorizer, identity string, roles ...string) *authz.Session {
	t.Helper()
	s, err := a.Session(identity, roles)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func BenchmarkHit(b *testing.B) {
	s := newSession(b, newAuthorizer(b, rulesFor(1000)), "user0")
	channel := "dept0.team0.orders.eu"
	if !s.Allowed(authz.Write, "events", channel) {
		b.Fatal("got a denial, want allowed")
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Allowed(authz.Write, "events", channel)
	}
}

// BenchmarkMiss makes a session for each decision, since a session asks only once.
func BenchmarkMiss(b *testing.B) {
	for _, shape := range []struct {
		name   string
		policy func(int) string
	}{{"roles", rulesFor}, {"one", rulesOfOne}} {
		for _, n := range []int{10, 100, 1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				a := newAuthorizer(b, shape.policy(n))
				b.ReportAllocs()
				for b.Loop() {
					newSession(b, a, "user0").Allowed(authz.Write, "events", "dept0.team0.orders.eu")
				}
			})
		}
	}
}

// BenchmarkLogins is 5,000 sessions that log in and use three destinations each, under 100 rules.
func BenchmarkLogins(b *testing.B) {
	a := newAuthorizer(b, rulesFor(100))
	for b.Loop() {
		for i := range 5000 {
			s := newSession(b, a, fmt.Sprintf("user%d", i), fmt.Sprintf("r%d", i%10))
			s.Allowed(authz.Read, "events", fmt.Sprintf("dept%d.team1.>", i%10))
			s.Allowed(authz.Write, "events", fmt.Sprintf("dept%d.team2.in", i%10))
			s.Allowed(authz.Read, "queues", fmt.Sprintf("jobs%d", i%10))
		}
	}
}

// BenchmarkRecheck asks 5,000 sessions with one subscription each anew after a change of 1,000 rules.
func BenchmarkRecheck(b *testing.B) {
	text := []byte(rulesFor(1000))
	a := newAuthorizer(b, string(text))
	sessions := make([]*authz.Session, 5000)
	for i := range sessions {
		sessions[i] = newSession(b, a, fmt.Sprintf("user%d", i%100))
	}
	for b.Loop() {
		b.StopTimer()
		if err := a.Load("policy.csv", text); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for i, s := range sessions {
			if !s.Allowed(authz.Read, "events", fmt.Sprintf("dept%d.team1.>", i%100)) {
				b.Fatal("got a denial, want allowed")
			}
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			a := newAuthorizer(b, rulesFor(n))
			text := []byte(rulesFor(n))
			b.ReportAllocs()
			for b.Loop() {
				if err := a.Load("policy.csv", text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBesideLoads takes pairs of decisions, one remembered and one not, while 100,000 rules are loaded all the time.
func BenchmarkBesideLoads(b *testing.B) {
	text := []byte(rulesFor(100_000))
	a := newAuthorizer(b, string(text))
	s := newSession(b, a, "user0")
	var done atomic.Bool
	var loads sync.WaitGroup
	loads.Go(func() {
		for !done.Load() {
			if err := a.Load("policy.csv", text); err != nil {
				b.Error(err)
			}
		}
	})
	var worst time.Duration
	for i := 0; b.Loop(); i++ {
		begun := time.Now()
		s.Allowed(authz.Write, "events", "dept0.team0.x")
		s.Allowed(authz.Write, "events", fmt.Sprintf("dept0.team0.n%d", i))
		worst = max(worst, time.Since(begun))
	}
	done.Store(true)
	loads.Wait()
	b.ReportMetric(float64(worst.Microseconds()), "worst-µs")
}
