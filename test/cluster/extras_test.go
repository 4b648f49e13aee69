package cluster_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestClusterExtras uses on a cluster of three what a queue can do beyond keeping messages, while servers are killed.
func TestClusterExtras(t *testing.T) {
	t.Parallel()
	nodes := natsCluster(t)
	a, b := testserver.Start(t, "--nats-url", urls(nodes)), testserver.Start(t, "--nats-url", urls(nodes))
	_, js := native(t, urls(nodes))
	deleteWhileSending(t, a, b, js)
	delayOverAKill(t, a, b, js, nodes)
	for _, srv := range []*testserver.Server{a, b} {
		if text, err := srv.Readiness(); text != "ok" {
			t.Errorf("readiness: got %q (%v), want ok", text, err)
		}
	}
}

// deleteWhileSending has the only consumer of an auto-delete queue come and go at one natstomp, so that the queue is
// deleted, while another one sends: nothing that is receipted may be lost.
func deleteWhileSending(t *testing.T, a, b *testserver.Server, js jetstream.JetStream) {
	t.Helper()
	const rounds, batch = 25, 4
	pub := rig.Connect(t, b.TCPAddr)
	seen := map[string]bool{}
	deleted := 0
	for i := range rounds {
		c := rig.Connect(t, a.TCPAddr)
		c.AskFrame(rig.Subscribe("s", "/queue/session", "auto-delete", "true"))
		for len(seen) < i*batch {
			f := c.Any()
			if seen[string(f.Body)] {
				t.Fatalf("%s came twice", f)
			}
			seen[string(f.Body)] = true
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		// Before, during and after the deletion.
		pause := time.NewTimer(time.Duration(i*7919%600) * time.Millisecond)
		<-pause.C
		if i == rounds/2 { // However long the deletion takes.
			rig.Until(t, func() error {
				_, err := js.Stream(t.Context(), rig.QueueStream("session"))
				if errors.Is(err, jetstream.ErrStreamNotFound) {
					return nil
				}
				return errors.Join(errors.New("the queue is not deleted"), err)
			})
		}
		if _, err := js.Stream(t.Context(), rig.QueueStream("session")); errors.Is(err, jetstream.ErrStreamNotFound) {
			deleted++
		}
		for k := range batch {
			pub.AskFrame(rig.Send("/queue/session", fmt.Sprintf("%d-%d", i, k)))
		}
	}
	t.Logf("deleted before %d of %d rounds", deleted, rounds)
	if deleted == 0 || deleted == rounds {
		t.Error("the SENDs did not meet the deletion")
	}
}

// delayOverAKill kills the server that leads the stream of delayed messages while they wait: each comes once, and none
// early.
func delayOverAKill(t *testing.T, a, b *testserver.Server, js jetstream.JetStream, nodes []*natsServer) {
	t.Helper()
	const messages, delay = 50, 2 * time.Second
	pub, sub := rig.Connect(t, a.TCPAddr), rig.Connect(t, b.TCPAddr)
	for i := range messages {
		pub.AskFrame(rig.Send("/queue/late", strconv.Itoa(i), "x-delay", strconv.FormatInt(delay.Milliseconds(), 10)))
	}
	due := time.Now().Add(delay)
	n := leader(t, js, nodes, "natstomp_delay")
	n.kill()
	sub.DoFrame(rig.Subscribe("s", "/queue/late", "ack", "client-individual"))
	places := map[string]string{}
	for len(places) < messages {
		f := sub.Any()
		if early := time.Until(due); string(f.Body) == strconv.Itoa(messages-1) && early > 0 {
			t.Errorf("the last message came %v early", early)
		}
		if place, again := places[string(f.Body)]; again && place != f.Get("x-seq") {
			t.Errorf("%s is stored twice: as %s too", f, place)
		}
		places[string(f.Body)] = f.Get("x-seq")
		sub.DoFrame(stompclient.New("ACK", "id", f.Get("ack")))
	}
	t.Logf("all came %v after the delay", time.Since(due).Round(time.Millisecond))
	n.start(t)
	s, err := js.Stream(t.Context(), rig.QueueStream("late"))
	if err != nil {
		t.Fatal(err)
	}
	rig.Until(t, func() error {
		info, err := s.Info(t.Context())
		if err == nil && info.State.Msgs > 0 {
			err = fmt.Errorf("%d messages are left", info.State.Msgs)
		}
		return err
	})
}
