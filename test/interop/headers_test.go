package interop_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/testserver"
)

// oddHeaders must survive from STOMP over NATS to STOMP as they are.
var oddHeaders = []pair{
	{"x-colon", "a:b:c:"},
	{"x-backslash", `c\d`},
	{"x-escapes", `\n\c\\`},
	{"x-newline", "e\nf"},
	{"x-return", "g\rh"},
	{"x-utf8", "Grüße, 世界 ☃"},
	{"x-blanks", "  both sides  "},
	{"x-tab", "\ttab\t"},
	{"x-empty", ""},
	{"x-form", "a=b&c=%41+d;e, f=\"g\""},
	{"x-long", strings.Repeat("long ", 800) + "."},
	{"X-MixedCase", "kept"},
	{"x-case", "lower"},
	{"X-Case", "upper"},
	{"x name", "a blank in the name"},
	{"x-näme", "not ASCII"},
	{"x:colon", "a colon in the name"},
	{"(x)", "no HTTP token"},
	{"priority", "9"},
	{"persistent", "true"},
	{"reply-address", "/queue/answers"},
	{"Stomp-Headers", "x-forged=1"},
	// Nothing that NATS would act on.
	{"Nats-Msg-Id", "the same on both"},
	{"nats-expected-last-sequence", "999"},
	{"Nats-TTL", "1s"},
	{"Nats-Rollup", "all"},
}

// ownedHeaders belong to the broker: none may come from a client.
var ownedHeaders = []pair{
	{"message-id", "forged"},
	{"subscription", "forged"},
	{"ack", "forged"},
	{"redelivered", "true"},
	{"session", "forged"},
	{"server", "forged"},
	{"login", "forged"},
	{"passcode", "forged"},
	{"x-delivery-count", "99"},
	{"x-seq", "forged"},
	{"x-dead-letter-reason", "forged"},
	{"x-error", "forged"},
	{"x-executed", "true"},
	{"x-deadline", "1"},
}

// canCarry reports whether a client's publisher of that version can write the header at all.
func canCarry(c client, version string, h pair) bool {
	if c.String() == "gostomp" {
		// It escapes as on 1.2, but \r is no escape on 1.1.
		return version != "1.1" || !strings.Contains(h[0]+h[1], "\r")
	}
	// stomp.py never escapes names, and on 1.0 nothing.
	return !strings.Contains(h[0], ":") && (version != "1.0" || !strings.Contains(h[1], "\n"))
}

var (
	escape   = strings.NewReplacer(`\`, `\\`, "\r", `\r`, "\n", `\n`, ":", `\c`)
	unescape = strings.NewReplacer(`\\`, `\`, `\r`, "\r", `\n`, "\n", `\c`, ":")
)

// written is the header as the server has to read it.
func written(c client, version string, h pair) pair {
	if c.String() == "gostomp" && version == "1.0" {
		// It escapes on 1.0 too, where a backslash is a backslash.
		return pair{escape.Replace(h[0]), escape.Replace(h[1])}
	}
	return h
}

// delivered is the header as a client of that version reports it; false: that version cannot represent it.
func delivered(version string, h pair) (pair, bool) {
	switch version {
	case "1.0":
		if strings.ContainsAny(h[0]+h[1], "\r\n") || strings.Contains(h[0], ":") {
			return pair{}, false
		}
		// Both clients unescape on 1.0 too.
		return pair{unescape.Replace(h[0]), unescape.Replace(h[1])}, true
	case "1.1":
		return h, !strings.Contains(h[0]+h[1], "\r")
	default:
		return h, true
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, versions, func(t *testing.T, c client, version string) {
		var sent []pair
		for _, h := range slices.Concat(oddHeaders, ownedHeaders) {
			if canCarry(c, version, h) {
				sent = append(sent, h)
			}
		}
		// Of a repeated header the first counts.
		sent = append(sent, pair{"x-repeated", "first"}, pair{"x-repeated", "second"})
		seen := c.start(t, srv, "headers", options{Version: version, Channel: channel(t), Headers: sent}).finish(t)

		for _, receiver := range versions {
			wantHeaders(t, c, version, receiver, seen.one(t, "message", "sub-"+receiver).Headers, sent)
		}
		consumed := seen.of("message", "consumer")
		// The same Nats-Msg-Id twice is nothing to JetStream.
		wantDeliveries(t, consumed, []string{"odd", "again"}, 1, 1)
		for _, m := range consumed {
			wantHeaders(t, c, version, "1.2", m.Headers, sent)
		}
	})
}

// wantHeaders checks that exactly the headers sent and those of the broker arrived.
func wantHeaders(t *testing.T, c client, sender, receiver string, got map[string]string, sent []pair) {
	t.Helper()
	rest := maps.Clone(got)
	for _, h := range slices.Concat(sent, []pair{{"x-repeated", "first"}}) {
		if slices.Contains(ownedHeaders, h) || h[1] == "second" {
			continue
		}
		want, ok := delivered(receiver, written(c, sender, h))
		if !ok {
			continue // It must be among what did not arrive, see below.
		}
		if value, found := got[want[0]]; !found || value != want[1] {
			t.Errorf("%s to %s: header %.40q is %.80q (there: %v), want %.80q", sender, receiver, want[0], value, found, want[1])
		}
		delete(rest, want[0])
	}
	for _, h := range ownedHeaders {
		if value, found := got[h[0]]; found && value == h[1] {
			t.Errorf("%s to %s: the client's own %s:%s came through", sender, receiver, h[0], h[1])
		}
	}
	broker := []string{
		"destination", "message-id", "subscription", "content-length", "x-seq", "x-delivery-count", "timestamp",
	}
	for name, value := range rest {
		if !slices.Contains(broker, name) {
			t.Errorf("%s to %s: a header %q:%.80q that nobody sent", sender, receiver, name, value)
		}
	}
}
