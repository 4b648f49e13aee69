package interop_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/natstomp/natstomp/test/testserver"
)

// samples are messages that one client can send and another one receives as they are.
func samples(from client, sent string, to client, received string) []outgoing {
	octets := make([]byte, 256)
	for i := range octets {
		octets[i] = byte(i)
	}
	headers := []pair{
		{"content-type", "application/x-sample;v=1"},
		{"x-colon", "a:b"},
		{"x-backslash", `c\d\n`},
		{"x-newline", "e\nf"},
		{"x-utf8", "Grüße 世界"},
		{"x-blanks", " both "},
		{"x-empty", ""},
		{"X-MixedCase", "kept"},
		{"correlation-id", "17"},
		{"reply-address", "/queue/answers"},
	}
	headers = slices.DeleteFunc(headers, func(h pair) bool {
		got, ok := arrives(from, sent, to, received, h)
		return !canCarry(from, sent, h) || !ok || got != h
	})
	out := []outgoing{
		{Body: octets, Headers: headers},
		{Body: []byte{}, Headers: headers},
		{Body: bytes.Repeat([]byte("1 MiB \x00 of it\n"), 1<<20/16), Headers: headers},
	}
	for n := range 100 {
		out = append(out, outgoing{Body: fmt.Append(nil, n), Headers: []pair{{"x-number", fmt.Sprint(n)}}})
	}
	return out
}

// wantSamples checks that the messages arrived whole and in order.
func wantSamples(t *testing.T, messages events, sent []outgoing, destination string) {
	t.Helper()
	if len(messages) != len(sent) {
		t.Fatalf("%d messages, want %d", len(messages), len(sent))
	}
	for i, m := range messages {
		if !bytes.Equal(m.Body, sent[i].Body) {
			t.Fatalf("message %d has %d octets %.40q, want %d %.40q",
				i, len(m.Body), m.Body, len(sent[i].Body), sent[i].Body)
		}
		if got := m.Headers["destination"]; got != destination {
			t.Errorf("message %d: destination is %q, want %q", i, got, destination)
		}
		for _, h := range sent[i].Headers {
			if got, found := m.Headers[h[0]]; !found || got != h[1] {
				t.Errorf("message %d: header %s is %q (there: %v), want %q", i, h[0], got, found, h[1])
			}
		}
	}
}

// One library publishes, the other one consumes.
func TestMixed(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	pairs := [][2]client{
		{stompPy{}, goStomp{}},
		{goStomp{}, stompPy{}},
		{goStomp{}, stompit},
		{stompit, chromium},
		{chromium, stompPy{}},
		{stompPy{}, stompJS},
		{stompJS, goStomp{}},
	}
	for _, p := range pairs {
		for _, pattern := range []string{"topic", "queue"} {
			for i, version := range versions[1:] {
				other := versions[1:][1-i] // Each speaks another version.
				name := fmt.Sprintf("%s %s to %s %s/%s", p[0], version, p[1], other, pattern)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					ch := strings.ReplaceAll(channel(t), "_", "-")
					destination := "/" + pattern + "/" + ch
					sent := samples(p[0], version, p[1], other)
					ack := map[string]string{"topic": "auto", "queue": "client-individual"}[pattern]
					consumer := p[1].start(t, srv, "consume", options{
						Version: other, Destination: destination, Ack: ack, Count: len(sent),
					})
					consumer.await(t, "ready", 1)
					p[0].start(t, srv, "publish", options{
						Version: version, Destination: destination, Messages: sent,
					}).finish(t)
					wantSamples(t, consumer.finish(t).of("message", "consumer"), sent, destination)
				})
			}
		}
	}
}

// All libraries consume one queue, and a further publisher fills it.
func TestMixedCompeting(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	const share = 50
	ch := channel(t)
	var running []*session
	for _, c := range clients {
		s := c.start(t, srv, "consume", options{
			Destination: "/queue/" + ch, Ack: "client-individual", Count: share,
			Headers: []pair{{"prefetch-count", "1"}},
		})
		s.await(t, "ready", 1)
		running = append(running, s)
	}
	var messages []outgoing
	for n := range len(clients) * share {
		messages = append(messages, outgoing{Body: fmt.Append(nil, n)})
	}
	goStomp{}.start(t, srv, "publish", options{Destination: "/queue/" + ch, Messages: messages}).finish(t)
	seen := newShares()
	for _, s := range running {
		got := s.finish(t).of("message", "consumer")
		wantSwift(t, got)
		for _, m := range got {
			seen.add(m.Body, m.Headers["redelivered"] != "true")
		}
	}
	seen.want(t, len(clients)*share)
}

// A consumer is gone, or stops answering, while it holds messages: another client has them.
func TestLostConsumer(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t, "--limits-heartbeat", "1s")
	const count = 20
	signal := func(sig syscall.Signal) func(s *session) error {
		return func(s *session) error { return s.process.Signal(sig) }
	}
	closePage := func(s *session) error { s.kill(); return nil }
	for _, loss := range []struct {
		name   string
		holder client
		lose   func(s *session) error
		silent bool // The connection stays.
	}{
		{"stomppy killed", stompPy{}, signal(syscall.SIGKILL), false},
		{"stomppy stopped", stompPy{}, signal(syscall.SIGSTOP), true},
		{"stompit killed", stompit, signal(syscall.SIGKILL), false},
		{"stompit stopped", stompit, signal(syscall.SIGSTOP), true},
		{"stompjs killed", stompJS, signal(syscall.SIGKILL), false},
		{"stompjs stopped", stompJS, signal(syscall.SIGSTOP), true},
		{"chromium page closed", chromium, closePage, false},
	} {
		t.Run(loss.name, func(t *testing.T) {
			t.Parallel()
			ch := channel(t)
			var messages []outgoing
			for n := range count {
				messages = append(messages, outgoing{Body: fmt.Append(nil, n)})
			}
			goStomp{}.start(t, srv, "publish", options{Destination: "/queue/" + ch, Messages: messages}).finish(t)
			holder := loss.holder.start(t, srv, "hold", options{Channel: ch, Count: count})
			holder.await(t, "holding", 1)
			heir := goStomp{}.start(t, srv, "consume", options{
				Destination: "/queue/" + ch, Ack: "client-individual", Count: count,
			})
			heir.await(t, "ready", 1)
			if got := heir.seen().of("message", ""); len(got) > 0 {
				t.Fatalf("messages that a live consumer holds:\n%s", got)
			}
			lost := heir.now()
			if err := loss.lose(holder); err != nil {
				t.Fatal(err)
			}
			got := heir.finish(t).of("message", "consumer")
			wantDeliveries(t, got, numbers(0, count), times(count, 2)...)
			// A silent consumer is given up when its heart-beats are missing for two seconds.
			from, until := 0.0, float64(promptly.Milliseconds())
			if loss.silent {
				from, until = 900, until+2000
			}
			for _, m := range got {
				if after := m.MS - lost; after < from || after > until {
					t.Errorf("%q came %.0f ms after the loss of its consumer, want %.0f to %.0f", m.Body, after, from, until)
				}
			}
		})
	}
}
