package auth_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/rig"
)

func hash(t *testing.T, passcode string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(passcode), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func usersConfig(t *testing.T, lines ...string) auth.Config {
	t.Helper()
	return auth.Config{Mode: auth.ModeUsers, UsersFile: write(t, "users", []byte(strings.Join(lines, "\n")+"\n"))}
}

func TestUsers(t *testing.T) {
	c := newClock()
	s := service(t, usersConfig(t,
		"# comment", "", "alice:"+hash(t, "wonderland")+":admin,reader", "bob:"+hash(t, "builder"), "häns "+":"+hash(t, "x")+":\r",
		"nginx:"+strings.Replace(hash(t, "y"), "$2a$", "$2y$", 1)), c)
	for _, tt := range []struct{ login, passcode, roles string }{
		{"alice", "wonderland", "admin reader"}, {"bob", "builder", ""}, {"häns ", "x", ""}, {"nginx", "y", ""}, {"alice", "wonderland", "admin reader"},
	} {
		i, err := s.Authenticate(t.Context(), auth.Credentials{Login: tt.login, Passcode: tt.passcode})
		if err != nil || i.Name != tt.login || strings.Join(i.Roles, " ") != tt.roles || i.Source != auth.Password || !i.Expires.IsZero() {
			t.Errorf("%s: got %+v, %v (%s)", tt.login, i, err, reason(err))
		}
	}
	for _, tt := range []struct{ login, passcode string }{
		{"alice", ""},
		{"alice", "Wonderland"},
		{"alice", "wonderland "},
		{"", ""},
		{"", "wonderland"},
		{"mallory", "wonderland"},
		{"Alice", "wonderland"},
		{"bob", "wonderland"},
		{"alice\x00", "wonderland"},
		{"alice", "wonderland\x00"},
		{"# comment", ""},
	} {
		if code := refused(t, s, auth.Credentials{Login: tt.login, Passcode: tt.passcode}); code != auth.CodePasscode {
			t.Errorf("%q %q: got code %s", tt.login, tt.passcode, code)
		}
	}
	// A login and a passcode whose joined text is that of another pair.
	refused(t, s, auth.Credentials{Login: "bobb", Passcode: "uilder"})
	// A token proves nothing here, and neither does a login without a passcode beside one.
	refused(t, s, auth.Credentials{Login: "alice", Token: "wonderland"})
}

// TestVerifiedPasscodes are remembered for five minutes, not in clear, and one for each user at most.
func TestVerifiedPasscodes(t *testing.T) {
	c := newClock()
	s := service(t, usersConfig(t, "alice:"+hash(t, "wonderland")), c)
	alice := auth.Credentials{Login: "alice", Passcode: "wonderland"}
	for range 3 {
		if _, err := s.Authenticate(t.Context(), alice); err != nil {
			t.Fatal(err)
		}
		refused(t, s, auth.Credentials{Login: "alice", Passcode: "wrong"})
		refused(t, s, auth.Credentials{Login: "nobody", Passcode: "wrong"})
	}
	n, octets := s.Verified()
	if n != 1 || bytes.Contains(octets, []byte("wonder")) {
		t.Errorf("got %d remembered: %x", n, octets)
	}
	if _, other := service(t, usersConfig(t, "alice:"+hash(t, "wonderland")), c).Verified(); bytes.Equal(other, octets) {
		t.Error("what is remembered has no key of its own")
	}
	checks := s.CountChecks()
	login := func(want int64) {
		t.Helper()
		if _, err := s.Authenticate(t.Context(), alice); err != nil || checks.Load() != want {
			t.Errorf("got %v after %d checks, want %d", err, checks.Load(), want)
		}
	}
	login(0)
	c.add(5*time.Minute - time.Nanosecond)
	login(0)
	c.add(time.Nanosecond)
	login(1) // Though it was used meanwhile.
	login(1)
}

func TestUsersReload(t *testing.T) {
	c := newClock()
	first, second := hash(t, "first"), hash(t, "second")
	cfg := usersConfig(t, "alice:"+first+":a", "bob:"+first)
	var changed atomic.Int64
	cfg.Changed = func() { changed.Add(1) }
	s := service(t, cfg, c)
	run(t, s)
	login := func(name, passcode string) (auth.Identity, error) {
		return s.Authenticate(t.Context(), auth.Credentials{Login: name, Passcode: passcode})
	}
	alice, err := login("alice", "first")
	if err != nil {
		t.Fatal(err)
	}
	bob, err := login("bob", "first")
	if err != nil {
		t.Fatal(err)
	}
	replace(t, cfg.UsersFile, []byte("alice:"+first+"\nbroken\n"))
	rig.Holds(t, "fault", func() bool { return s.Fault() != nil })
	if got := s.Fault().Error(); !strings.Contains(got, "line 2: is not name:bcrypt hash:role,role") || strings.Contains(got, first) {
		t.Errorf("got the fault %q", got)
	}
	if _, err := login("bob", "first"); err != nil || changed.Load() != 0 {
		t.Errorf("after a broken file: %v, %d changes", err, changed.Load())
	}
	replace(t, cfg.UsersFile, []byte("alice:"+first+":b\nbob:"+second+"\n"))
	rig.Holds(t, "change", func() bool { return changed.Load() == 1 })
	if err := s.Fault(); err != nil {
		t.Error(err)
	}
	if _, err := login("bob", "first"); err == nil {
		t.Error("the old passcode, which was remembered, is still good")
	}
	if i, err := s.Recheck(alice); err != nil || strings.Join(i.Roles, " ") != "b" || i.Name != "alice" {
		t.Errorf("alice: got %+v, %v", i, err)
	}
	if _, err := s.Recheck(bob); err == nil {
		t.Error("bob's passcode was changed, and his session goes on")
	}
	replace(t, cfg.UsersFile, []byte("bob:"+second+"\n"))
	rig.Holds(t, "change", func() bool { return changed.Load() == 2 })
	if _, err := s.Recheck(alice); err == nil {
		t.Error("alice is gone, and her session goes on")
	}
	if i, err := s.Recheck(auth.Identity{Name: "x", Source: auth.Certificate}); err != nil || i.Name != "x" {
		t.Errorf("not a user: got %+v, %v", i, err)
	}
}

func TestUsersFileFaults(t *testing.T) {
	c := newClock()
	good := hash(t, "x")
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{"line 1: there is no user"}},
		{"comments only", "# a\n\n", []string{"there is no user"}},
		{"several", "alice\n\na:b:c:d\n:" + good + "\nrole:x:" + good + "\nbob:canary\nbob:" + good + ":a,,b\n", []string{
			"line 1: is not name", "line 3: is not name", "line 4: the name is empty", "line 5: ", "line 6: the second field is no bcrypt hash", "line 7: a role is empty",
		}},
		{"twice", "a:" + good + "\nb:" + good + "\na:" + good + "\n", []string{"line 3: names a user of line 1 again"}},
		{"control", "a\tb:" + good, []string{"line 1: the name has a control character"}},
		{"role with blanks", "a:" + good + ":x, y", []string{"line 1: a role has blanks around it"}},
		{"plain text", "a:canary", []string{"no bcrypt hash"}},
		{"other hash", "a:$6$canary$abc", []string{"no bcrypt hash"}},
		{"cut hash", "a:" + good[:59], []string{"no bcrypt hash"}},
		{"dear", "a:" + strings.Replace(good, "$04$", "$16$", 1), []string{"cost 16"}},
		{"no UTF-8", "a\xff:" + good, []string{"no UTF-8"}},
		{"long", strings.Repeat("a", 257) + ":" + good, []string{"256 octets"}},
	} {
		_, err := auth.NewAt(auth.Config{Mode: auth.ModeUsers, UsersFile: write(t, "users", []byte(tt.text))}, c.Now)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: got %v, want %q", tt.name, err, want)
			}
		}
	}
	if _, err := auth.NewAt(auth.Config{Mode: auth.ModeUsers, UsersFile: "missing"}, c.Now); err == nil {
		t.Error("missing file: got no error")
	}
	if _, err := auth.New(auth.Config{Mode: "open"}); err == nil {
		t.Error("unknown mode: got no error")
	}
}

