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
		want, ok := arrives(c, sender, c, receiver, h)
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
