package router_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/router"
)

const (
	send      = router.Send
	subscribe = router.Subscribe
)

// newRouter returns a router for the default configuration as edit changes it.
func newRouter(t testing.TB, edit func(*router.Config)) *router.Router {
	t.Helper()
	c := router.DefaultConfig()
	if edit != nil {
		edit(&c)
	}
	r, err := router.New(c)
	if err != nil {
		t.Fatalf("New(%+v): %v", c, err)
	}
	return r
}

func defaultPattern(name string) func(*router.Config) {
	return func(c *router.Config) { c.DefaultPattern = name }
}

// checkFault asserts that err is a *router.Error for destination with the given fault.
func checkFault(t *testing.T, err error, shown, fault string) {
	t.Helper()
	var e *router.Error
	if !errors.As(err, &e) || !errors.Is(err, router.ErrDestination) {
		t.Fatalf("got error %#v, want a *router.Error that wraps ErrDestination", err)
	}
	if want := "destination " + shown + ": " + fault; e.Text != want {
		t.Errorf("got text %s\n        want %s", e.Text, want)
	}
	if e.Error() != e.Text {
		t.Errorf("got Error() %q, want the text %q", e.Error(), e.Text)
	}
}

func TestPatterns(t *testing.T) {
	r := newRouter(t, nil)
	const wild = true
	for _, tt := range []struct {
		destination string
		use         router.Use
		want        router.Route
	}{
		{"/topic/a/b", send, router.Route{Pattern: router.Events, Channel: "a.b", Subject: "a.b"}},
		{"/events/a/b", send, router.Route{Pattern: router.Events, Channel: "a.b", Subject: "a.b"}},
		{"/topic-store/a/b", send, router.Route{Pattern: router.Store, Channel: "a.b", Subject: "stomp.store.a.b"}},
		{"/store/a/b", send, router.Route{Pattern: router.Store, Channel: "a.b", Subject: "stomp.store.a.b"}},
		{"/events-store/a/b", send, router.Route{Pattern: router.Store, Channel: "a.b", Subject: "stomp.store.a.b"}},
		{"/queue/a/b", send, router.Route{Pattern: router.Queues, Channel: "a.b", Subject: "stomp.queue.a.b"}},
		{"/queues/a/b", subscribe, router.Route{Pattern: router.Queues, Channel: "a.b", Subject: "stomp.queue.a.b"}},
		{"/command/a/b", send, router.Route{Pattern: router.Commands, Channel: "a.b", Subject: "stomp.command.a.b"}},
		{"/commands/a/b", send, router.Route{Pattern: router.Commands, Channel: "a.b", Subject: "stomp.command.a.b"}},
		{"/query/a/b", subscribe, router.Route{Pattern: router.Queries, Channel: "a.b", Subject: "stomp.query.a.b"}},
		{"/queries/a/b", send, router.Route{Pattern: router.Queries, Channel: "a.b", Subject: "stomp.query.a.b"}},
		{"/reply/r1", subscribe, router.Route{Pattern: router.Reply, Channel: "r1"}},
		{"/reply/a/b.c", send, router.Route{Pattern: router.Reply, Channel: "a.b.c"}},
		{"/temp-queue/x", send, router.Route{Pattern: router.TempQueue, Channel: "x"}},
		{"/temp-topic/x/y", subscribe, router.Route{Pattern: router.TempTopic, Channel: "x.y"}},

		// Dots inside segments, the optional leading slash.
		{"/topic/a.b", send, router.Route{Pattern: router.Events, Channel: "a.b", Subject: "a.b"}},
		{"/topic/a.b/c.d", send, router.Route{Pattern: router.Events, Channel: "a.b.c.d", Subject: "a.b.c.d"}},
		{"topic/a", send, router.Route{Pattern: router.Events, Channel: "a", Subject: "a"}},
		{"queue/a", send, router.Route{Pattern: router.Queues, Channel: "a", Subject: "stomp.queue.a"}},

		// Everything but the letters of the grammar is text, and nothing is decoded or folded.
		{"/topic/a%2Fb", send, router.Route{Pattern: router.Events, Channel: "a%2Fb", Subject: "a%2Fb"}},
		{"/topic/%2e%2e/a", send, router.Route{Pattern: router.Events, Channel: "%2e%2e.a", Subject: "%2e%2e.a"}},
		{"/topic/A", send, router.Route{Pattern: router.Events, Channel: "A", Subject: "A"}},
		{"/topic/c#", send, router.Route{Pattern: router.Events, Channel: "c#", Subject: "c#"}},
		{"/topic/##/a", send, router.Route{Pattern: router.Events, Channel: "##.a", Subject: "##.a"}},
		{"/topic/h\u00e9", send, router.Route{Pattern: router.Events, Channel: "h\u00e9", Subject: "h\u00e9"}},
		{"/topic/he\u0301", send, router.Route{Pattern: router.Events, Channel: "he\u0301", Subject: "he\u0301"}},
		{"/topic/\U0001F600\u200b\u00a0", send, router.Route{Pattern: router.Events, Channel: "\U0001F600\u200b\u00a0", Subject: "\U0001F600\u200b\u00a0"}},
		{"/topic/\u2215a", send, router.Route{Pattern: router.Events, Channel: "\u2215a", Subject: "\u2215a"}},
		{"/queue/errors-user8f1d-x_y:z;=@+~!&()[]{}|^'`\"\\", send, router.Route{Pattern: router.Queues, Channel: "errors-user8f1d-x_y:z;=@+~!&()[]{}|^'`\"\\", Subject: "stomp.queue.errors-user8f1d-x_y:z;=@+~!&()[]{}|^'`\"\\"}},

		// Unknown first segments are part of the channel; the case counts; two near misses are no prefixes.
		{"/foo/bar", send, router.Route{Pattern: router.Events, Channel: "foo.bar", Subject: "foo.bar"}},
		{"foo", send, router.Route{Pattern: router.Events, Channel: "foo", Subject: "foo"}},
		{"/TOPIC/a", send, router.Route{Pattern: router.Events, Channel: "TOPIC.a", Subject: "TOPIC.a"}},
		{"/Queue/a", send, router.Route{Pattern: router.Events, Channel: "Queue.a", Subject: "Queue.a"}},
		{"/topic_store/a", send, router.Route{Pattern: router.Events, Channel: "topic_store.a", Subject: "topic_store.a"}},
		{"/eventstore/a", send, router.Route{Pattern: router.Events, Channel: "eventstore.a", Subject: "eventstore.a"}},
		{"/topic.a/b", send, router.Route{Pattern: router.Events, Channel: "topic.a.b", Subject: "topic.a.b"}},
		{"/temp-queues/a", send, router.Route{Pattern: router.Events, Channel: "temp-queues.a", Subject: "temp-queues.a"}},
		{"/exchange", send, router.Route{Pattern: router.Events, Channel: "exchange", Subject: "exchange"}},
		{"/amq/topic/a", send, router.Route{Pattern: router.Events, Channel: "amq.topic.a", Subject: "amq.topic.a"}},
		{"/users/a", send, router.Route{Pattern: router.Events, Channel: "users.a", Subject: "users.a"}},
		{"/topic/exchange/user/a", send, router.Route{Pattern: router.Events, Channel: "exchange.user.a", Subject: "exchange.user.a"}},

		// Reserved words are free elsewhere than at the head of a topic channel.
		{"/topic/a/stomp/$b/_c", send, router.Route{Pattern: router.Events, Channel: "a.stomp.$b._c", Subject: "a.stomp.$b._c"}},
		{"/topic/Stomp/a", send, router.Route{Pattern: router.Events, Channel: "Stomp.a", Subject: "Stomp.a"}},
		{"/topic/stomper", send, router.Route{Pattern: router.Events, Channel: "stomper", Subject: "stomper"}},
		{"/queue/stomp/a", send, router.Route{Pattern: router.Queues, Channel: "stomp.a", Subject: "stomp.queue.stomp.a"}},
		{"/queue/$JS/_a", send, router.Route{Pattern: router.Queues, Channel: "$JS._a", Subject: "stomp.queue.$JS._a"}},
		{"/topic-store/_a", send, router.Route{Pattern: router.Store, Channel: "_a", Subject: "stomp.store._a"}},

		// Wildcards.
		{"/topic/*", subscribe, router.Route{Pattern: router.Events, Channel: "*", Subject: "*", Wildcard: wild, Wide: true}},
		{"/topic/>", subscribe, router.Route{Pattern: router.Events, Channel: ">", Subject: ">", Wildcard: wild, Wide: true}},
		{"/topic/**", subscribe, router.Route{Pattern: router.Events, Channel: ">", Subject: ">", Wildcard: wild, Wide: true}},
		{"/topic/#", subscribe, router.Route{Pattern: router.Events, Channel: ">", Subject: ">", Wildcard: wild, Wide: true}},
		{"/topic/*/a", subscribe, router.Route{Pattern: router.Events, Channel: "*.a", Subject: "*.a", Wildcard: wild, Wide: true}},
		{"/topic/*.>", subscribe, router.Route{Pattern: router.Events, Channel: "*.>", Subject: "*.>", Wildcard: wild, Wide: true}},
		{"/topic/a/*/b", subscribe, router.Route{Pattern: router.Events, Channel: "a.*.b", Subject: "a.*.b", Wildcard: wild}},
		{"/topic/a/*.*/#", subscribe, router.Route{Pattern: router.Events, Channel: "a.*.*.>", Subject: "a.*.*.>", Wildcard: wild}},
		{"/topic/a.**", subscribe, router.Route{Pattern: router.Events, Channel: "a.>", Subject: "a.>", Wildcard: wild}},
		{"/topic/c#/##/#c", subscribe, router.Route{Pattern: router.Events, Channel: "c#.##.#c", Subject: "c#.##.#c"}},
		{"/topic-store/>", subscribe, router.Route{Pattern: router.Store, Channel: ">", Subject: "stomp.store.>", Wildcard: wild}},
		{"/store/*/#", subscribe, router.Route{Pattern: router.Store, Channel: "*.>", Subject: "stomp.store.*.>", Wildcard: wild}},
		{"/foo/#", subscribe, router.Route{Pattern: router.Events, Channel: "foo.>", Subject: "foo.>", Wildcard: wild}},
		{">", subscribe, router.Route{Pattern: router.Events, Channel: ">", Subject: ">", Wildcard: wild, Wide: true}},
	} {
		got, err := r.Parse(tt.destination, tt.use)
		if err != nil {
			t.Errorf("Parse(%q, %v): %v", tt.destination, tt.use, err)
			continue
		}
		if got != tt.want {
			t.Errorf("Parse(%q, %v): got %+v, want %+v", tt.destination, tt.use, got, tt.want)
		}
	}
}

