package rights_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector"
)

// TestC8Wildcards subscribes to more than what is allowed, on topics, stored topics, and both at once.
func TestC8Wildcards(t *testing.T) {
	t.Parallel()
	s := start(t, "p, root, *, >, *, allow\np, *, *, open.>, *, allow\np, *, *, a.*, *, allow\np, *, *, a.secret, *, deny\n"+
		"p, *, events, m.>, *, allow\np, *, events_store, m.>, *, allow\np, mallory, events_store, m.stored.secret, *, deny\n"+
		"p, *, events, n.>, *, allow\n",
		func(cfg *connector.Config) {
			cfg.Destinations.StoredTopics = []string{"/topic/m/stored/>", "/topic/n/stored/>"}
		})
	denied := []string{
		"/topic/>", "/topic/*", "/topic/*/secret", "/topic/a/*", "/topic/a/>", "/topic/a/#", "/topic/a/**", "/topic/a.*", "/topic/**", "/topic/#",
		"/topic-store/>", "/topic-store/a/*", "/store/a/>", "/events-store/*/secret", "/topic/open", "/topic/*/x",
		"/topic/m/>", "/topic/m/stored/>", "/topic/m/stored/*", "/topic/m/*/secret", "/topic/m/*/*", "/topic/m/stored/secret", "/topic-store/m/stored/secret",
		"/topic/n/>", "/topic/n/stored/x", "/topic/n/*/x", "/topic/*/stored/x",
	}
	for i, from := range denied {
		for _, more := range [][]string{nil, {"x-start", "first"}, {"durable-subscription-name", "d"}, {"x-group", "g"}, {"ack", "client"}} {
			c := s.over(transports[i%len(transports)], "mallory")
			c.Do("SUBSCRIBE", append([]string{"id", "1", "destination", from}, more...)...)
			c.Denied("read", from)
		}
	}
	for _, from := range []string{"/topic/open/>", "/topic/open/*", "/topic/a/x", "/topic-store/open/>", "/topic/m/x", "/topic/m/stored/x/*", "/topic/n/x"} {
		s.as("mallory").Ask("SUBSCRIBE", "id", "1", "destination", from)
	}
	// What is stored comes only to who may read that too.
	root := s.as("root")
	c := s.as("bob")
	c.Ask("SUBSCRIBE", "id", "1", "destination", "/topic/m/>")
	root.Ask("SEND", "destination", "/topic/m/stored/secret", "body", "stored")
	c.Message("stored")
}

// TestC9EveryDeliveryPath takes the right to read away and tries every way to what is kept: replay, a durable subscription
// from where it was, redelivery after a NACK and after a disconnect, browsing, the dead-letter queue.
func TestC9EveryDeliveryPath(t *testing.T) {
	t.Parallel()
	const kept = "p, root, *, >, *, allow\np, *, queues, dlq.other, *, allow\n"
	const all = kept + "p, mallory, *, jobs, *, allow\n"
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			s := start(t, all, nil)
			root := s.as("root")
			for _, to := range []string{"/queue/jobs", "/topic-store/jobs"} {
				for i := range 3 {
					root.Ask("SEND", "destination", to, "body", fmt.Sprint(i))
				}
			}
			c := s.over(transport, "mallory")
			c.Ask("SUBSCRIBE", "id", "q", "destination", "/queue/jobs", "ack", "client-individual", "prefetch-count", "1")
			first := c.Message("0")
			c.Do("NACK", "id", first.Get("ack"), "x-delay", "1")
			c.Next("MESSAGE") // One of the three, which the session holds from now on.
			d := s.over(transport, "mallory")
			d.Ask("SUBSCRIBE", "id", "d", "destination", "/topic-store/jobs", "durable-subscription-name", "d", "x-start", "first", "ack", "client-individual", "prefetch-count", "1")
			d.Message("0")
			s.load(kept)
			c.Denied("read", "/queue/jobs")
			d.Denied("read", "/topic-store/jobs")
			for _, attempt := range [][]string{
				{"/queue/jobs"},
				{"/queue/jobs", "ack", "client"},
				{"/queue/jobs", "browser", "true"},
				{"/queue/jobs", "auto-delete", "true"},
				{"/queue/dlq/jobs"},
				{"/queue/dlq.jobs", "browser", "true"},
				{"/topic-store/jobs"},
				{"/topic-store/jobs", "x-start", "first"},
				{"/topic-store/jobs", "x-start", "seq:1"},
				{"/topic-store/jobs", "x-stream-offset", "first"},
				{"/topic-store/jobs", "durable-subscription-name", "d"},
				{"/topic-store/jobs", "durable-subscription-name", "d", "x-start", "first", "ack", "client"},
				{"/topic-store/jobs", "durable", "true"},
				{"/topic-store/>", "durable-subscription-name", "d"},
				{"/topic/jobs"},
			} {
				c := s.over(transport, "mallory")
				c.Do("SUBSCRIBE", append([]string{"id", "d", "destination"}, attempt...)...)
				c.Denied("read", attempt[0])
			}
			// It is all there for who has the right; the durable subscription of one is not another's.
			root.Ask("SUBSCRIBE", "id", "q", "destination", "/queue/jobs", "ack", "client")
			got := map[string]bool{}
			for range 3 {
				got[string(root.Next("MESSAGE").Body)] = true
			}
			if len(got) != 3 {
				t.Errorf("got the messages %v, want all three", got)
			}
			other := s.as("root")
			other.Do("UNSUBSCRIBE", "id", "d", "durable-subscription-name", "d", "destination", "/topic-store/jobs")
			other.Refused("no durable subscription d exists")
			s.load(all)
			d = s.over(transport, "mallory")
			d.Ask("SUBSCRIBE", "id", "d", "destination", "/topic-store/jobs", "durable-subscription-name", "d", "ack", "client-individual", "prefetch-count", "1")
			d.Message("0")
		})
	}
}

