package bridge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// wantCount checks what the head of a MESSAGE says about earlier deliveries.
func wantCount(t *testing.T, head, want string, redelivered bool) {
	t.Helper()
	if !strings.Contains(head, "x-delivery-count:"+want+"\n") {
		t.Errorf("%q lacks x-delivery-count:%s", head, want)
	}
	if got := strings.Contains(head, "redelivered:true"); got != redelivered {
		t.Errorf("redelivered is %t, want %t, in %q", got, redelivered, head)
	}
}

// refuser opens a subscription on a queue that takes nothing, as one does whose client has just gone, and waits until
// the server knows of it.
func (g *rig) refuser(queue string) (end func()) {
	g.t.Helper()
	c := newConsumer(10)
	c.close()
	before := g.Stats().Pulls
	s := g.subscribe(queue, c)
	g.untilPulls(before + 1)
	return func() { s.Stop(c.takeHeld) }
}

func (g *rig) untilPulls(n uint64) {
	g.t.Helper()
	until(g.t, "a pull is open", func() bool { return g.Stats().Pulls >= n })
	g.FlushControl()
}

// TestMessageThatNobodySawIsNoRedelivery: it reaches subscriptions whose clients are gone.
func TestMessageThatNobodySawIsNoRedelivery(t *testing.T) {
	const queue = "/queue/stray"
	srv := startNATS(t)
	a, b := newNode(t, srv, nil), newNode(t, srv, nil)
	for _, g := range []*rig{a, b} { // In order: b makes nothing that a has.
		if err := g.EnsureQueue(g.route(queue, router.Send)); err != nil {
			t.Fatal(err)
		}
	}
	end := a.refuser(queue)
	if err := a.send(queue, "x"); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(4) {
		a.untilDelivered(queue, n+1)
		end()
		end = a.refuser(queue)
	}
	a.untilDelivered(queue, 5)
	end()

	// The next node knows.
	c := newConsumer(1)
	s := b.subscribe(queue, c)
	head, _ := c.next(t)
	wantCount(t, head, "1", false)
	c.close()
	s.Stop(c.takeHeld)

	// What was seen there counts, between strays too.
	end = b.refuser(queue)
	b.untilDelivered(queue, 7)
	end()
	c = newConsumer(1)
	s = a.subscribe(queue, c)
	head, _ = c.next(t)
	wantCount(t, head, "2", true)
	settled := make(chan error, 1)
	a.ConfirmAck(c.takeHeld(), func(err error) { settled <- err })
	if err := outcome(t, "ConfirmAck", settled); err != nil {
		t.Fatal(err)
	}
	c.close()
	s.Stop(c.takeHeld)
	if got := a.Strays(); got != 0 {
		t.Errorf("%d messages are remembered after their ACK", got)
	}
}

// TestStraysAreFewerThanDeliveries: words about them come twice, are wrong or of another count.
func TestStraysAreFewerThanDeliveries(t *testing.T) {
	const queue = "/queue/words"
	g := newRig(t, nil)
	if err := g.send(queue, "x"); err != nil {
		t.Fatal(err)
	}
	end := g.refuser(queue)
	g.untilDelivered(queue, 1)
	end()
	stream := bridge.QueueStream("words")
	c, err := g.js.Consumer(t.Context(), stream, "stomp")
	if err != nil {
		t.Fatal(err)
	}
	about := fmt.Sprint(stream, " stomp ", c.CachedInfo().Created.UnixNano(), " 1 ")
	for _, word := range []string{"1", "1", "1", "1", "x", strings.Repeat("1", 2_000)} {
		m := &nats.Msg{Subject: "_natstomp.queue.unseen", Data: []byte(about + word)}
		if err := g.nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	reader := newConsumer(1)
	s := g.subscribe(queue, reader)
	head, _ := reader.next(t)
	wantCount(t, head, "1", false)
	reader.close()
	s.Stop(reader.takeHeld)
}

// TestMessageThatWentThroughLingeringPullsIsNoRedelivery: somebody listens to everything, so the pulls of subscriptions
// that have ended stay open and take a message, one after the other.
func TestMessageThatWentThroughLingeringPullsIsNoRedelivery(t *testing.T) {
	const queue = "/queue/linger"
	g := newRig(t, nil)
	if _, err := g.nc.SubscribeSync(">"); err != nil {
		t.Fatal(err)
	}
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		g.refuser(queue)()
	}
	if err := g.send(queue, "x"); err != nil {
		t.Fatal(err)
	}
	c := newConsumer(1)
	s := g.subscribe(queue, c)
	head, _ := c.next(t)
	wantCount(t, head, "1", false)
	c.close()
	s.Stop(c.takeHeld)
}

// TestStrayOfADurableSubscriptionIsNoRedelivery: every attachment knows.
func TestStrayOfADurableSubscriptionIsNoRedelivery(t *testing.T) {
	const topic = "/topic-store/stray"
	g := newRig(t, nil)
	id := bridge.DurableID{Identity: "me", Name: "d"}
	attach := func(c *consumer) *bridge.QueueSubscription {
		t.Helper()
		view := bridge.View{Version: frame.V12, Destination: topic}
		s, err := g.SubscribeDurable(g.route(topic, router.Subscribe), id, nil, view, c.prefetch, bridge.Hold{Check: time.Second}, c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for n := range uint64(3) {
		c := newConsumer(10)
		c.close()
		before := g.Stats().Pulls
		s := attach(c)
		g.untilPulls(before + 1)
		if n == 0 {
			if err := g.send(topic, "x"); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "it has the message", func() bool { return g.deliveries("STORE") > n })
		s.Stop(c.takeHeld)
	}
	c := newConsumer(1)
	s := attach(c)
	head, _ := c.next(t)
	wantCount(t, head, "1", false)
	c.close()
	s.Stop(c.takeHeld)
}

// TestStraysAreForgottenWithTheLink: the server at its other end may have lost count, so all counts as delivered.
func TestStraysAreForgottenWithTheLink(t *testing.T) {
	const queue = "/queue/stray"
	n := newRemote(t, externalServer(t), nil)
	if err := n.send(queue, "x"); err != nil {
		t.Fatal(err)
	}
	end := n.refuser(queue)
	n.untilDelivered(queue, 1)
	end()
	if got := n.Strays(); got != 1 {
		t.Fatalf("%d messages are remembered, want 1", got)
	}
	n.link.breakDown()
	n.noticed()
	n.link.restore()
	c := newConsumer(1)
	s := n.subscribe(queue, c)
	head, _ := c.next(t)
	wantCount(t, head, "2", true)
	c.close()
	s.Stop(c.takeHeld)
}

// untilDelivered waits until the durable of a queue has made so many deliveries.
func (g *rig) untilDelivered(queue string, n uint64) {
	g.t.Helper()
	stream := bridge.QueueStream(g.route(queue, router.Send).Channel)
	until(g.t, "the message is delivered", func() bool { return g.deliveries(stream) >= n })
}

// deliveries is how many the only consumer of a stream has made.
func (g *rig) deliveries(stream string) uint64 {
	g.t.Helper()
	s, err := g.js.Stream(g.t.Context(), stream)
	if err != nil {
		g.t.Fatal(err)
	}
	for info := range s.ListConsumers(g.t.Context()).Info() {
		return info.Delivered.Consumer
	}
	return 0
}
