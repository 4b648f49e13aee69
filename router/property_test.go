package router_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/natstomp/natstomp/router"
)

// subjects gives the subject prefix of each pattern under c.
func subjects(c router.Config) map[router.Pattern]string {
	return map[router.Pattern]string{
		router.Events: c.Subjects.Topic, router.Store: c.Subjects.Store, router.Queues: c.Subjects.Queue,
		router.Commands: c.Subjects.Command, router.Queries: c.Subjects.Query,
	}
}

// checkParse parses destination and asserts everything that holds for any destination at all. It returns the route.
func checkParse(t *testing.T, r *router.Router, c router.Config, destination string, use router.Use) (router.Route, bool) {
	t.Helper()
	route, err := r.Parse(destination, use)
	if err != nil {
		checkRefusal(t, destination, route, err)
		return route, false
	}
	fail := func(what string) {
		t.Helper()
		t.Fatalf("Parse(%q, %v): got %+v, want %s", destination, use, route, what)
	}
	if len(destination) > 512 || !utf8.ValidString(destination) {
		fail("a refusal")
	}
	prefix, onNATS := subjects(c)[route.Pattern]
	switch {
	case onNATS && route.Subject != prefix+route.Channel:
		fail("the subject to be prefix and channel")
	case !onNATS && route.Subject != "":
		fail("no subject")
	case len(route.Subject) > 1024:
		fail("at most 1024 octets")
	case strings.ContainsFunc(route.Channel, func(c rune) bool { return c == '/' || unicode.IsControl(c) || c == ' ' }):
		fail("no slash, control character or space")
	}
	tokens := strings.Split(route.Channel, ".")
	wild := false
	for i, token := range tokens {
		switch {
		case token == "":
			fail("no empty token")
		case token == "*", token == ">" && i == len(tokens)-1:
			wild = true
		case strings.ContainsAny(token, "*>"):
			fail("wildcards as whole tokens, the tail last")
		}
	}
	if len(tokens) > 32 {
		fail("at most 32 tokens")
	}
	if wild != route.Wildcard || wild && (use == router.Send || route.Pattern != router.Events && route.Pattern != router.Store) {
		fail("wildcards only where they are allowed and announced")
	}
	first, _, _ := strings.Cut(route.Subject, ".")
	if route.Wide != (first == "*" || first == ">") {
		fail("Wide for a leading wildcard")
	}
	if route.Pattern == router.Events && r.Reserved(route.Subject) {
		fail("no reserved topic")
	}
	if onNATS && !wild {
		checkRoundTrip(t, r, route)
	}
	return route, true
}

// checkRefusal asserts that a refusal is of the right type and that its text can be shown to anybody.
func checkRefusal(t *testing.T, destination string, route router.Route, err error) {
	t.Helper()
	var e *router.Error
	if !errors.As(err, &e) || !errors.Is(err, router.ErrDestination) || route != (router.Route{}) {
		t.Fatalf("Parse(%q): got %+v, %#v, want no route and a *router.Error", destination, route, err)
	}
	if strings.ContainsFunc(e.Text, func(c rune) bool {
		return !unicode.IsPrint(c) || c == utf8.RuneError && !strings.Contains(destination, "\ufffd")
	}) {
		t.Fatalf("Parse(%q): got text %q, want printable characters only", destination, e.Text)
	}
}

// checkRoundTrip asserts that what a SEND reached is shown under a destination that leads to the same route again.
func checkRoundTrip(t *testing.T, r *router.Router, route router.Route) {
	t.Helper()
	shown, ok := r.Destination(route.Pattern, route.Subject)
	if !ok {
		t.Fatalf("Destination(%v, %q): got none, want one for every parsed subject", route.Pattern, route.Subject)
	}
	if len(shown) > 512 {
		return // An alias was shorter than the primary prefix.
	}
	if again, err := r.Parse(shown, router.Send); err != nil || again != route {
		t.Fatalf("Parse(Destination): got %+v, %v for %q, want %+v", again, err, shown, route)
	}
}

// shortConfig has prefixes that a small alphabet can spell.
func shortConfig(fallback, topic string) router.Config {
	return router.Config{DefaultPattern: fallback, Subjects: router.Subjects{
		Topic: topic, Store: "s.", Queue: "q.a.", Command: "q.c.", Query: "y.",
	}}
}