// TestC9DelayedSends delivers a delayed message where its client was allowed to send it, whatever the policy says later.
func TestC9DelayedSends(t *testing.T) {
	t.Parallel()
	s := start(t, "p, root, *, >, *, allow\np, anna, queues, jobs, *, allow\n", nil)
	c := s.as("anna")
	c.Ask("SEND", "destination", "/queue/jobs", "body", "late", "x-delay", "300", "x-dead-letter-from", "elsewhere")
	s.load("p, root, *, >, *, allow\n")
	c.Do("SEND", "destination", "/queue/jobs", "x-delay", "300")
	c.Denied("write", "/queue/jobs")
	c = s.as("anna")
	c.Do("SEND", "destination", "/queue/dlq/jobs", "x-delay", "300")
	c.Denied("write", "/queue/dlq/jobs")
	root := s.as("root")
	root.Ask("SUBSCRIBE", "id", "1", "destination", "/queue/jobs")
	if f := root.Message("late"); f.Get("x-dead-letter-from") != "" {
		t.Errorf("got %s, want no header of the broker's", f)
	}
}

// TestC10Groups joins those who share what somebody else may read.
func TestC10Groups(t *testing.T) {
	t.Parallel()
	s := start(t, "p, anna, *, >, *, allow\np, mallory, *, open, *, allow\n", nil)
	anna := s.as("anna")
	anna.Ask("SUBSCRIBE", "id", "1", "destination", "/topic/shared", "x-group", "g")
	anna.Ask("SUBSCRIBE", "id", "2", "destination", "/queue/shared", "ack", "client")
	anna.Ask("SUBSCRIBE", "id", "3", "destination", "/topic-store/shared", "durable-subscription-name", "d")
	anna.Ask("SUBSCRIBE", "id", "4", "destination", "/command/shared")
	for _, attempt := range [][]string{
		{"/topic/shared", "x-group", "g"},
		{"/queue/shared", "ack", "client"},
		{"/topic-store/shared", "durable-subscription-name", "d"},
		{"/command/shared"},
		{"/query/shared"},
	} {
		c := s.as("mallory")
		c.Do("SUBSCRIBE", append([]string{"id", "1", "destination"}, attempt...)...)
		c.Denied("read", attempt[0])
	}
}

// TestC11Transactions has SENDs accepted into a transaction and takes the right away before COMMIT: nothing of it happens.
func TestC11Transactions(t *testing.T) {
	t.Parallel()
	const all = "p, root, *, >, *, allow\np, *, *, open, *, allow\np, mallory, *, secret, *, allow\n"
	const kept = "p, root, *, >, *, allow\np, *, *, open, *, allow\n"
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			s := start(t, all, nil)
			nc := s.native()
			subs := []*nats.Subscription{s.listen(nc, "secret"), s.listen(nc, "stomp.>"), s.listen(nc, "open")}
			for _, sends := range [][]string{
				{"/queue/open", "/queue/open", "/topic/secret"},
				{"/topic/open", "/queue/secret"},
				{"/topic/open", "/topic/secret"},
				{"/topic/open", "/topic-store/secret"},
				{"/topic/open", "/query/secret"},
				{"/topic/open", "/command/secret"},
			} {
				s.load(all)
				c := s.over(transport, "mallory")
				c.Ask("SUBSCRIBE", "id", "r", "destination", "/reply/r")
				c.Ask("BEGIN", "transaction", "t")
				for _, to := range sends {
					c.Ask("SEND", "destination", to, "transaction", "t", "reply-to", "/reply/r")
				}
				s.load(kept)
				c.Do("COMMIT", "transaction", "t", "receipt", "asked")
				c.Denied("write", sends[len(sends)-1])
				if err := nc.Flush(); err != nil {
					t.Fatal(err)
				}
				for _, sub := range subs {
					if m, err := sub.NextMsg(1); !errors.Is(err, nats.ErrTimeout) {
						t.Fatalf("a refused COMMIT of %q sent %v, %v", sends, m, err)
					}
				}
			}
			c := s.over(transport, "mallory")
			c.Ask("BEGIN", "transaction", "t")
			c.Do("SEND", "destination", "/queue/secret", "transaction", "t")
			c.Denied("write", "/queue/secret")
		})
	}
}

