package interop_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/testserver"
)

// A refusal is a fault and what comes of it.
type refusal struct {
	fault

	word   string   // That the text of the ERROR must have.
	cannot []string // The clients that cannot do it.
}

var faults = []refusal{
	{fault{"reserved topic", "send", "/topic/stomp/x"}, "/topic/stomp/x", nil},
	{fault{"wildcard in SEND", "send", "/topic/a/*"}, "/topic/a/*", nil},
	{fault{"no channel", "send", "/queue/"}, "/queue/", nil},
	{fault{"foreign prefix", "send", "/exchange/amq.topic/a"}, "/exchange/", nil},
	{fault{"wildcard on a queue", "subscribe", "/queue/a/>"}, "/queue/a/>", nil},
	{fault{"empty token", "subscribe", "/topic/a//b"}, "/topic/a//b", nil},
	{fault{"composite", "subscribe", "/queue/a,/queue/b"}, "/queue/a,/queue/b", nil},
	{fault{"acked twice", "ack twice", ""}, "ACK", nil},
	{fault{"transaction open", "begin twice", ""}, "tx-1", []string{"gostomp"}},
	{fault{"no common version", "connect", "9.9"}, "version", []string{"gostomp", "stompjs2", "webstomp"}},
}

// stompit shows no body of an ERROR. That its process lives to report the next fault is a test of its own: a content-type
// of exactly text/plain would have ended it.
func TestErrors(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, versions, func(t *testing.T, c client, version string) { testErrors(t, srv, c, version) })
}

func testErrors(t *testing.T, srv *testserver.Server, c client, version string) {
	provoked := slices.DeleteFunc(slices.Clone(faults), func(f refusal) bool {
		return slices.Contains(f.cannot, c.String())
	})
	o := options{Version: version, Channel: channel(t)}
	for _, f := range provoked {
		o.Faults = append(o.Faults, f.fault)
	}
	seen := c.start(t, srv, "errors", o).finish(t)
	for _, f := range provoked {
		e := seen.one(t, "error", f.Name)
		text := e.Headers["message"]
		if !strings.Contains(text, f.word) {
			t.Errorf("%s: the text %q does not name %q", f.Name, text, f.word)
		}
		wantErrorBody(t, c, version, f.fault, e)
		if got, want := e.Headers["content-type"], "text/plain;charset=utf-8"; got != want {
			t.Errorf("%s: content-type is %q, want %q", f.Name, got, want)
		}
		if end := seen.one(t, "disconnected", f.Name); end.MS < e.MS {
			t.Errorf("%s: the client saw the end before the ERROR", f.Name)
		}
		wantReceiptID(t, seen, f.Name, e)
		if f.Verb == "connect" {
			ours := strings.Split(e.Headers["version"], ",")
			slices.Sort(ours)
			if !slices.Equal(ours, versions) {
				t.Errorf("%s: version lists %q, want %q", f.Name, ours, versions)
			}
			seen.one(t, "refused", f.Name)
			if connected := seen.of("connected", f.Name); len(connected) > 0 {
				t.Errorf("%s: connected\n%s", f.Name, connected)
			}
		}
	}
}

// wantErrorBody checks that the body of an ERROR has the text of its header, as the client reports that.
func wantErrorBody(t *testing.T, c client, version string, f fault, e event) {
	t.Helper()
	if c == client(stompit) {
		return
	}
	if f.Verb == "connect" {
		version = "1.0" // Nothing is escaped before CONNECTED.
	}
	header := pair{"message", strings.TrimRight(string(e.Body), "\n")}
	if got, want := e.Headers["message"], quirks[c.String()].reports(version, header)[1]; got != want {
		t.Errorf("%s: the header message is %q, the body %q", f.Name, got, e.Body)
	}
}

// wantReceiptID checks that an ERROR answers the frame that asked for a receipt.
func wantReceiptID(t *testing.T, seen events, who string, e event) {
	t.Helper()
	for _, asked := range seen.of("asked", who) {
		if strings.HasPrefix(asked.Text, "bad-") && e.Headers["receipt-id"] != asked.Text {
			t.Errorf("%s: receipt-id is %q, want %q", who, e.Headers["receipt-id"], asked.Text)
		}
	}
	for _, receipt := range seen.of("receipt", who) {
		if strings.HasPrefix(receipt.Headers["receipt-id"], "bad-") {
			t.Errorf("%s: a RECEIPT for the refused frame", who)
		}
	}
}