// TestExhaustive parses every path of up to four letters of a small alphabet under every prefix. Two routes that
// differ in pattern or channel never share a subject, and slash and dot are one separator.
func TestExhaustive(t *testing.T) {
	const alphabet = "aqs./*>#$"
	prefixes := []string{"", "/", "/topic/", "/events/", "/topic-store/", "/store/", "/queue/", "/queues/", "/command/", "/query/", "/reply/", "/temp-queue/", "/temp-topic/"}
	for _, c := range []router.Config{shortConfig("events", ""), shortConfig("queues", "t."), shortConfig("store", "")} {
		r, err := router.New(c)
		if err != nil {
			t.Fatal(err)
		}
		type key struct {
			pattern router.Pattern
			channel string
		}
		owners := map[string]key{}
		parsed := 0
		try := func(destination string) {
			route, ok := checkParse(t, r, c, destination, router.Subscribe)
			if sent, sendOK := checkParse(t, r, c, destination, router.Send); sendOK && sent != route || sendOK != (ok && !route.Wildcard) {
				t.Fatalf("%q: got %+v to SEND and %+v to SUBSCRIBE, want the same", destination, sent, route)
			}
			if !ok {
				return
			}
			parsed++
			mine := key{route.Pattern, route.Channel}
			if other, taken := owners[route.Subject]; taken && other != mine && route.Subject != "" {
				t.Fatalf("subject %q: got both %v and %v, want one owner", route.Subject, other, mine)
			}
			owners[route.Subject] = mine
		}
		var walk func(tail string, left int)
		walk = func(tail string, left int) {
			for _, prefix := range prefixes {
				try(prefix + tail)
			}
			if left == 0 {
				return
			}
			for i := range len(alphabet) {
				walk(tail+alphabet[i:i+1], left-1)
			}
		}
		walk("", 4)
		if parsed < 1000 {
			t.Errorf("got %d routes, want a test that parses something", parsed)
		}
	}
}

// TestSeparators respells one million random channels: dots and slashes after the prefix never change the route,
// nor does an alias.
func TestSeparators(t *testing.T) {
	c := router.DefaultConfig()
	r := newRouter(t, nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	words := []string{"a", "b", "stomp", "$JS", "_x", "*", "**", ">", "#", "c#", "a*", "", ".", "..", "%2e", "\u00e9", "\u2215", "\u200b", "A", "queue", " ", "\n", "\xff", "\u0085", ","}
	spellings := [][]string{
		{"/topic/", "/events/", "topic/"},
		{"/topic-store/", "/store/", "/events-store/"},
		{"/queue/", "/queues/", "queues/"},
		{"/command/", "/commands/", "command/"},
		{"/query/", "/queries/", "query/"},
		{"/reply/", "reply/"},
	}
	respell := func(tokens []string) string {
		var b strings.Builder
		for i, token := range tokens {
			if i > 0 {
				b.WriteByte("./"[rnd.IntN(2)])
			}
			b.WriteString(token)
		}
		return b.String()
	}
	parsed := 0
	for range 500_000 {
		tokens := make([]string, 1+rnd.IntN(4))
		for i := range tokens {
			tokens[i] = words[rnd.IntN(len(words))]
		}
		prefixes := spellings[rnd.IntN(len(spellings))]
		use := router.Use(rnd.IntN(2))
		first := prefixes[rnd.IntN(len(prefixes))] + respell(tokens)
		second := prefixes[rnd.IntN(len(prefixes))] + respell(tokens)
		a, okA := checkParse(t, r, c, first, use)
		b, okB := checkParse(t, r, c, second, use)
		if okA != okB || a != b {
			t.Fatalf("got %+v for %q and %+v for %q, want the same", a, first, b, second)
		}
		if okA {
			parsed++
		}
	}
	if parsed < 10_000 {
		t.Errorf("got %d routes, want a test that parses something", parsed)
	}
}

// FuzzParse asserts the properties of checkParse for any octets, and that a native subject is shown as no other channel.
func FuzzParse(f *testing.F) {
	for _, destination := range []string{
		"/topic/a/b", "/events/a.b", "/topic-store/>", "/store/*/#", "/queue/a", "/command/x", "/query/x", "/reply/r", "/temp-queue/x",
		"/topic/stomp/queue/a", "/topic/$JS.API.>", "/topic/_INBOX.x", "/topic/a*", "/topic/c#", "/topic/**/a", "//topic/a", "/topic/a/",
		"/topic/a/../b", "/topic/a\r\nPUB x 0\r\n", "/topic/\u00e9\u0085", "/topic/\xc0\xaf", "/exchange/a", "/queue/a,b", "/queue/a?b=1", "s.q.a", "/", "",
	} {
		f.Add(destination, true)
		f.Add(destination, false)
	}
	configs := []router.Config{router.DefaultConfig(), shortConfig("queues", "t."), shortConfig("events", "")}
	routers := make([]*router.Router, len(configs))
	for i, c := range configs {
		r, err := router.New(c)
		if err != nil {
			f.Fatal(err)
		}
		routers[i] = r
	}
	f.Fuzz(func(t *testing.T, text string, subscribe bool) {
		use := router.Send
		if subscribe {
			use = router.Subscribe
		}
		for i, r := range routers {
			checkParse(t, r, configs[i], text, use)
			for p := router.Events; p <= router.Queries; p++ {
				subject := subjects(configs[i])[p] + text
				shown, ok := r.Destination(p, subject)
				if !ok {
					continue
				}
				if route, err := r.Parse(shown, router.Send); err == nil && (route.Pattern != p || route.Subject != subject) {
					t.Fatalf("subject %q of %v is shown as %q, got %+v from that", subject, p, shown, route)
				}
			}
		}
	})
}
