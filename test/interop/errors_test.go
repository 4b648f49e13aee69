package interop_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/testserver"
)

// faults and a word that the text of the ERROR must have.
var faults = []struct {
	fault

	word string
	only string // The client that can do it, if not both.
}{
	{fault{"reserved topic", "send", "/topic/stomp/x"}, "/topic/stomp/x", ""},
	{fault{"wildcard in SEND", "send", "/topic/a/*"}, "/topic/a/*", ""},
	{fault{"no channel", "send", "/queue/"}, "/queue/", ""},
	{fault{"foreign prefix", "send", "/exchange/amq.topic/a"}, "/exchange/", ""},
	{fault{"wildcard on a queue", "subscribe", "/queue/a/>"}, "/queue/a/>", ""},
	{fault{"empty token", "subscribe", "/topic/a//b"}, "/topic/a//b", ""},
	{fault{"composite", "subscribe", "/queue/a,/queue/b"}, "/queue/a,/queue/b", ""},
	{fault{"acked twice", "ack twice", ""}, "ACK", ""},
	{fault{"transaction open", "begin twice", ""}, "tx-1", "stomppy"},
	{fault{"no common version", "connect", "9.9"}, "version", "stomppy"},
}

func TestErrors(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, versions, func(t *testing.T, c client, version string) {
		var provoked []fault
		for _, f := range faults {
			if f.only == "" || f.only == c.String() {
				provoked = append(provoked, f.fault)
			}
		}
		ch := channel(t)
		seen := c.start(t, srv, "errors", options{Version: version, Channel: ch, Faults: provoked}).finish(t)
		for _, f := range faults {
			if !slices.Contains(provoked, f.fault) {
				continue
			}
			e := seen.one(t, "error", f.Name)
			text := e.Headers["message"]
			if !strings.Contains(text, f.word) {
				t.Errorf("%s: the text %q does not name %q", f.Name, text, f.word)
			}
			if strings.TrimRight(string(e.Body), "\n") != text {
				t.Errorf("%s: body %q, want the text of the header %q", f.Name, e.Body, text)
			}
			if got, want := e.Headers["content-type"], "text/plain;charset=utf-8"; got != want {
				t.Errorf("%s: content-type is %q, want %q", f.Name, got, want)
			}
			seen.one(t, "disconnected", f.Name)
			wantReceiptID(t, seen, f.Name, e)
			if f.Verb == "connect" {
				ours := strings.Split(e.Headers["version"], ",")
				slices.Sort(ours)
				if !slices.Equal(ours, versions) {
					t.Errorf("%s: version lists %q, want %q", f.Name, ours, versions)
				}
				if refused := seen.one(t, "refused", f.Name).Text; refused != "ConnectFailedException" {
					t.Errorf("%s: connecting raised %s", f.Name, refused)
				}
			}
		}
	})
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
