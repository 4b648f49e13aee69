package router_test

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/router"
)

func quoted(s string) string { return strconv.Quote(s) }

func TestDefaultConfig(t *testing.T) {
	want := router.Config{DefaultPattern: "events", Subjects: router.Subjects{
		Store: "stomp.store.", Queue: "stomp.queue.", Command: "stomp.command.", Query: "stomp.query.",
	}}
	if got := router.DefaultConfig(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestConfigFaults changes one thing in the default configuration and wants the one fault that this is.
func TestConfigFaults(t *testing.T) {
	const (
		queue = "destinations.subjects.queue: "
		topic = "destinations.subjects.topic: "
		keep  = ` begins with "$" or "_", which NATS and natstomp keep for themselves`
	)
	setQueue := func(prefix string) func(*router.Config) {
		return func(c *router.Config) { c.Subjects.Queue = prefix }
	}
	setTopic := func(prefix string) func(*router.Config) {
		return func(c *router.Config) { c.Subjects.Topic = prefix }
	}
	long := strings.Repeat("a", 512)
	for _, tt := range []struct {
		name string
		edit func(*router.Config)
		want string
	}{
		{"default pattern unknown", defaultPattern("topic"), `destinations.default_pattern: "topic" is none of events, queues, store, none`},
		{"default pattern empty", defaultPattern(""), `destinations.default_pattern: "" is none of events, queues, store, none`},
		{"empty", setQueue(""), queue + "must not be empty"},
		{"no dot at the end", setQueue("q"), queue + `"q" does not end with a dot`},
		{"only a dot", setQueue("."), queue + `".": it has an empty token (two dots together, or one at an edge)`},
		{"dot at the head", setQueue(".q."), queue + `".q.": it has an empty token (two dots together, or one at an edge)`},
		{"two dots", setQueue("a..q."), queue + `"a..q.": it has an empty token (two dots together, or one at an edge)`},
		{"star", setQueue("a.*."), queue + `"a.*." holds "*", ">" or "/"`},
		{"tail", setTopic("a>."), topic + `"a>." holds "*", ">" or "/"`},
		{"slash", setTopic("a/b."), topic + `"a/b." holds "*", ">" or "/"`},
		{"space", setTopic("a b."), topic + `"a b.": it holds a space`},
		{"line feed", setTopic("a\n."), topic + `"a\n.": it holds the control character U+000A`},
		{"UTF-8", setTopic("\xff."), topic + `"\xff.": it is not valid UTF-8`},
		{"JetStream", setQueue("$JS."), queue + `"$JS."` + keep},
		{"internal", setTopic("_natstomp."), topic + `"_natstomp."` + keep},
		{"too long", setQueue(long + "."), queue + "has 513 octets, the limit is 512"},
		{"same", setQueue("stomp.store."), queue + `"stomp.store." overlaps "stomp.store." of destinations.subjects.store`},
		{"inside another", setQueue("stomp.store.q."), queue + `"stomp.store.q." overlaps "stomp.store." of destinations.subjects.store`},
		{"around another", func(c *router.Config) {
			c.Subjects = router.Subjects{Store: "s.", Queue: "q.c.", Command: "c.", Query: "q."}
		}, `destinations.subjects.query: "q." overlaps "q.c." of destinations.subjects.queue`},
		{"topic around a queue", func(c *router.Config) {
			c.Subjects = router.Subjects{Topic: "t.", Store: "s.", Queue: "t.q.", Command: "c.", Query: "y."}
		}, queue + `"t.q." overlaps "t." of destinations.subjects.topic`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := router.DefaultConfig()
			tt.edit(&c)
			r, err := router.New(c)
			if r != nil || err == nil || err.Error() != tt.want {
				t.Errorf("got %v, %v, want no router and the error %s", r, err, tt.want)
			}
		})
	}
}

func TestConfigAllFaultsAtOnce(t *testing.T) {
	_, err := router.New(router.Config{DefaultPattern: "x", Subjects: router.Subjects{Topic: "t", Store: "s.", Queue: "s."}})
	if err == nil {
		t.Fatal("got no error, want five faults")
	}
	var got []string
	for line := range strings.Lines(err.Error()) {
		key, _, _ := strings.Cut(line, ":")
		got = append(got, strings.TrimPrefix(key, "destinations."))
	}
	want := "default_pattern subjects.topic subjects.queue subjects.command subjects.query"
	if strings.Join(got, " ") != want {
		t.Errorf("got faults at %v, want %v", got, want)
	}
}

// TestReservedFollowsSubjects moves the prefixes: what is reserved moves with them.
func TestReservedFollowsSubjects(t *testing.T) {
	moved := newRouter(t, func(c *router.Config) {
		c.Subjects = router.Subjects{Store: "keep.", Queue: "jobs.q.", Command: "jobs.c.", Query: "ask."}
	})
	for destination, fault := range map[string]string{
		"/topic/stomp/a": "",
		"/topic/keep/a":  `topic channels with the first token "keep" ` + reservedText,
		"/topic/jobs":    `topic channels with the first token "jobs" ` + reservedText,
		"/topic/ask.a":   `topic channels with the first token "ask" ` + reservedText,
		"/topic/$a":      `topic channels beginning with "$" ` + reservedText,
	} {
		_, err := moved.Parse(destination, send)
		if fault == "" {
			if err != nil {
				t.Errorf("%s: got %v, want no error", destination, err)
			}
			continue
		}
		checkFault(t, err, quoted(destination), fault)
	}

	// A topic prefix keeps topics clear of all reserved space, even below the same root.
	for _, prefix := range []string{"app.", "stomp.topic."} {
		r := newRouter(t, func(c *router.Config) { c.Subjects.Topic = prefix })
		for channel, wild := range map[string]bool{"stomp.queue.a": false, "$JS.API": false, "_INBOX.a": false, ">": true, "*.a": true} {
			got, err := r.Parse("/topic/"+channel, subscribe)
			want := router.Route{Pattern: router.Events, Channel: channel, Subject: prefix + channel, Wildcard: wild}
			if err != nil || got != want {
				t.Errorf("prefix %s: got %+v, %v, want %+v", prefix, got, err, want)
			}
			if r.Reserved(prefix + channel) {
				t.Errorf("prefix %s: Reserved(%q): got true, want false", prefix, prefix+channel)
			}
		}
		for _, subject := range []string{"stomp.queue.a", "$JS.API", "_INBOX.a"} {
			if !r.Reserved(subject) {
				t.Errorf("prefix %s: Reserved(%q): got false, want true", prefix, subject)
			}
		}
	}
}

// TestLongestSubject holds the longest prefix against the longest channel.
func TestLongestSubject(t *testing.T) {
	r := newRouter(t, func(c *router.Config) {
		c.DefaultPattern = "queues"
		c.Subjects.Queue = strings.Repeat("p", 511) + "."
	})
	got, err := r.Parse(strings.Repeat("c", 512), send)
	if err != nil || len(got.Subject) != 1024 {
		t.Errorf("got %d octets, %v, want a subject of 1024", len(got.Subject), err)
	}
}