// TestC12OneFunction asks the same over every transport, on every pattern, and has the program that the server is part of
// do what it denies.
func TestC12OneFunction(t *testing.T) {
	t.Parallel()
	s := start(t, "p, root, *, >, *, allow\np, *, *, open, *, allow\np, writer, *, secret, write, allow\np, reader, *, secret, read, allow\n", nil)
	writes := []string{"/topic/", "/events/", "/topic-store/", "/store/", "/queue/", "/queues/", "/command/", "/query/"}
	for _, transport := range transports {
		for _, prefix := range writes {
			for _, login := range []string{"writer", "reader", "other", ""} {
				c := s.over(transport, login)
				c.Ask("SUBSCRIBE", "id", "r", "destination", "/reply/r")
				c.Do("SUBSCRIBE", "id", "1", "destination", prefix+"secret", "receipt", "asked")
				want := "access denied: no right to read " + prefix + "secret"
				if login == "reader" {
					want = ""
				}
				if got, _ := outcome(t, c); got != want {
					t.Errorf("%s: SUBSCRIBE of %q to %ssecret: got %q, want %q", transport, login, prefix, got, want)
				}
				_ = c.Close()
				c = s.over(transport, login)
				c.Ask("SUBSCRIBE", "id", "r", "destination", "/reply/r")
				c.Do("SEND", "destination", prefix+"secret", "reply-to", "/reply/r", "receipt", "asked")
				want = "access denied: no right to write " + prefix + "secret"
				if login == "writer" {
					want = ""
				}
				if got, _ := outcome(t, c); got != want {
					t.Errorf("%s: SEND of %q to %ssecret: got %q, want %q", transport, login, prefix, got, want)
				}
				_ = c.Close()
			}
		}
	}
	// The program is no client; what it publishes reaches those who may read that, and its headers are no more than data.
	reader := s.as("reader")
	reader.Ask("SUBSCRIBE", "id", "1", "destination", "/topic/secret")
	other := s.as("other")
	other.Ask("SUBSCRIBE", "id", "1", "destination", "/topic/open")
	headers := map[string]string{"login": "root", "subscription": "other", "reply-to": "/topic/open", "x": "1"}
	if err := s.Publish(t.Context(), "/topic/secret", headers, []byte("said")); err != nil {
		t.Fatal(err)
	}
	if f := reader.Message("said"); f.Get("login") != "" || f.Get("reply-to") != "/topic/open" {
		t.Errorf("got %s", f)
	}
	other.Alive()
	for _, to := range []string{"/$auth/refresh", "/topic/$JS/API/INFO", "/topic/_INBOX/x", "/reply/x"} {
		if err := s.Publish(t.Context(), to, nil, nil); err == nil {
			t.Errorf("the program published to %s", to)
		}
	}
}

// TestBindingsAreAskedByTheirName binds destinations: rules are about what the client writes, on every way to it.
func TestBindingsAreAskedByTheirName(t *testing.T) {
	t.Parallel()
	s := start(t, "p, root, *, >, *, allow\np, *, *, open.>, *, allow\np, *, events, bound.a, *, allow\n", func(cfg *connector.Config) {
		cfg.Destinations.Bindings = []connector.Binding{{Destination: "/topic/bound/", Subject: "elsewhere"}, {Destination: "/query/stock", Subject: "inventory.get"}}
	})
	c := s.as("mallory")
	c.Ask("SUBSCRIBE", "id", "1", "destination", "/topic/bound/a")
	root := s.as("root")
	root.Ask("SEND", "destination", "/topic/elsewhere/a", "body", "for the binding")
	c.Message("for the binding")
	for _, from := range []string{"/topic/bound/b", "/topic/bound/*", "/topic/bound/>", "/topic/elsewhere/a", "/topic/elsewhere/>", "/query/stock", "/topic/inventory/get"} {
		c := s.as("mallory")
		c.Do("SUBSCRIBE", "id", "1", "destination", from)
		c.Denied("read", from)
	}
}

// TestPipelinedBehindADenial sends what is allowed in one write behind what is not: nothing of it happens.
func TestPipelinedBehindADenial(t *testing.T) {
	t.Parallel()
	s := start(t, "p, *, *, open, *, allow\n", nil)
	nc := s.native()
	sub := s.listen(nc, "open")
	for _, transport := range transports {
		c := s.over(transport, "mallory")
		if err := c.Write([]byte("SEND\ndestination:/topic/secret\n\n\x00SEND\ndestination:/topic/open\nreceipt:r\n\n\x00SUBSCRIBE\nid:1\ndestination:/topic/open\n\n\x00")); err != nil {
			t.Fatal(err)
		}
		c.Denied("write", "/topic/secret")
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if m, err := sub.NextMsg(1); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("got %v, %v behind a denial", m, err)
	}
}
