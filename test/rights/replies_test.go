package rights_test

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/rig"

	"github.com/nats-io/nats.go"
)

// TestD1Reserved reaches for what NATS and natstomp keep for themselves, with every right there is.
func TestD1Reserved(t *testing.T) {
	t.Parallel()
	s := start(t, "p, *, *, >, *, allow\n", nil)
	nc := s.native()
	sub := s.listen(nc, "$KV.>")
	for i, name := range []string{"$KV/natstomp_policy/policy.csv", "$JS/API/STREAM/DELETE/STORE", "$JS.API.>", "$JS/ACK/x", "$SYS/REQ", "_INBOX/x", "_natstomp/reply/x/y", "stomp/queue/a", "$auth/refresh/x", "_R_/x"} {
		for _, prefix := range []string{"/topic/", "/events/", "topic/", "/", ""} {
			for _, command := range []string{"SEND", "SUBSCRIBE"} {
				c := s.over(transports[i%len(transports)], "anna")
				c.Do(command, "id", "1", "destination", prefix+name, "receipt", "asked")
				if refusal, _ := outcome(t, c); refusal == "" {
					t.Errorf("%s %s%s was accepted", command, prefix, name)
				}
			}
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if m, err := sub.NextMsg(1); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("the policy's bucket got %v, %v", m, err)
	}
	// Nor does a wildcard show them.
	c := s.as("anna")
	for i, from := range []string{"/topic/>", "/topic/*/*", "/topic/*/*/*", "/topic/*/API/>"} {
		c.Ask("SUBSCRIBE", "id", fmt.Sprint(i), "destination", from)
	}
	for _, subject := range []string{"_INBOX.x", "$KV.x.y", "_natstomp.x", "stomp.queue.x", "$JS.API.x", "end"} {
		if err := nc.Publish(subject, []byte(subject)); err != nil {
			t.Fatal(err)
		}
	}
	c.Message("end")
}

// TestD4OthersReplies listens to and answers on the reply names of somebody else, and names as reply-to what is not the
// client's own.
func TestD4OthersReplies(t *testing.T) {
	t.Parallel()
	s := start(t, "p, anna, *, >, *, allow\np, mallory, *, open.>, *, allow\np, mallory, *, svc.*, write, allow\n", nil)
	for _, transport := range transports {
		svc := "/query/svc/" + transport
		anna := s.over(transport, "anna")
		anna.Ask("SUBSCRIBE", "id", "r", "destination", "/reply/x")
		anna.Ask("SUBSCRIBE", "id", "t", "destination", "/temp-queue/x")
		anna.Ask("SUBSCRIBE", "id", "svc", "destination", svc)

		// The same names are others on another connection.
		mallory := s.over(transport, "mallory")
		mallory.Ask("SUBSCRIBE", "id", "r", "destination", "/reply/x")
		mallory.Ask("SUBSCRIBE", "id", "t", "destination", "/temp-queue/x")
		mallory.Ask("SEND", "destination", svc, "reply-to", "/reply/x", "body", "asked")
		request := anna.Message("asked")
		anna.Ask("SEND", "destination", request.Get("reply-to"), "body", "answered")
		mallory.Message("answered")
		anna.Alive()
		mallory.Do("SEND", "destination", "/temp-queue/x", "body", "own")
		mallory.Message("own")
		anna.Alive()

		for _, to := range []string{
			"/reply/x", "/reply/r", request.Get("reply-to"), "/reply/_INBOX.x", "/reply/stomp.queue.secret", "/temp-queue/y", "/temp-topic/x",
			"/reply/" + strings.Repeat("a", 22) + ".n" + strings.Repeat("A", 60), "/reply/" + strings.Repeat("A", 22) + ".secret",
		} {
			c := s.over(transport, "mallory")
			c.Do("SEND", "destination", to, "body", "forged", "receipt", "asked")
			// An address in the form of those of another node is sent there, where nobody has it.
			if refusal, _ := outcome(t, c); refusal == "" && !strings.HasPrefix(to, "/reply/aaaa") {
				t.Errorf("%s: a SEND to %s was accepted", transport, to)
			}
		}
		for _, to := range []string{"/reply/y", "/topic/secret", "/queue/secret", "_INBOX.x", "stomp.queue.secret", "secret", "", "/reply/", "//reply/x", request.Get("reply-to")} {
			c := s.over(transport, "mallory")
			c.Do("SEND", "destination", svc, "reply-to", to, "receipt", "asked")
			if refusal, _ := outcome(t, c); refusal == "" {
				t.Errorf("%s: a request with reply-to %q was accepted", transport, to)
			}
		}
		anna.Alive()
	}
}

// TestD4ReplyToOfAMessage names destinations in the reply-to of an ordinary SEND: it is data for whoever reads it, and
// lends nobody's rights.
func TestD4ReplyToOfAMessage(t *testing.T) {
	t.Parallel()
	s := start(t, "p, anna, *, >, *, allow\np, mallory, *, open.>, *, allow\n", nil)
	nc := s.native()
	responder := s.listen(nc, "open.ask")
	secret := s.listen(nc, "stomp.>")
	anna := s.as("anna")
	anna.Ask("SUBSCRIBE", "id", "1", "destination", "/topic/open/ask")
	for _, to := range []string{"/queue/secret", "/topic/secret", "stomp.queue.secret", "_INBOX.x", "$JS.API.INFO", "/reply/" + strings.Repeat("A", 22) + ".secret"} {
		c := s.as("mallory")
		c.Do("SEND", "destination", "/topic/open/ask", "reply-to", to, "receipt", "asked", "body", to)
		if refusal, _ := outcome(t, c); refusal != "" {
			continue
		}
		if f := anna.Message(to); f.Get("reply-to") != to {
			t.Errorf("got reply-to %q, want %q", f.Get("reply-to"), to)
		}
		m, err := responder.NextMsg(rig.Patience)
		if err != nil || m.Reply != "" {
			t.Errorf("reply-to %q became the NATS reply subject %q, %v", to, m.Reply, err)
		}
	}
	if m, err := secret.NextMsg(1); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("got %v, %v", m, err)
	}
}

