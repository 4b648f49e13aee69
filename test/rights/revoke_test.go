package rights_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"

	"github.com/natstomp/natstomp/test/stompclient"
)

// TestReloadDuringSubscribe changes the policy while sessions subscribe and ask in every order of the two: none is left
// with a subscription that the policy in force denies.
func TestReloadDuringSubscribe(t *testing.T) {
	t.Parallel()
	const open, closed = "p, root, *, >, *, allow\np, *, *, a, *, allow\n", "p, root, *, >, *, allow\n"
	s := start(t, closed, nil)
	root := s.as("root")
	for round := range 30 {
		s.load(open)
		clients := make([]*rig.Client, 12)
		for i := range clients {
			clients[i] = s.over(transports[i%len(transports)], "mallory")
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for i, c := range clients {
				destination := []string{"/topic/a", "/queue/a", "/topic-store/a", "/command/a"}[i%4]
				if err := c.Send(stompclient.New("SUBSCRIBE", "id", "1", "destination", destination)); err != nil {
					t.Error(err)
				}
			}
		})
		time.Sleep(time.Duration(round) * 50 * time.Microsecond) // The reload comes earlier or later among them.
		s.load(closed)
		wg.Wait()
		for _, c := range clients {
			c.Refused("access denied: no right to read /")
		}
	}
	root.Alive()
}

// TestWhatARevokedSessionLeaves takes the right from a session that holds messages, requests and a transaction: messages
// are with another consumer at once, its durable subscription is where it was, requesters hear of it, the transaction is
// nothing, and those who keep their right see nothing at all.
func TestWhatARevokedSessionLeaves(t *testing.T) {
	t.Parallel()
	const kept = "p, root, *, >, *, allow\np, *, events, open.>, *, allow\np, mallory, queues, filled, write, allow\n"
	const all = kept + "p, mallory, *, secret, *, allow\n"
	for _, transport := range transports {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			s := start(t, all, nil)
			root := s.as("root")
			others := make([]*rig.Client, 20)
			for i := range others {
				others[i] = s.over(transport, fmt.Sprint("other", i))
				others[i].Ask("SUBSCRIBE", "id", "1", "destination", fmt.Sprintf("/topic/open/%d", i))
			}
			for i := range 4 {
				root.Ask("SEND", "destination", "/queue/secret", "body", fmt.Sprint(i))
				root.Ask("SEND", "destination", "/topic-store/secret", "body", fmt.Sprint(i))
			}
			c := s.over(transport, "mallory")
			c.Ask("SUBSCRIBE", "id", "q", "destination", "/queue/secret", "ack", "client-individual")
			for i := range 4 {
				c.Message(fmt.Sprint(i))
			}
			c.Ask("SUBSCRIBE", "id", "d", "destination", "/topic-store/secret", "durable-subscription-name", "d", "x-start", "first", "ack", "client-individual")
			for i := range 4 {
				f := c.Message(fmt.Sprint(i))
				if i < 2 {
					c.Do("ACK", "id", f.Get("ack"))
				}
			}
			c.Ask("SUBSCRIBE", "id", "svc", "destination", "/query/secret")
			root.Ask("SUBSCRIBE", "id", "r", "destination", "/reply/r")
			root.Ask("SEND", "destination", "/query/secret", "reply-to", "/reply/r", "body", "asked")
			c.Message("asked")
			c.Ask("BEGIN", "transaction", "t")
			c.Ask("SEND", "destination", "/queue/filled", "transaction", "t", "body", "never")

			begun := time.Now()
			s.load(kept)
			c.Refused("access denied: no right to read /")
			if f := root.Next("MESSAGE"); f.Get("x-error") == "" || f.Get("x-error") == "timeout" {
				t.Errorf("the request was answered by %s, want an error at once", f)
			}
			root.Ask("SUBSCRIBE", "id", "q", "destination", "/queue/secret", "ack", "client")
			for i := range 4 {
				if f := root.Message(fmt.Sprint(i)); f.Get("redelivered") != "true" {
					t.Errorf("got %s, want redelivered:true", f)
				}
			}
			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("what the session held was with another one after %v", took)
			}
			for i, o := range others {
				root.Ask("SEND", "destination", fmt.Sprintf("/topic/open/%d", i), "body", "still there")
				if o.Message("still there"); o.Beats() > 0 {
					t.Errorf("a session that kept its right got %d heart-beats", o.Beats())
				}
			}
			root.Ask("SEND", "destination", "/queue/filled", "body", "first")
			root.Ask("SUBSCRIBE", "id", "f", "destination", "/queue/filled")
			root.Message("first")
			s.load(all)
			c = s.over(transport, "mallory")
			c.Ask("SUBSCRIBE", "id", "d", "destination", "/topic-store/secret", "durable-subscription-name", "d", "ack", "client-individual")
			c.Message("2")
			c.Message("3")
		})
	}
}
