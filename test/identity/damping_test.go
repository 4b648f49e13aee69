package identity_test

import (
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/rig"
)

// guess tries a passcode and returns how long the answer took.
func (g *server) guess(from net.Addr, nameValue ...string) time.Duration {
	g.t.Helper()
	c := g.come(rig.Visit{From: from})
	defer c.Close()
	begun := time.Now()
	c.Do("CONNECT", append(nameValue, "accept-version", "1.2")...)
	c.Refused(auth.RefusedText)
	return time.Since(begun)
}

// TestDamping: of one address that tries passcodes the first five are answered at once and the others up to a second late;
// its good logins are not, nor is anybody else, nor a refusal that is about something else (FR-107, FR-122).
func TestDamping(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *connector.Config) {
		c.Auth.Mode, c.Auth.UsersFile = "users", rig.Put(t, "users.txt", line(t, "alice", "secret-a", ""))
		allow(t, c)
	})
	g.login("login", "alice", "passcode", "secret-a") // From now on this passcode costs nothing.
	attacker := elsewhere()
	var mu sync.Mutex
	var took []time.Duration
	var attack sync.WaitGroup
	for range 30 {
		attack.Go(func() {
			d := g.guess(attacker, "login", "alice", "passcode", "wrong")
			mu.Lock()
			defer mu.Unlock()
			took = append(took, d)
		})
	}
	rig.Holds(t, "refusals", func() bool { return g.refusals("passcode") == "30" })
	// Now the address has used up what it has for seconds.
	begun := time.Now()
	for range 10 {
		c := g.come(rig.Visit{From: attacker})
		c.Login("login", "alice", "passcode", "secret-a")
		_ = c.Close()
		v := g.come(rig.Visit{From: attacker})
		v.Do("CONNECT", "accept-version", "3.0")
		v.Refused("no common STOMP version")
		g.guess(elsewhere(), "login", "alice", "passcode", "wrong")
	}
	if d := time.Since(begun); d > 9*time.Second { // 10 of either late by a second would be more.
		t.Errorf("10 good logins, 10 refusals of a version and 10 of other addresses took %v", d)
	}
	attack.Wait()
	slices.Sort(took)
	if late := took[len(took)-10]; late < 500*time.Millisecond {
		t.Errorf("20 of 30 refusals took less than %v", late)
	}
	if most := took[len(took)-1]; most > 15*time.Second { // One that waits for those before it would take 25.
		t.Errorf("a refusal took %v", most)
	}
	if n := len(took); n != 30 {
		t.Errorf("got %d answers", n)
	}
}

// TestRefusedLoginsFreeWhatTheyHeld: slots, descriptors, and at the end of all tests goroutines.
func TestRefusedLoginsFreeWhatTheyHeld(t *testing.T) {
	const slots = 4
	g := start(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Limits.Connections = slots
	})
	g.login("passcode", token(t, nil))
	before := descriptors(t)
	for i := range 60 {
		over := []string{"tcp", "tls", "ws", "wss"}[i%4]
		c := g.come(rig.Visit{Over: over})
		c.Do("CONNECT", "accept-version", "1.2", "passcode", "x")
		c.Refused(auth.RefusedText)
		_ = c.Close()
	}
	for range slots - 1 {
		g.login("passcode", token(t, nil))
	}
	c := g.come(rig.Visit{})
	c.Do("CONNECT", "accept-version", "1.2", "passcode", token(t, nil))
	c.Refused("connection limit reached")
	_ = c.Close()
	// A client that leaves while its answer is late, and one that never asks, free theirs too.
	rig.Holds(t, "end of what was open", func() bool { return descriptors(t) <= before+2*(slots-1) })
	if failed := g.audit("client.auth_failed"); len(failed) != 60 {
		t.Errorf("got %d audit lines, want 60", len(failed))
	}
}

// TestDampedClientThatLeaves frees its slot within a second.
func TestDampedClientThatLeaves(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Limits.Connections = 10
	})
	from := elsewhere()
	for range 10 {
		c := g.come(rig.Visit{From: from})
		c.Do("CONNECT", "accept-version", "1.2", "passcode", "x")
		_ = c.Close()
	}
	begun := time.Now()
	rig.Holds(t, "all slots", func() bool {
		var open []*rig.Client
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		for range 10 {
			c := g.come(rig.Visit{})
			open = append(open, c)
			if _, err := c.Connect("1.2", "passcode", token(t, nil)); err != nil {
				return false
			}
		}
		return true
	})
	if d := time.Since(begun); d > 15*time.Second {
		t.Errorf("the slots were free after %v", d)
	}
}

// descriptors counts the open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
