package connector_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/tokens"
)

// write puts a text into a file.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUserRemovedDuringLogin takes a user out of the file while his passcode is checked: nobody would look at the session
// later on.
func TestUserRemovedDuringLogin(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("wonderland"), 13) // Takes its time.
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "users.txt")
	write(t, file, "alice:"+string(hash)+":\n")
	g := start(t, func(cfg *connector.Config) { cfg.Auth.Mode, cfg.Auth.UsersFile = "users", file })
	c := g.Come(rig.Visit{})
	c.Do("CONNECT", "accept-version", "1.2", "login", "alice", "passcode", "wonderland")
	rig.Holds(t, "a session", func() bool { return g.Sessions() == 1 })
	write(t, file, "bob:"+string(hash)+":\n")
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	for {
		switch f, err := c.Read(rig.Patience); {
		case err != nil:
			t.Fatalf("a session of somebody who is not in the users file any more goes on: %v", err)
		case f.Command == "ERROR":
			return
		}
	}
}

// TestExpiryWhenTheClockIsPutBack fires the timer of a token's end while the clock says that it is not over yet.
func TestExpiryWhenTheClockIsPutBack(t *testing.T) {
	t.Parallel()
	g := start(t, func(cfg *connector.Config) {
		cfg.Auth.Mode = "jwt"
		cfg.Auth.JWT.HMACSecret = tokens.Secret
	})
	now := time.Now()
	token := tokens.Sign(t, now, tokens.Signers()["HS256"], nil, tokens.Values{"sub": "anna", "exp": now.Add(time.Hour).Unix()})
	c := rig.Connect(t, g.At("tcp"), "passcode", token)
	g.PutClockBack(300 * time.Millisecond)
	c.Refused("token expired")
}

// TestRevokedReaderIsNotWaitedFor takes the right from a client that does not read: it gets nothing of what waits for it,
// and the socket is closed without it.
func TestRevokedReaderIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.csv")
	write(t, file, "p, *, events, a, *, allow\n")
	g := start(t, func(cfg *connector.Config) {
		cfg.Authz.Policy = file
		cfg.Limits.WriteStall = time.Hour
	})
	slow := g.dialUnbuffered()
	slow.subscribe("/topic/a", "auto")
	writer := g.dial()
	for i := range 100 {
		writer.send("/topic/a", []byte(fmt.Sprint(i)), "receipt", "sent")
		writer.Receipt("sent")
	}
	write(t, file, "p, *, events, b, *, allow\n")
	begun := time.Now()
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	rig.Holds(t, "the end of the session that does not read", func() bool { return g.Sessions() == 1 })
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("the session went on for %v without its right", took)
	}
	_ = slow
}

// TestDeletingADurableNeedsTheRight deletes a durable subscription without its destination, with another one, and with
// its own, while the session must not read what it is for.
func TestDeletingADurableNeedsTheRight(t *testing.T) {
	t.Parallel()
	const both = "p, *, events_store, secret, *, allow\np, *, events_store, open, *, allow\n"
	file := filepath.Join(t.TempDir(), "policy.csv")
	write(t, file, both)
	g := start(t, func(cfg *connector.Config) { cfg.Authz.Policy = file })
	connect := func() *client {
		return &client{rig.Connect(t, g.At("tcp"), "login", "anna"), t}
	}
	load := func(policy string) {
		write(t, file, policy)
		if err := g.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	c := connect()
	c.subscribe("/topic-store/secret", "client", "durable-subscription-name", "d")
	load(strings.Split(both, "\n")[1] + "\n")
	c.Refused("access denied: no right to read /topic-store/secret")
	for _, destination := range []string{"", "/topic-store/open", "/topic-store/secret"} {
		c := connect()
		headers := []string{"id", "1", "durable-subscription-name", "d", "receipt", "deleted"}
		want := "access denied: no right to read /topic-store/secret"
		if destination != "" {
			headers = append(headers, "destination", destination)
		}
		if destination == "/topic-store/open" {
			want = "the durable subscription d has another destination"
		}
		c.Do("UNSUBSCRIBE", headers...)
		c.Refused(want)
	}
	load(both)
	c = connect()
	c.Do("UNSUBSCRIBE", "id", "1", "durable-subscription-name", "d", "receipt", "deleted")
	c.Receipt("deleted")
	c.Do("UNSUBSCRIBE", "id", "1", "durable-subscription-name", "d", "receipt", "deleted")
	c.Refused("no durable subscription d exists")
}
