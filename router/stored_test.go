package router_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/router"
)

var likes = map[string]*regexp.Regexp{}

// like returns what a pattern matches, as NATS defines it.
func like(pattern string) *regexp.Regexp {
	if likes[pattern] == nil {
		text := regexp.QuoteMeta(pattern)
		text = strings.ReplaceAll(text, `\*`, `[^.]+`)
		text = strings.ReplaceAll(text, `>`, `.+`)
		likes[pattern] = regexp.MustCompile("^" + text + "$")
	}
	return likes[pattern]
}

// channelsOf returns every channel of one to most tokens of the words.
func channelsOf(words []string, most int) []string {
	list := slices.Clone(words)
	for i, shorter := 1, words; i < most; i++ {
		var longer []string
		for _, c := range shorter {
			for _, w := range words {
				longer = append(longer, c+"."+w)
			}
		}
		list = append(list, longer...)
		shorter = longer
	}
	return list
}

// TestStoredTopics holds every pair of small patterns against every subscription and every channel: a topic is stored
// if a pattern matches it, and a subscription gets all of that and nothing else from the stream.
func TestStoredTopics(t *testing.T) {
	channels := channelsOf([]string{"a", "b"}, 3)
	var patterns []string
	for _, p := range channelsOf([]string{"a", "b", "*", ">"}, 3) {
		if i := strings.IndexByte(p, '>'); i < 0 || i == len(p)-1 {
			patterns = append(patterns, p)
		}
	}
	kinds := map[string]int{}
	for i, first := range patterns {
		for _, second := range patterns[i:] {
			c := router.DefaultConfig()
			c.StoredTopics = []string{"/topic/" + first, "/events/" + second}
			r, err := router.New(c)
			if err != nil {
				t.Fatal(err)
			}
			stored := map[string]bool{}
			a, b := like(first), like(second)
			for _, channel := range channels {
				stored[channel] = a.MatchString(channel) || b.MatchString(channel)
			}
			for _, p := range patterns {
				kinds[checkStored(t, r, p, stored, fmt.Sprintf("%s of %s and %s", p, first, second))]++
			}
		}
	}
	for _, kind := range []string{"stored", "mixed", "plain"} {
		if kinds[kind] < 1_000 {
			t.Errorf("%s: got %d, want a test that meets it", kind, kinds[kind])
		}
	}
}

func checkStored(t *testing.T, r *router.Router, pattern string, stored map[string]bool, what string) (kind string) {
	t.Helper()
	route, err := r.Parse("/topic/"+pattern, router.Subscribe)
	if err != nil {
		t.Fatal(err)
	}
	part, filters := route, []string{route.Subject}
	switch {
	case route.Topic:
		kind = "stored"
		if route.Pattern != router.Store || route.Wide || route.Mixed || route.Subject != "stomp.store."+pattern {
			t.Fatalf("%s: got %+v, want a route of the stream", what, route)
		}
	case route.Mixed:
		kind = "mixed"
		part, filters = r.StoredPart(route)
		if part.Pattern != router.Store || !part.Topic || part.Channel != pattern {
			t.Fatalf("%s: got the part %+v, want one of the stream", what, part)
		}
	default:
		kind, filters = "plain", nil
	}
	sub := like(pattern)
	for channel, isStored := range stored {
		subject := "stomp.store." + channel
		n := 0
		for _, f := range filters {
			if like(f).MatchString(subject) {
				n++
			}
		}
		shown, ok := "", false
		if n > 0 {
			shown, ok = r.Shown(part, subject)
		}
		switch want := sub.MatchString(channel) && isStored; {
		case n > 1:
			t.Fatalf("%s: %s is in %d of the filters %q, want one at most", what, channel, n, filters)
		case ok != want:
			t.Fatalf("%s: %s is shown from the stream: got %t, want %t", what, channel, ok, want)
		case ok && shown != "/topic/"+strings.ReplaceAll(channel, ".", "/"):
			t.Fatalf("%s: %s is shown as %s", what, channel, shown)
		case kind == "stored" && sub.MatchString(channel) && !isStored:
			t.Fatalf("%s: %s is not stored, want a subscription to the plain topic too", what, channel)
		}
		if sent, err := r.Parse("/topic/"+channel, router.Send); err != nil || sent.Topic != isStored {
			t.Fatalf("%s: SEND to %s: got %+v, %v, want stored %t", what, channel, sent, err, isStored)
		}
	}
	return kind
}

func TestStoredTopicIsOneChannelWithTheStore(t *testing.T) {
	c := router.DefaultConfig()
	c.StoredTopics = []string{"/topic/news/>"}
	r, err := router.New(c)
	if err != nil {
		t.Fatal(err)
	}
	topic, _ := r.Parse("/topic/news/eu", router.Send)
	store, _ := r.Parse("/topic-store/news/eu", router.Send)
	if topic.Pattern != store.Pattern || topic.Channel != store.Channel || topic.Subject != store.Subject || !topic.Topic || store.Topic {
		t.Errorf("got %+v and %+v, want one channel, told apart by Topic only", topic, store)
	}
	plain, _ := r.Parse("/topic/other", router.Send)
	if plain.Pattern != router.Events || plain.Topic || plain.Subject != "other" {
		t.Errorf("got %+v, want a plain topic", plain)
	}
	wide, _ := r.Parse("/topic/>", router.Subscribe)
	if part, filters := r.StoredPart(wide); !wide.Mixed || !wide.Wide || part.Wide || !slices.Equal(filters, []string{"stomp.store.news.>"}) {
		t.Errorf("got %+v with %+v of %q, want both sources", wide, part, filters)
	}
	if _, err := r.Parse("/topic/stomp/x", router.Subscribe); err == nil {
		t.Error("a reserved topic is accepted")
	}
}
