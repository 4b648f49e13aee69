package authz_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/router"
)

// The cases of reliability, section 7.5, as far as parser and policy decide them. C9 to C12, D4 and D5 also
// have a half in connector and bridge, where every path asks a Session.

// ask parses a destination as SEND and SUBSCRIBE do and decides about what came of it.
func ask(r *router.Router, s *authz.Session, a authz.Action, destination string) (allowed bool, err error) {
	use := router.Send
	if a == authz.Read {
		use = router.Subscribe
	}
	route, err := r.Parse(destination, use)
	if err != nil {
		return false, err
	}
	return s.Allowed(a, route.Pattern.String(), route.Channel), nil
}

func newRouter(t testing.TB) *router.Router {
	t.Helper()
	r, err := router.New(router.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wants asks for destinations that have to be allowed, denied or refused by the parser.
func wants(t *testing.T, s *authz.Session, a authz.Action, want string, destinations ...string) {
	t.Helper()
	r := newRouter(t)
	for _, d := range destinations {
		allowed, err := ask(r, s, a, d)
		got := map[bool]string{true: "allowed", false: "denied"}[allowed]
		if err != nil {
			got = "refused"
		}
		if got != want {
			t.Errorf("%v %q by %q: got %s (%v), want %s", a, d, s.Explain(a, "events", "a").Subjects, got, err, want)
		}
	}
}

func TestC1DenyByDefault(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, alice, events, a, read, allow"), "alice")
	wants(t, s, authz.Read, "allowed", "/topic/a")
	wants(t, s, authz.Read, "denied", "/topic/b", "/queue/a", "/topic-store/a", "/topic/a/b")
	wants(t, s, authz.Write, "denied", "/topic/a")
	for _, unknown := range []authz.Action{0, authz.Write + 1, 255} {
		if s.Allowed(unknown, "events", "a") {
			t.Errorf("action %d: got allowed, want denied", unknown)
		}
	}

	a, err := authz.New(authz.Config{})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, newSession(t, a, "alice"), authz.Read, "denied", "/topic/a")
	if err := a.Load("empty", nil); err == nil {
		t.Error("empty policy: got no error, want a refusal")
	}
	if err := authz.NewFile(a, filepath.Join(t.TempDir(), "missing.csv")).Reload(); err == nil {
		t.Error("missing file: got no error, want one")
	}
	wants(t, newSession(t, a, "alice"), authz.Read, "denied", "/topic/a")
}

func TestC2CaseAndAliases(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, alice, *, ok.>, *, allow\np, alice, events, ok.secret, *, deny\np, alice, queues, ok.secret, *, deny"), "alice")
	for _, a := range []authz.Action{authz.Read, authz.Write} {
		wants(t, s, a, "allowed", "/topic/ok/a", "/events/ok/a", "topic/ok.a", "/queue/ok/a", "/queues/ok/a", "/store/ok/secret", "/topic/ok/SECRET")
		wants(t, s, a, "denied", "/topic/ok/secret", "/events/ok/secret", "topic/ok.secret", "events/ok.secret", "/queue/ok/secret",
			"/queues/ok.secret", "queue/ok/secret", "/topic/OK/secret")
		// Another spelling of the prefix is a channel of the default pattern, which begins with it.
		wants(t, s, a, "denied", "/TOPIC/ok/a", "/Topic/ok/a", "/Queue/ok/a", "/QUEUES/ok/a", "/topic_store/ok/a")
	}
}

func TestC3Paths(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, alice, events, a.>, *, allow\np, alice, events, a.secret, *, deny"), "alice")
	wants(t, s, authz.Write, "allowed", "/topic/a/b", "/topic/a.b", "topic/a.b")
	wants(t, s, authz.Write, "denied", "/topic/a/secret", "/topic/a.secret", "events/a.secret", "a/secret", "a.secret", "/a.secret")
	wants(t, s, authz.Write, "refused", "/topic/a/../secret", "/topic/./a", "/topic/a/.", "//topic/a", "//topic", "/topic//a", "/topic/a/",
		"/topic/a//secret", "/topic/a..secret", "/topic/.a.secret", "/topic/a.secret.", "/topic/", "/topic", "/", "")
}

func TestC4Encodings(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, alice, events, a.>, *, allow\np, alice, events, a.secret, *, deny\np, alice, events, a.gr\u00f6\u00dfe, *, deny"), "alice")
	// Nothing is decoded: these are channels of their own, on NATS as well.
	wants(t, s, authz.Write, "allowed", "/topic/a/%73ecret", "/topic/a/%2573ecret", "/topic/a/s\u0435cret", "/topic/a/secret\u200b", "/topic/a/gro\u0308\u00dfe")
	wants(t, s, authz.Write, "denied", "/topic/a/secret", "/topic/a/gr\u00f6\u00dfe", "/topic%2fa/b", "/%74opic/a/b")
	wants(t, s, authz.Write, "refused", "/topic/a/b\x00", "/topic/a/\xc0\xaf", "/topic/a/\xff", "/topic/a/b\r", "/topic/a/b\n", "/topic/a\tb", "/topic/a/ b", "/topic/a/b\x7f", "/topic/a/\u0085b")
}

func TestC5Names(t *testing.T) {
	a := newAuthorizer(t, "p, role:admin, *, >, *, allow\np, alice, events, a, *, allow\np, *, events, public, read, allow")
	for _, identity := range []string{"role:admin", "role:", "role:x", "*", "a\x00b", "a\r\nb", "\xff", strings.Repeat("a", 257)} {
		if s, err := a.Session(identity, nil); s != nil || !errors.Is(err, authz.ErrIdentity) {
			t.Errorf("%q: got %v, %v, want ErrIdentity", identity, s, err)
		}
	}
	// These are let in (DESIGN, section 6), and are nobody else.
	for _, identity := range []string{"alice$$events", "alice$$/topic/a", "", "ROLE:admin", "admin", "Alice", "alice ", "{sub}", ">", "a*", strings.Repeat("a", 256)} {
		s := newSession(t, a, identity)
		wants(t, s, authz.Read, "allowed", "/topic/public")
		wants(t, s, authz.Write, "denied", "/topic/a", "/topic/public", "/queue/a")
	}
	// What an enforcer with a joined key confuses.
	alice, forged := newSession(t, a, "alice"), newSession(t, a, "alice$$events")
	wants(t, alice, authz.Write, "allowed", "/topic/a")
	wants(t, forged, authz.Write, "denied", "/topic/a")
	// A role of a login is a role and never an identity or anybody.
	for _, role := range []string{"alice", "*", "", "role:admin", "Admin"} {
		wants(t, newSession(t, a, "bob", role), authz.Write, "denied", "/topic/a", "/queue/a")
	}
	wants(t, newSession(t, a, "bob", "admin"), authz.Write, "allowed", "/topic/a", "/queue/a")
}

func TestC6Placeholder(t *testing.T) {
	a := newAuthorizer(t, "p, *, queues, user.{sub}.>, *, allow\np, *, queues, user.{sub}, *, allow")
	wants(t, newSession(t, a, "alice"), authz.Write, "allowed", "/queue/user/alice", "/queue/user.alice/inbox")
	wants(t, newSession(t, a, "alice"), authz.Write, "denied", "/queue/user/bob", "/queue/user/{sub}", "/queue/user", "/queue/user/alice2/inbox")
	for _, identity := range []string{"a.b", "*a", ">", "**", "a*", "a/b", "a b", "a,b", ""} {
		s := newSession(t, a, identity)
		for _, channel := range []string{"user." + identity, "user.a.b", "user.alice", "user.*", "user.>", "user.a.b.c", "user.>.x"} {
			for _, action := range []authz.Action{authz.Read, authz.Write} {
				if s.Allowed(action, "queues", channel) {
					t.Errorf("%q: %v %s: got allowed, want denied", identity, action, channel)
				}
			}
		}
	}

	// A denial with the placeholder: who is no token is not let in, or has nothing left if it comes with a reload.
	const sealing = "p, *, *, >, *, allow\np, role:staff, events, log.{sub}, *, deny\ng, a.b, role:staff"
	open := newAuthorizer(t, "p, *, *, >, *, allow")
	before := newSession(t, open, "a.b")
	other := newSession(t, open, "c.d")
	wants(t, before, authz.Read, "allowed", "/topic/x")
	load(t, open, sealing)
	wants(t, before, authz.Read, "denied", "/topic/x", "/queue/x")
	wants(t, other, authz.Read, "allowed", "/topic/x", "/topic/log.c.d")
	for identity, roles := range map[string][]string{"a.b": nil, "x*": {"staff"}, "": {"staff"}} {
		if s, err := open.Session(identity, roles); s != nil || !errors.Is(err, authz.ErrIdentity) {
			t.Errorf("%q: got %v, %v, want ErrIdentity", identity, s, err)
		}
	}
	wants(t, newSession(t, open, "alice", "staff"), authz.Read, "denied", "/topic/log/alice", "/topic/log/*", "/topic/>")
	wants(t, newSession(t, open, "alice", "staff"), authz.Read, "allowed", "/topic/log/bob", "/topic/log")
	wants(t, newSession(t, open, "c.d"), authz.Read, "allowed", "/topic/log/alice")
}

// TestC7NoExpressions: what others read as an expression is text here, or refused.
func TestC7NoExpressions(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, alice, events, orders.[a-z]+, *, allow\np, alice, events, x(y|z), *, allow\np, alice, queues, orders, *, allow"), "alice")
	wants(t, s, authz.Write, "allowed", "/topic/orders/[a-z]+", "/topic/x(y|z)", "/queue/orders")
	wants(t, s, authz.Write, "denied", "/topic/orders/a", "/topic/xy", "/queue/orders-secret", "/queue/x/queue/orders", "/queue/orders/a")
	a := newAuthorizer(t, "p, alice, events, a, *, allow")
	for _, channel := range []string{"orders.a*", "^orders$.*x", "orders*", "a?", "{a,b}"} {
		if err := a.Load("p.csv", []byte("p, alice, events, "+channel+", *, allow")); err == nil {
			t.Errorf("channel %s: got no error, want a refusal", channel)
		}
	}
}

func TestC8Wildcards(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, alice, events, a.>, read, allow\np, alice, events, b.c, read, allow\np, alice, events, a.secret.>, read, deny"), "alice")
	wants(t, s, authz.Read, "allowed", "/topic/a/b", "/topic/a/b/*", "/topic/a/b/**", "/topic/a/secret", "/topic/a/*")
	wants(t, s, authz.Read, "denied", "/topic/a/>", "/topic/a/#", "/topic/a/secret/x", "/topic/a/*/x", "/topic/>", "/topic/*/secret/x", "/topic/*",
		"/topic/b/*", "/topic/*/b", "/topic/a/secret/*", "/events/a.**")
	// Two rules together are not one that covers.
	two := newSession(t, newAuthorizer(t, "p, alice, events, *, read, allow\np, alice, events, *.>, read, allow"), "alice")
	wants(t, two, authz.Read, "allowed", "/topic/*", "/topic/*/>")
	wants(t, two, authz.Read, "denied", "/topic/>")
}

// TestC9OtherWaysToRead: replay, browsing, durables and a return to one ask for the same right as a live subscription.
func TestC9OtherWaysToRead(t *testing.T) {
	a := newAuthorizer(t, "p, alice, events_store, a.>, read, allow\np, alice, queues, q, read, allow")
	s := newSession(t, a, "alice")
	wants(t, s, authz.Read, "allowed", "/topic-store/a/b", "/queue/q")
	wants(t, s, authz.Read, "denied", "/topic/a/b", "/queue/dlq/q", "/topic-store/>")
	load(t, a, "p, alice, queues, q, read, allow")
	wants(t, s, authz.Read, "denied", "/topic-store/a/b")
	wants(t, s, authz.Read, "allowed", "/queue/q")
}

// TestC10Groups: a group is no part of the channel, so it changes nothing.
func TestC10Groups(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, *, *, >, *, allow\np, alice, queues, jobs, read, deny\np, alice, events, jobs, read, deny"), "alice")
	wants(t, s, authz.Read, "denied", "/queue/jobs", "/topic/jobs", "/queues/jobs")
}

// TestC11Commit: what was allowed at SEND is asked again at COMMIT.
func TestC11Commit(t *testing.T) {
	a := newAuthorizer(t, "p, alice, queues, q, write, allow")
	s := newSession(t, a, "alice")
	wants(t, s, authz.Write, "allowed", "/queue/q")
	load(t, a, "p, alice, queues, other, write, allow")
	wants(t, s, authz.Write, "denied", "/queue/q")
}

// TestC12OneFunction: rights know no transport. A session is identity and roles, and two of them are alike.
func TestC12OneFunction(t *testing.T) {
	a := newAuthorizer(t, "p, alice, events, a, write, allow\np, role:x, queries, stock, write, allow")
	for _, s := range []*authz.Session{newSession(t, a, "alice", "x"), newSession(t, a, "alice", "x", "x"), newSession(t, a, "alice", "y", "x")} {
		wants(t, s, authz.Write, "allowed", "/topic/a", "/query/stock", "/queries/stock")
		wants(t, s, authz.Write, "denied", "/command/stock", "/queue/a")
		wants(t, s, authz.Read, "denied", "/topic/a", "/query/stock")
	}
}

func TestD1Reserved(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, *, *, >, *, allow"), "alice")
	for _, name := range []string{"$JS.API.>", "$JS/API/STREAM/DELETE/Q", "$JS.ACK.x", "$SYS.REQ", "$KV.natstomp_policy.p", "$O.x", "$SRV.PING", "$G.x", "_INBOX.x", "_R_.x", "_natstomp.due.Q", "stomp.queue.a", "stomp"} {
		for _, prefix := range []string{"/topic/", "/events/", "topic/", "/", ""} {
			wants(t, s, authz.Read, "refused", prefix+name)
			wants(t, s, authz.Write, "refused", prefix+name)
		}
	}
	// Elsewhere they are below a prefix and nobody's space.
	wants(t, s, authz.Write, "allowed", "/queue/$JS/API/x", "/topic/a/$JS")
}

func TestD2Lines(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, *, *, >, *, allow"), "alice")
	for _, c := range []string{"\r", "\n", "\r\nPUB x 1\r\n", "\t", " ", "\x00", "\x1b", "\x7f"} {
		wants(t, s, authz.Write, "refused", "/topic/a"+c, "/topic/a"+c+"b", "/queue/"+c+"a", c+"/topic/a")
		if s.Allowed(authz.Write, "events", "a"+c) {
			t.Errorf("channel with %q: got allowed, want denied", c)
		}
	}
}

func TestD3Bounds(t *testing.T) {
	s := newSession(t, newAuthorizer(t, "p, *, *, >, *, allow"), "alice")
	wants(t, s, authz.Write, "refused", "/topic/*", "/topic/a/>", "/queue/#", "/topic/a*", "/topic/"+strings.Repeat("a", 506), "/topic/"+strings.Repeat("a/", 32)+"a")
	wants(t, s, authz.Write, "allowed", "/topic/"+strings.Repeat("a", 505), "/topic/"+strings.Repeat("a/", 31)+"a")
	wants(t, s, authz.Read, "refused", "/queue/*", "/command/>", "/topic/>/a")
}

// TestD4Replies: there are no rights on reply addresses, and none of them is a subject.
func TestD4Replies(t *testing.T) {
	r := newRouter(t)
	s := newSession(t, newAuthorizer(t, "p, *, *, >, *, allow"), "alice")
	for _, d := range []string{"/reply/x", "/temp-queue/x", "/temp-topic/x", "/reply/_INBOX.x"} {
		route, err := r.Parse(d, router.Subscribe)
		if err != nil || route.Subject != "" {
			t.Errorf("%s: got %+v, %v, want a route without subject", d, route, err)
		}
		wants(t, s, authz.Read, "denied", d)
	}
	wants(t, s, authz.Write, "refused", "/topic/_INBOX/x", "_INBOX.x")
}

// TestD5Inboxes: what replies come to is below a subject that no destination reaches; that they cannot be guessed is
// bridge's TestInboxIsNotGuessed.
func TestD5Inboxes(t *testing.T) {
	r := newRouter(t)
	for _, subject := range []string{"_INBOX.abc.1", "_natstomp.reply.x", "$SYS.x", "stomp.query.x"} {
		if !r.Reserved(subject) {
			t.Errorf("%s: got shown to wildcard subscriptions, want reserved", subject)
		}
	}
}