const (
	emptySegment = "it has an empty segment (two slashes together, or one at the end)"
	emptyToken   = "it has an empty token (two dots together, or one at an edge)"
	inside       = `"*" and ">" must stand alone as a token and cannot be part of one`
	notLast      = `">", "**" and "#" stand for the rest of a channel and must be its last token`
	wildSend     = "wildcards are for SUBSCRIBE only, a SEND names one channel"
	reservedText = "are reserved (setting destinations.subjects)"
)

// TestRefused lists faults that do not depend on the use, so each is tried with both.
func TestRefused(t *testing.T) {
	r := newRouter(t, nil)
	for _, tt := range []struct{ name, destination, fault string }{
		{"empty", "", "it is empty"},
		{"a slash only", "/", "it is empty"},
		{"two slashes only", "//", emptySegment},
		{"two leading slashes", "//topic/a", emptySegment},
		{"empty segment inside", "/topic//a", emptySegment},
		{"trailing slash", "/topic/a/", emptySegment},
		{"prefix and slash", "/topic/", emptySegment},
		{"URL of another broker", "queue://a", emptySegment},
		{"foreign prefix without channel", "/exchange/", emptySegment},

		{"prefix alone", "/topic", "no channel follows /topic"},
		{"prefix alone without slash", "queue", "no channel follows /queue"},
		{"alias alone", "/events-store", "no channel follows /events-store"},
		{"reply without name", "/reply", "no channel follows /reply"},
		{"temp-queue without name", "/temp-queue", "no channel follows /temp-queue"},

		{"only a dot", "/topic/.", emptyToken},
		{"dot segment", "/topic/./a", emptyToken},
		{"parent segment", "/topic/a/../b", emptyToken},
		{"two dots", "/topic/a..b", emptyToken},
		{"leading dot", "/topic/.a", emptyToken},
		{"trailing dot", "/queue/a.", emptyToken},
		{"dot before slash", "/queue/a./b", emptyToken},
		{"dot as unknown prefix", "/.", emptyToken},
		{"dot in a reply name", "/reply/a.", emptyToken},

		{"space", "/topic/a b", "it holds a space"},
		{"leading space", " /topic/a", "it holds a space"},
		{"trailing space", "/topic/a ", "it holds a space"},
		{"space after text beyond ASCII", "/topic/\u00e9 a", "it holds a space"},
		{"space in a reply name", "/reply/a b", "it holds a space"},
		{"NUL", "/topic/a\x00b", "it holds the control character U+0000"},
		{"tab", "/topic/a\tb", "it holds the control character U+0009"},
		{"LF", "/topic/a\nPUB x 0", "it holds the control character U+000A"},
		{"CR", "/queue/a\r", "it holds the control character U+000D"},
		{"form feed", "/queue/a\f", "it holds the control character U+000C"},
		{"escape", "/queue/\x1b[0m", "it holds the control character U+001B"},
		{"DEL", "/queue/\x7f", "it holds the control character U+007F"},
		{"C0 after text beyond ASCII", "/queue/\u00e9\x01", "it holds the control character U+0001"},
		{"first of C1", "/queue/\u0080", "it holds the control character U+0080"},
		{"next line", "/queue/\u0085", "it holds the control character U+0085"},
		{"last of C1", "/queue/\u009f", "it holds the control character U+009F"},
		{"replacement character", "/queue/\ufffd", "it holds U+FFFD, the mark of text that was decoded wrongly"},

		{"exchange", "/exchange/amq.direct/key", "/exchange/ is not supported, use /topic/<channel>"},
		{"exchange without slash", "exchange/a", "/exchange/ is not supported, use /topic/<channel>"},
		{"amq queue", "/amq/queue/a", "/amq/queue/ is not supported, use /queue/<channel>"},
		{"reply-queue", "/reply-queue/a", "/reply-queue/ is not supported, use /temp-queue/<name>"},
		{"dsub", "/dsub/a", "/dsub/ is not supported, use /topic-store/<channel> with durable:true and an id"},
		{"user", "/user/queue/a", "/user/ is not supported, use a /queue/ or /topic/ with the user's name in its channel"},
		{"composite", "/queue/a,/queue/b", "a comma (composite destinations) is not supported, use one frame for each destination"},
		{"comma in a reply name", "/reply/a,b", "a comma (composite destinations) is not supported, use one frame for each destination"},
		{"options", "/queue/a?consumer.prefetchSize=1", "a question mark (destination options) is not supported, use headers such as prefetch-count"},

		{"star at the end of a token", "/topic/a*", inside},
		{"star at the head of a token", "/topic/*a", inside},
		{"stars in a token", "/topic/a**b", inside},
		{"three stars", "/topic/***", inside},
		{"tail at the head of a token", "/topic/>x", inside},
		{"tail at the end of a token", "/topic/x>", inside},
		{"both in one token", "/topic/*>", inside},
		{"star and hash", "/topic/#*", inside},
		{"star in a queue's token", "/queue/a*", inside},
		{"star in a reply name", "/reply/a*", inside},
		{"star in a later token", "/topic-store/a/b.c*", inside},

		{"root", "/topic/stomp", `topic channels with the first token "stomp" ` + reservedText},
		{"root of a queue", "/topic/stomp/queue/a", `topic channels with the first token "stomp" ` + reservedText},
		{"root in dot form", "/events/stomp.queue.a", `topic channels with the first token "stomp" ` + reservedText},
		{"root as unknown prefix", "/stomp/queue/a", `topic channels with the first token "stomp" ` + reservedText},
		{"JetStream API", "/topic/$JS/API/STREAM/LIST", `topic channels beginning with "$" ` + reservedText},
		{"JetStream API as unknown prefix", "$JS.API.STREAM.LIST", `topic channels beginning with "$" ` + reservedText},
		{"ack subject", "/topic/$JS.ACK.a", `topic channels beginning with "$" ` + reservedText},
		{"system", "/topic/$SYS/REQ", `topic channels beginning with "$" ` + reservedText},
		{"key-value", "/topic/$KV", `topic channels beginning with "$" ` + reservedText},
		{"object store", "/topic/$O.x", `topic channels beginning with "$" ` + reservedText},
		{"micro", "/topic/$SRV.PING", `topic channels beginning with "$" ` + reservedText},
		{"dollar alone", "/topic/$", `topic channels beginning with "$" ` + reservedText},
		{"token refresh, when the connector lets it through", "/$auth/refresh", `topic channels beginning with "$" ` + reservedText},
		{"inbox", "/topic/_INBOX.x.y", `topic channels beginning with "_" ` + reservedText},
		{"service reply", "/topic/_R_.x", `topic channels beginning with "_" ` + reservedText},
		{"our own", "/topic/_natstomp/once", `topic channels beginning with "_" ` + reservedText},
		{"underscore", "/_a", `topic channels beginning with "_" ` + reservedText},
	} {
		for _, use := range []router.Use{send, subscribe} {
			t.Run(tt.name, func(t *testing.T) {
				got, err := r.Parse(tt.destination, use)
				if got != (router.Route{}) {
					t.Errorf("got route %+v, want none", got)
				}
				checkFault(t, err, quoted(tt.destination), tt.fault)
			})
		}
	}
}

