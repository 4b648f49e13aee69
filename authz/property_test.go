package authz_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/router"
)

// pieces are what destinations are put together from, to come close to each other and to what is special.
var pieces = []string{
	"/", "/", "/", ".", ".", "a", "b", "secret", "secret", "SECRET", "ok", "ok", "Ok", "*", ">", "#", "**", "..", "//", "%2e", "\u00f6", "o\u0308",
	"\u200b", "\xff", "\x00", "\r\n", " ", "$JS", "_INBOX", "stomp", "queue", "topic", "{sub}", "alice", ",", "?",
}

var prefixes = []string{
	"/topic/", "/topic/", "/events/", "topic/", "/TOPIC/", "/topic.", "/queue/", "/queues/", "queue/", "/Queue/", "/topic-store/", "/store/",
	"/events-store/", "/command/", "/commands/", "/query/", "/queries/", "", "/", "//topic/", "/topic//", "/reply/", "/topic_store/",
}

// TestD6OneValue is also C3: whatever is written in a destination, what is decided about is what goes to NATS. The
// decision on the parsed value equals one that is taken, by other code, on the NATS subject alone.
func TestD6OneValue(t *testing.T) {
	n := 1_000_000
	if raceEnabled || testing.Short() {
		n = 20_000
	}
	rules := []authz.Rule{
		{Subject: "*", Resource: "*", Channel: "ok.>", Action: "*", Effect: "allow"},
		{Subject: "alice", Resource: "*", Channel: "*", Action: "*", Effect: "allow"},
		{Subject: "alice", Resource: "events", Channel: "*.alice", Action: "*", Effect: "allow"},
		{Subject: "*", Resource: "*", Channel: "ok.secret", Action: "*", Effect: "deny"},
		{Subject: "*", Resource: "*", Channel: "secret", Action: "*", Effect: "deny"},
		{Subject: "*", Resource: "queues", Channel: "ok.*.secret", Action: "*", Effect: "deny"},
	}
	var policy strings.Builder
	for _, r := range rules {
		policy.WriteString(strings.Replace(r.String(), "*.alice", "*.{sub}", 1) + "\n")
	}
	s := newSession(t, newAuthorizer(t, policy.String()), "alice")
	r := newRouter(t)
	roots := map[string]string{"stomp.store.": "events_store", "stomp.queue.": "queues", "stomp.command.": "commands", "stomp.query.": "queries"}
	owners := make(map[string]router.Route) // D6: a subject has one pattern and channel.
	random := rand.New(rand.NewPCG(3, 6))
	var parsed, allowed, denied int
	for range n {
		var b strings.Builder
		b.WriteString(prefixes[random.IntN(len(prefixes))])
		for range 1 + random.IntN(6) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		destination := b.String()
		use, action := router.Use(random.IntN(2)), authz.Write
		if use == router.Subscribe {
			action = authz.Read
		}
		route, err := r.Parse(destination, use)
		if err != nil || route.Subject == "" {
			continue
		}
		parsed++
		got := s.Allowed(action, route.Pattern.String(), route.Channel)
		resource, channel := "events", route.Subject
		for root, name := range roots {
			if rest, ok := strings.CutPrefix(route.Subject, root); ok {
				resource, channel = name, rest
			}
		}
		if want := decideOn(rules, resource, channel); got != want {
			t.Fatalf("%q is subject %q: got %t, want %t", destination, route.Subject, got, want)
		}
		if got {
			allowed++
		} else {
			denied++
		}
		owner := router.Route{Pattern: route.Pattern, Channel: route.Channel}
		if other, taken := owners[route.Subject]; taken && other != owner {
			t.Fatalf("subject %q: got %+v and %+v, want one owner", route.Subject, other, owner)
		}
		if len(owners) < 100_000 {
			owners[route.Subject] = owner
		}
	}
	t.Logf("%d destinations, %d parsed, %d allowed, %d denied", n, parsed, allowed, denied)
	if min(allowed, denied) < n/100 {
		t.Errorf("got %d allowed and %d denied, want a hundredth of %d each", allowed, denied, n)
	}
}

// decideOn decides by the subject: token lists, without anything of the package.
func decideOn(rules []authz.Rule, resource, channel string) bool {
	allowed := false
	for _, r := range rules {
		if r.Resource != "*" && r.Resource != resource {
			continue
		}
		p, c := strings.Split(r.Channel, "."), strings.Split(channel, ".")
		if r.Effect == "deny" && overlaps(p, c) {
			return false
		}
		allowed = allowed || r.Effect == "allow" && contains(p, c)
	}
	return allowed
}

func contains(p, c []string) bool {
	switch {
	case len(p) == 0 || len(c) == 0:
		return len(p) == len(c)
	case p[0] == ">":
		return true
	case c[0] == ">" || p[0] != "*" && p[0] != c[0]:
		return false
	}
	return contains(p[1:], c[1:])
}

func overlaps(p, c []string) bool {
	switch {
	case len(p) == 0 || len(c) == 0:
		return len(p) == len(c)
	case p[0] == ">" || c[0] == ">":
		return true
	case p[0] != "*" && c[0] != "*" && p[0] != c[0]:
		return false
	}
	return overlaps(p[1:], c[1:])
}
