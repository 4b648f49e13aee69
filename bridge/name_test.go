package bridge_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/router"
)

// twins are two channels whose queues would have streams of one name: the hash in it has 32 bits.
var twins = [2]string{strings.Repeat("v", 60) + "21701", strings.Repeat("v", 60) + "141902"}

func TestQueueWhoseStreamNameIsTakenIsRefused(t *testing.T) {
	if a, b := bridge.QueueStream(twins[0]), bridge.QueueStream(twins[1]); a != b {
		t.Fatalf("the streams are %s and %s: the test proves nothing", a, b)
	}
	g := newRig(t, nil)
	victim, other := "/queue/"+twins[0], "/queue/"+twins[1]
	c := newConsumer(8)
	s := g.subscribe(victim, c)
	defer func() { c.close(); s.Stop(c.takeHeld) }()
	if err := g.send(victim, "one"); err != nil {
		t.Fatal(err)
	}
	if _, got := c.next(t); got != "one" {
		t.Fatalf("got %q, want one", got)
	}
	for range 2 { // A refusal leaves nothing behind that the next caller would take for the queue.
		if err := g.EnsureQueue(g.route(other, router.Subscribe)); !errors.Is(err, bridge.ErrQueueName) {
			t.Errorf("EnsureQueue: got %v, want %v", err, bridge.ErrQueueName)
		}
		if err := g.send(other, "stray"); !errors.Is(err, bridge.ErrQueueName) {
			t.Errorf("SendQueue: got %v, want %v", err, bridge.ErrQueueName)
		}
	}
	if err := g.send(victim, "two"); err != nil {
		t.Fatal(err)
	}
	if _, got := c.next(t); got != "two" {
		t.Errorf("the queue that has the name: got %q, want two", got)
	}
}

func TestQueueDoesNotTakeOverAForeignStream(t *testing.T) {
	g := newRig(t, nil)
	_, err := g.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: bridge.QueueStream("mine"), Subjects: []string{"theirs"}, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.send("/queue/mine", "x"); !errors.Is(err, bridge.ErrQueueName) {
		t.Errorf("got %v, want %v", err, bridge.ErrQueueName)
	}
	stream, err := g.js.Stream(t.Context(), bridge.QueueStream("mine"))
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State; got.Consumers != 0 || got.Msgs != 0 {
		t.Errorf("the foreign stream has %d consumers and %d messages, want none", got.Consumers, got.Msgs)
	}
}