func TestInvalidUTF8(t *testing.T) {
	r := newRouter(t, nil)
	for _, tt := range []struct{ name, destination, shown string }{
		{"stray octet", "/topic/a\xff", `"/topic/a\xff"`},
		{"truncated", "/topic/\xc3", `"/topic/\xc3"`},
		{"overlong slash", "/topic/a\xc0\xafb", `"/topic/a\xc0\xafb"`},
		{"overlong NUL", "/topic/a\xc0\x80", `"/topic/a\xc0\x80"`},
		{"surrogate", "/topic/\xed\xa0\x80", `"/topic/\xed\xa0\x80"`},
		{"beyond Unicode", "/topic/\xf4\x90\x80\x80", `"/topic/\xf4\x90\x80\x80"`},
		{"raw C1 octet", "/topic/\x85", `"/topic/\x85"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.Parse(tt.destination, subscribe)
			checkFault(t, err, tt.shown, "it is not valid UTF-8")
		})
	}
}

func TestRefusedWildcards(t *testing.T) {
	r := newRouter(t, nil)
	unsupported := func(prefix string) string {
		return "wildcards are not supported on " + prefix + ", only on /topic/ and /topic-store/"
	}
	for _, tt := range []struct {
		destination string
		use         router.Use
		fault       string
	}{
		{"/topic/*", send, wildSend},
		{"/topic/>", send, wildSend},
		{"/topic/**", send, wildSend},
		{"/topic/#", send, wildSend},
		{"/topic/a/#/b", send, wildSend},
		{"/topic/a.*.b", send, wildSend},
		{"/topic-store/a/>", send, wildSend},
		{"/queue/*", send, wildSend},
		{"/command/*", send, wildSend},
		{"/reply/*", send, wildSend},
		{"/temp-queue/#", send, wildSend},
		{"/>", send, wildSend},

		{"/topic/>/a", subscribe, notLast},
		{"/topic/a/**/b", subscribe, notLast},
		{"/topic/#.a", subscribe, notLast},
		{"/topic/>/>", subscribe, notLast},
		{"/topic-store/a/#/*", subscribe, notLast},

		{"/queue/*", subscribe, unsupported("/queue/")},
		{"/queues/a/>", subscribe, unsupported("/queue/")},
		{"/queue/#", subscribe, unsupported("/queue/")},
		{"/queue/**/a", subscribe, unsupported("/queue/")},
		{"/command/*", subscribe, unsupported("/command/")},
		{"/queries/a/#", subscribe, unsupported("/query/")},
		{"/reply/*", subscribe, unsupported("/reply/")},
		{"/temp-queue/>", subscribe, unsupported("/temp-queue/")},
		{"/temp-topic/a/*", subscribe, unsupported("/temp-topic/")},
	} {
		_, err := r.Parse(tt.destination, tt.use)
		checkFault(t, err, quoted(tt.destination), tt.fault)
	}
}

func TestLengths(t *testing.T) {
	r := newRouter(t, nil)
	atLimit := "/topic/" + strings.Repeat("a", 512-len("/topic/"))
	if _, err := r.Parse(atLimit, send); err != nil {
		t.Errorf("512 octets: got %v, want no error", err)
	}
	_, err := r.Parse(atLimit+"a", send)
	checkFault(t, err, `"/topic/`+strings.Repeat("a", 57)+`"...`, "it has 513 octets, the limit is 512")

	// Octets count, not characters, and the shown part ends between characters.
	_, err = r.Parse("/topic/"+strings.Repeat("\u20ac", 169), send)
	checkFault(t, err, `"/topic/`+strings.Repeat("\u20ac", 19)+`"...`, "it has 514 octets, the limit is 512")

	// Octets that begin no character do not lead the cut astray.
	_, err = r.Parse(strings.Repeat("\xbf", 600), send)
	checkFault(t, err, `"`+strings.Repeat(`\xbf`, 60)+`"...`, "it has 600 octets, the limit is 512")

	tokens := "/topic/a" + strings.Repeat(".a", 31)
	route, err := r.Parse(tokens, send)
	if err != nil || strings.Count(route.Channel, ".") != 31 {
		t.Errorf("32 tokens: got %+v, %v, want a channel of 32 tokens", route, err)
	}
	_, err = r.Parse(tokens+"/b", send)
	checkFault(t, err, quoted(tokens+"/b"), "it has more than 32 tokens")
	_, err = r.Parse("/reply/a"+strings.Repeat("/a", 32), subscribe)
	checkFault(t, err, quoted("/reply/a"+strings.Repeat("/a", 32)), "it has more than 32 tokens")
	// The whole path of an unknown prefix counts.
	_, err = r.Parse("x"+strings.Repeat("/a", 32), send)
	checkFault(t, err, quoted("x"+strings.Repeat("/a", 32)), "it has more than 32 tokens")
}

func TestDefaultPattern(t *testing.T) {
	for _, tt := range []struct {
		setting, destination string
		want                 router.Route
	}{
		{"events", "/foo/bar", router.Route{Pattern: router.Events, Channel: "foo.bar", Subject: "foo.bar"}},
		{"queues", "/foo/bar", router.Route{Pattern: router.Queues, Channel: "foo.bar", Subject: "stomp.queue.foo.bar"}},
		{"queues", "foo", router.Route{Pattern: router.Queues, Channel: "foo", Subject: "stomp.queue.foo"}},
		{"queues", "/stomp/$a", router.Route{Pattern: router.Queues, Channel: "stomp.$a", Subject: "stomp.queue.stomp.$a"}},
		{"queues", "/topic/a", router.Route{Pattern: router.Events, Channel: "a", Subject: "a"}},
		{"store", "/foo/bar", router.Route{Pattern: router.Store, Channel: "foo.bar", Subject: "stomp.store.foo.bar"}},
		{"none", "/store/bar", router.Route{Pattern: router.Store, Channel: "bar", Subject: "stomp.store.bar"}},
	} {
		got, err := newRouter(t, defaultPattern(tt.setting)).Parse(tt.destination, send)
		if err != nil || got != tt.want {
			t.Errorf("%s: Parse(%q): got %+v, %v, want %+v", tt.setting, tt.destination, got, err, tt.want)
		}
	}
	for _, destination := range []string{"/foo/bar", "/TOPIC/a", "/topic_store/a", "/eventstore/a", "/topic.a"} {
		first := strings.Split(destination, "/")[1]
		_, err := newRouter(t, defaultPattern("none")).Parse(destination, subscribe)
		checkFault(t, err, quoted(destination), quoted(first)+" is no known prefix such as /topic/ or /queue/ (setting destinations.default_pattern)")
	}
	_, err := newRouter(t, defaultPattern("queues")).Parse("/foo/*", subscribe)
	checkFault(t, err, `"/foo/*"`, "wildcards are not supported on /queue/, only on /topic/ and /topic-store/")
	_, err = newRouter(t, defaultPattern("none")).Parse("/exchange/a", send)
	checkFault(t, err, `"/exchange/a"`, "/exchange/ is not supported, use /topic/<channel>")
}

func TestPatternString(t *testing.T) {
	for p, want := range map[router.Pattern]string{
		router.Events: "events", router.Store: "events_store", router.Queues: "queues",
		router.Commands: "commands", router.Queries: "queries", router.Reply: "reply",
		router.TempQueue: "temp_queue", router.TempTopic: "temp_topic",
		0: "unknown", router.TempTopic + 1: "unknown", 255: "unknown",
	} {
		if got := p.String(); got != want {
			t.Errorf("Pattern(%d): got %q, want %q", uint8(p), got, want)
		}
	}
}