// TestGateIsFair: who tries passcodes in bulk delays others by a turn, not by all that is queued.
func TestGateIsFair(t *testing.T) {
	g := auth.NewGate(1)
	attacker, client := auth.Local, auth.Local.Next()
	if err := g.Enter(t.Context(), attacker); err != nil {
		t.Fatal(err)
	}
	var order []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	queue := func(name string, n int) {
		from := attacker
		if name == "client" {
			from = client
		}
		for range n {
			before := g.Waiting()
			wg.Go(func() {
				if err := g.Enter(context.Background(), from); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				g.Leave()
			})
			rig.Holds(t, "queued", func() bool { return g.Waiting() == before+1 })
		}
	}
	queue("attacker", 100)
	queue("client", 2)
	g.Leave()
	wg.Wait()
	if at := strings.Join(order[:5], " "); strings.Count(at, "client") != 2 {
		t.Errorf("got the order %s ...", at)
	}
	if lanes, turns := g.Lanes(); lanes != 0 || turns != 0 {
		t.Errorf("got %d lanes and %d turns left", lanes, turns)
	}
}

func TestGateGivesUp(t *testing.T) {
	g := auth.NewGate(1)
	if err := g.Enter(t.Context(), auth.Local); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		wg.Go(func() {
			defer cancel()
			if err := g.Enter(ctx, auth.Local); err == nil {
				g.Leave()
			}
		})
	}
	g.Leave()
	wg.Wait()
	if lanes, turns := g.Lanes(); lanes != 0 || turns != 0 {
		t.Errorf("got %d lanes and %d turns left", lanes, turns)
	}
	if err := g.Enter(t.Context(), auth.Local); err != nil {
		t.Errorf("the turn was lost: %v", err)
	}
}

// TestA6Flood: 1,000 failing logins of one address leave another's good one fast.
func TestA6Flood(t *testing.T) {
	c := newClock()
	s := service(t, usersConfig(t, "alice:"+hash(t, "wonderland")), c)
	var wg sync.WaitGroup
	var refused atomic.Int64
	for n := range 1000 {
		wg.Go(func() {
			bad := auth.Credentials{Login: fmt.Sprint("user", n), Passcode: "x", Remote: auth.Local}
			if _, err := s.Authenticate(context.Background(), bad); err == nil {
				t.Error("accepted")
			}
			refused.Add(1)
		})
	}
	before := refused.Load()
	_, err := s.Authenticate(t.Context(), auth.Credentials{Login: "alice", Passcode: "wonderland", Remote: auth.Local.Next()})
	if first := refused.Load() - before; err != nil || first > 500 {
		t.Errorf("got %v behind %d others, want to be let in behind a few", err, first)
	}
	wg.Wait()
}
