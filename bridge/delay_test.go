package bridge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/router"
)

// left is how many messages a stream holds; 0 also if there is none.
func (g *rig) left(stream string) uint64 {
	g.t.Helper()
	s, err := g.js.Stream(g.t.Context(), stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// sendWith stores one message with options and waits for the outcome.
func (g *rig) sendWith(destination, body string, o bridge.SendOptions) error {
	g.t.Helper()
	c := make(chan error, 1)
	g.SendQueue(g.message(destination, body, o), func(err error) { c <- err })
	return outcome(g.t, "SendQueue", c)
}

func TestDelayIsNeverShorter(t *testing.T) {
	g := newRig(t, nil)
	c := newConsumer(100)
	s := g.subscribe("/queue/later", c)
	defer func() { s.Stop(c.takeHeld) }()
	const messages = 40
	began := make(map[string]time.Time)
	for i := range messages {
		delay := time.Duration(50+i*37) * time.Millisecond
		body := fmt.Sprint(i)
		began[body] = time.Now().Add(delay)
		if err := g.sendWith("/queue/later", body, bridge.SendOptions{Delay: delay}); err != nil {
			t.Fatal(err)
		}
	}
	for range messages {
		head, body := c.next(t)
		due, ok := began[body]
		if !ok {
			t.Fatalf("%q is unknown, or came twice", body)
		}
		if early := time.Until(due); early > 0 {
			t.Errorf("message %s came %s early", body, early)
		}
		if strings.Contains(head, "redelivered") {
			t.Errorf("message %s is flagged: %q", body, head)
		}
		delete(began, body)
	}
	// Nothing is left behind but what the consumer holds.
	comesTrue(t, "the delayed messages are gone from their stream", func() bool { return g.left("natstomp_delay") == 0 })
	comesTrue(t, "the markers are removed", func() bool { return g.left(bridge.QueueStream("later")) == messages })
}

// TestDueMessageIsMovedOnce: a node died after it had moved messages and before it took them off the delay stream.
func TestDueMessageIsMovedOnce(t *testing.T) {
	g := newRig(t, nil)
	if err := g.sendWith("/queue/once", "first", bridge.SendOptions{Delay: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	c := newConsumer(100)
	s := g.subscribe("/queue/once", c)
	defer func() { s.Stop(c.takeHeld) }()
	if _, body := c.next(t); body != "first" {
		t.Fatalf("got %q", body)
	}
	stream := bridge.QueueStream("once")
	// What the dead node left: the markers of two messages that are in the queue already, and among others these two.
	for _, id := range []string{"b", "d"} {
		if _, err := g.js.Publish(t.Context(), "_natstomp.once."+stream+"."+id, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		m := &nats.Msg{Subject: "_natstomp.due." + stream, Data: []byte(id), Header: nats.Header{
			"Nats-Stomp-Channel": {"once"}, "Nats-Stomp-Once": {id},
		}}
		if _, err := g.js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	got := ""
	for range 3 {
		_, body := c.next(t)
		got += body
	}
	if got != "ace" {
		t.Errorf("got %q, want ace", got)
	}
	comesTrue(t, "everything is moved", func() bool { return g.left("natstomp_delay") == 0 })
	comesTrue(t, "the markers are removed", func() bool { return g.left(stream) == 4 })
	select {
	case tail := <-c.got:
		t.Errorf("one more: %q", tail)
	default:
	}
}

// TestStartTakesWhatTheLastMoverHad: the server ended while its mover had a message in hand, which must not wait for the
// ack wait.
func TestStartTakesWhatTheLastMoverHad(t *testing.T) {
	srv := startNATS(t)
	nc, err := nats.Connect("", nats.InProcessServer(srv))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "natstomp_delay", Subjects: []string{"_natstomp.delay.>", "_natstomp.due.>"}, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	mover, err := js.CreateConsumer(t.Context(), "natstomp_delay", jetstream.ConsumerConfig{
		Durable: "mover", FilterSubject: "_natstomp.due.>", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	m := &nats.Msg{Subject: "_natstomp.due." + bridge.QueueStream("held"), Data: []byte("x"), Header: nats.Header{
		"Nats-Stomp-Channel": {"held"}, "Nats-Stomp-Once": {"a"},
	}}
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if _, err := mover.Next(jetstream.FetchMaxWait(patience)); err != nil { // Without ACK.
		t.Fatal(err)
	}
	g := newNode(t, srv, nil)
	c := newConsumer(1)
	s := g.subscribe("/queue/held", c)
	defer func() { s.Stop(c.takeHeld) }()
	if _, body := c.next(t); body != "x" {
		t.Errorf("got %q", body)
	}
	comesTrue(t, "everything is moved", func() bool { return g.left("natstomp_delay") == 0 })
}

// TestLateTransmissionOfAMoveStoresNothing: a batch was sent twice, and the second reaches the stream when the message has
// been consumed and its marker removed.
func TestLateTransmissionOfAMoveStoresNothing(t *testing.T) {
	g := newRig(t, nil)
	stream := bridge.QueueStream("late")
	batch := make(chan *nats.Msg, 10)
	for _, subject := range []string{"stomp.queue.late", "_natstomp.once.>"} {
		if _, err := g.nc.ChanSubscribe(subject, batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := g.sendWith("/queue/late", "x", bridge.SendOptions{Delay: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	c := newConsumer(1)
	s := g.subscribe("/queue/late", c)
	if _, body := c.next(t); body != "x" {
		t.Fatalf("got %q", body)
	}
	g.settleOldest(c)
	defer func() { s.Stop(c.takeHeld) }()
	comesTrue(t, "the message is moved", func() bool { return g.left("natstomp_delay") == 0 })
	comesTrue(t, "the message and the marker are gone", func() bool { return g.left(stream) == 0 })
	var answer *nats.Msg
	for range 2 {
		m := nats.NewMsg("")
		select {
		case got := <-batch:
			m.Subject, m.Data, m.Header = got.Subject, got.Data, got.Header
		case <-time.After(patience):
			t.Fatal("no batch of a message and a marker")
		}
		m.Header.Set("Nats-Batch-Id", "again")
		if m.Header.Get("Nats-Batch-Commit") == "" {
			if err := g.nc.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var err error
		if answer, err = g.nc.RequestMsg(m, patience); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(string(answer.Data), `"error"`) {
		t.Errorf("the answer to the late batch: got %s, want a refusal", answer.Data)
	}
	if got := g.left(stream); got != 0 {
		t.Errorf("%d messages stored by the late batch", got)
	}
}

func TestDelayedForDeletedQueue(t *testing.T) {
	g := newRig(t, autoDelete)
	if err := g.sendWith("/queue/back", "x", bridge.SendOptions{Delay: 6 * time.Second}); err != nil {
		t.Fatal(err)
	}
	c := newConsumer(1)
	s := g.subscribe("/queue/back", c)
	g.leaveAll(s, c)
	comesTrue(t, "the queue vanishes", func() bool { return !g.exists("back") })
	comesTrue(t, "the queue is made anew for the delayed message", func() bool { return g.left(bridge.QueueStream("back")) == 1 })
}

func TestDelayRoom(t *testing.T) {
	g := newRig(t, func(cfg *bridge.Config) { cfg.Queues.DelayBytes = 10_000 })
	err := error(nil)
	sent := 0
	for ; err == nil && sent < 100; sent++ {
		err = g.sendWith("/queue/room", strings.Repeat("x", 1_000), bridge.SendOptions{Delay: time.Hour})
	}
	if !errors.Is(err, bridge.ErrQueueFull) || sent < 3 {
		t.Errorf("SEND %d: got %v, want %v", sent, err, bridge.ErrQueueFull)
	}
	if err := g.send("/queue/room", "now"); err != nil {
		t.Errorf("without delay: %v", err)
	}
}

func TestExpiry(t *testing.T) {
	g := newRig(t, nil)
	now := time.Now()
	for i, o := range []bridge.SendOptions{
		{Expires: now.Add(-time.Second).UnixMilli()},
		{TTL: time.Second, Delay: 2 * time.Second},
		{TTL: time.Second, Delay: time.Second},
		{Expires: now.UnixMilli(), TTL: time.Hour},
	} {
		if err := g.sendWith("/queue/dead", "x", o); err != nil {
			t.Errorf("SEND %d: %v", i, err)
		}
	}
	if got := g.Stats().Expired; got != 4 {
		t.Errorf("expired: got %d, want 4", got)
	}
	if g.exists("dead") || g.left("natstomp_delay") > 0 {
		t.Error("an expired message was stored")
	}
	if err := g.sendWith("/queue/dead", "x", bridge.SendOptions{TTL: 1100 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	stored := time.Now()
	comesTrue(t, "the message expires", func() bool { return g.left(bridge.QueueStream("dead")) == 0 })
	if kept := time.Since(stored); kept < 1100*time.Millisecond {
		t.Errorf("kept for %s, want at least 1.1 s", kept)
	}
}

func TestBatchWithoutDuplicates(t *testing.T) {
	g := newRig(t, nil)
	batch := func(ids ...string) error {
		var sends []bridge.Send
		for _, id := range ids {
			sends = append(sends, g.message("/queue/ids", id, bridge.SendOptions{DedupID: id, Identity: "me"}))
		}
		c := make(chan error, 1)
		g.SendBatch(sends, func(err error) { c <- err })
		return outcome(t, "SendBatch", c)
	}
	stream := bridge.QueueStream("ids")
	for _, tt := range []struct {
		ids  []string
		want error
		left uint64
	}{
		{[]string{"a", "b", "c"}, nil, 3},
		{[]string{"a", "b", "c"}, bridge.ErrDuplicate, 3},
		{[]string{"c", "d", "", "d", "a", "e"}, nil, 6},
		{[]string{"a"}, bridge.ErrDuplicate, 6},
		{[]string{"a", "f"}, nil, 7},
		{[]string{"", "", "f"}, nil, 9},
	} {
		if err := batch(tt.ids...); !errors.Is(err, tt.want) {
			t.Errorf("%q: got %v, want %v", tt.ids, err, tt.want)
		}
		if got := g.left(stream); got != tt.left {
			t.Errorf("%q: %d messages stored, want %d", tt.ids, got, tt.left)
		}
	}
}

func TestDedupIsScoped(t *testing.T) {
	g := newRig(t, nil)
	for i, tt := range []struct {
		destination, identity, id string
		want                      error
	}{
		{"/queue/a", "me", "1", nil},
		{"/queue/a", "me", "1", bridge.ErrDuplicate},
		{"/queue/a", "you", "1", nil},
		{"/queue/a", "", "1", nil},
		{"/queue/a", "m", "e1", nil},
		{"/queue/b", "me", "1", nil},
	} {
		err := g.sendWith(tt.destination, "x", bridge.SendOptions{DedupID: tt.id, Identity: tt.identity})
		if !errors.Is(err, tt.want) {
			t.Errorf("SEND %d: got %v, want %v", i, err, tt.want)
		}
	}
}

// TestDelayedMessagesMoveAsFarAsThereIsRoom: they are due together, and the queue takes a few of them at a time.
func TestDelayedMessagesMoveAsFarAsThereIsRoom(t *testing.T) {
	const messages, octets, room = 20, 1_000, 10_000
	g := newRig(t, func(cfg *bridge.Config) { cfg.Queues.Settings = size(room) })
	var sends []bridge.Send // Due at one time, so that they are moved together.
	for i := range messages {
		body := fmt.Sprint(i, " ", strings.Repeat("x", octets))
		sends = append(sends, g.message("/queue/narrow", body, bridge.SendOptions{Delay: 100 * time.Millisecond}))
	}
	done := make(chan error, 1)
	g.SendBatch(sends, func(err error) { done <- err })
	if err := outcome(t, "SendBatch", done); err != nil {
		t.Fatal(err)
	}
	stream := bridge.QueueStream(g.route("/queue/narrow", router.Send).Channel)
	until(t, "the queue is as full as it can be", func() bool { return g.left(stream) >= room/octets*7/10 })
	c := newConsumer(messages)
	s := g.subscribe("/queue/narrow", c)
	defer func() {
		c.close()
		s.Stop(c.takeHeld)
	}()
	seen := make(map[string]bool)
	for range messages {
		_, body := c.next(t)
		number, _, _ := strings.Cut(body, " ")
		if seen[number] {
			t.Errorf("message %s came twice", number)
		}
		seen[number] = true
		g.settleOldest(c)
	}
}
