package router_test

import (
	"strings"
	"testing"

	"github.com/natstomp/natstomp/router"
)

func TestReserved(t *testing.T) {
	r := newRouter(t, nil)
	for subject, want := range map[string]bool{
		"stomp.queue.a": true, "stomp.anything": true, "stomp": true,
		"$JS.API.INFO": true, "$SYS.a": true, "$": true, "$x": true,
		"_INBOX.a.b": true, "_natstomp.once": true, "_R_.x": true, "_": true,
		"a": false, "a.stomp.$b._c": false, "stomper.a": false, "Stomp.a": false, "sto.mp": false, "": false, ".stomp": false,
	} {
		if got := r.Reserved(subject); got != want {
			t.Errorf("Reserved(%q): got %v, want %v", subject, got, want)
		}
	}
}

func TestDestination(t *testing.T) {
	r := newRouter(t, nil)
	long := strings.Repeat("a", 512)
	for _, tt := range []struct {
		name    string
		pattern router.Pattern
		subject string
		want    string // Empty: there is none.
	}{
		{"topic", router.Events, "a.b", "/topic/a/b"},
		{"topic of one token", router.Events, "a", "/topic/a"},
		{"store", router.Store, "stomp.store.a.b", "/topic-store/a/b"},
		{"queue", router.Queues, "stomp.queue.a.b", "/queue/a/b"},
		{"command", router.Commands, "stomp.command.a", "/command/a"},
		{"query", router.Queries, "stomp.query.a", "/query/a"},
		{"beyond ASCII", router.Events, "\u00e9.\U0001F600", "/topic/\u00e9/\U0001F600"},
		{"a word that is a prefix", router.Events, "topic.a", "/topic/topic/a"},
		{"longest", router.Store, "stomp.store." + long, "/topic-store/" + long},

		{"native comma", router.Events, "a,b.c", "/topic/a,b/c"},
		{"native question mark", router.Events, "a?", "/topic/a?"},
		{"native hash", router.Events, "a.#", "/topic/a/#"},
		{"native star in a token", router.Events, "a*.b", "/topic/a*/b"},
		{"native with many tokens", router.Events, "a" + strings.Repeat(".a", 40), "/topic/a" + strings.Repeat("/a", 40)},

		{"foreign prefix", router.Queues, "stomp.store.a", ""},
		{"prefix only", router.Queues, "stomp.queue.", ""},
		{"prefix without its dot", router.Queues, "stomp.queue", ""},
		{"empty", router.Events, "", ""},
		{"slash", router.Events, "a/b.c", ""},
		{"NUL", router.Events, "a\x00", ""},
		{"control", router.Events, "a\x01b", ""},
		{"DEL", router.Events, "a.\x7f", ""},
		{"C1", router.Events, "a.\u0085", ""},
		{"space", router.Events, "a b", ""},
		{"UTF-8", router.Events, "a\xff", ""},
		{"replacement character", router.Events, "a\ufffd", ""},
		{"too long", router.Store, "stomp.store." + long + "a", ""},
		{"empty token inside", router.Events, "a..b", ""},
		{"empty token first", router.Events, ".a", ""},
		{"empty token last", router.Events, "a.", ""},
		{"local pattern", router.Reply, "a", ""},
		{"other local patterns", router.TempTopic, "a", ""},
		{"no pattern", 0, "a", ""},
		{"no such pattern", 200, "a", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := r.Destination(tt.pattern, tt.subject)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("Destination(%v, %q): got %q, %v, want %q", tt.pattern, tt.subject, got, ok, tt.want)
			}
		})
	}
}

func TestDestinationWithTopicPrefix(t *testing.T) {
	r := newRouter(t, func(c *router.Config) { c.Subjects.Topic = "app.t." })
	if got, ok := r.Destination(router.Events, "app.t.a.b"); got != "/topic/a/b" || !ok {
		t.Errorf(`got %q, %v, want "/topic/a/b"`, got, ok)
	}
	if got, ok := r.Destination(router.Events, "a.b"); ok {
		t.Errorf("subject outside the prefix: got %q, want none", got)
	}
}