// TestD5GuessedInboxes publishes natively to what an inbox of a request could be called, and from STOMP to what the
// address of a private destination could be: nobody gets any of it.
func TestD5GuessedInboxes(t *testing.T) {
	t.Parallel()
	const guesses = 1_000_000
	s := start(t, "p, *, *, >, *, allow\n", nil)
	nc := s.native()
	seen := s.listen(nc, "stomp.query.svc")
	shown := s.listen(nc, "shown")
	anna := s.as("anna")
	anna.Ask("SUBSCRIBE", "id", "r", "destination", "/reply/r")
	anna.Ask("SUBSCRIBE", "id", "t", "destination", "/temp-queue/t")
	anna.Ask("SEND", "destination", "/query/svc", "reply-to", "/reply/r")
	anna.Ask("SEND", "destination", "/topic/shown", "reply-to", "/temp-queue/t")
	var real [2]string
	for i, sub := range []*nats.Subscription{seen, shown} {
		m, err := sub.NextMsg(rig.Patience)
		if err != nil {
			t.Fatal(err)
		}
		real[i] = m.Reply
	}
	for i := range guesses / len(real) {
		for _, subject := range real {
			if err := nc.Publish(guess(subject, i), []byte("guessed")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	anna.Alive()
	// The subjects that they do have work.
	for _, subject := range real {
		if err := nc.Publish(subject, []byte("known")); err != nil {
			t.Fatal(err)
		}
		anna.Message("known")
	}
	// An inbox is good for one answer.
	if err := errors.Join(nc.Publish(real[0], []byte("second")), nc.Flush()); err != nil {
		t.Fatal(err)
	}
	anna.Alive()
}

// guess is a subject like one that exists, with another random part: what a client sees of others tells it nothing.
func guess(subject string, i int) string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	random := base64.RawURLEncoding.EncodeToString(b[:])
	tokens := strings.Split(subject, ".")
	last := len(tokens) - 1
	switch {
	case tokens[0] != "_INBOX": // _natstomp.reply.<node>.t<random>, the node known.
		tokens[last] = "t" + random
	case i%2 == 0: // _INBOX.<random>.<number>, the number known.
		tokens[1] = random
	default:
		tokens[1] = tokens[1][:len(tokens[1])-4] + random[:4]
	}
	return strings.Join(tokens, ".")
}
