package bridge_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/router"
)

// pullOctets is what one pull brings at most.
const pullOctets = 1 << 20

// countPulls counts the pull requests of all queues from now on.
func (g *rig) countPulls() (count func() int) {
	g.t.Helper()
	pulls, err := g.nc.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT.>")
	if err != nil {
		g.t.Fatal(err)
	}
	if err := pulls.SetPendingLimits(-1, -1); err != nil {
		g.t.Fatal(err)
	}
	if err := g.nc.Flush(); err != nil {
		g.t.Fatal(err)
	}
	return func() int {
		g.t.Helper()
		if err := g.nc.Flush(); err != nil {
			g.t.Fatal(err)
		}
		n, _, err := pulls.Pending()
		if err != nil {
			g.t.Fatal(err)
		}
		return n
	}
}

// TestLargeMessageBehindSmallOnesComesWithoutABusyLoop: a message above the octets of a pull ends every pull that finds
// it; the subscription must then ask for it alone, once, whatever came before.
func TestLargeMessageBehindSmallOnesComesWithoutABusyLoop(t *testing.T) {
	const most = 12 // pull requests; a loop makes thousands
	g := newRig(t, nil)
	large := strings.Repeat("x", 3*pullOctets/2)
	for _, small := range []int{1, 10, 33, 64, 90} {
		queue := fmt.Sprintf("/queue/behind/%d", small)
		for i := range small {
			if err := g.send(queue, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		for _, body := range []string{large, "after"} {
			if err := g.send(queue, body); err != nil {
				t.Fatal(err)
			}
		}
		g.untilPending(queue, uint64(small)+2) // Until JetStream knows that they are there they come one by one.
		pulls := g.countPulls()
		c := newConsumer(200)
		s := g.subscribe(queue, c)
		for i := range small {
			if _, got := c.next(t); got != fmt.Sprint(i) {
				t.Fatalf("%d small ones: message %d is %.20q", small, i, got)
			}
		}
		for _, want := range []string{large, "after"} {
			if _, got := c.next(t); got != want {
				t.Fatalf("%d small ones: got %.20q of %d octets, want %d octets", small, got, len(got), len(want))
			}
		}
		if got := pulls(); got > most {
			t.Errorf("%d small ones: %d pull requests, want at most %d", small, got, most)
		}
		c.close()
		s.Stop(c.takeHeld)
	}
}

// untilPending waits until JetStream counts so many messages for the consumers of a queue. It does so some time after
// the PubAck.
func (g *rig) untilPending(queue string, messages uint64) {
	g.t.Helper()
	stream := bridge.QueueStream(g.route(queue, router.Send).Channel)
	for deadline := time.Now().Add(patience); ; {
		c, err := g.js.Consumer(g.t.Context(), stream, "stomp")
		if err != nil {
			g.t.Fatal(err)
		}
		got := c.CachedInfo().NumPending
		if got == messages {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("JetStream counts %d messages pending, want %d", got, messages)
		}
	}
}

// noting is a consumer that knows whether it has got anything.
type noting struct {
	*consumer
	delivered atomic.Bool
}

func (n *noting) DeliverQueue(tail []byte, d bridge.Delivery) bool {
	n.delivered.Store(true)
	return n.consumer.DeliverQueue(tail, d)
}

// TestLargeMessageThatTheServerDoesNotCountYet: JetStream tells a pull that does not wait that there is nothing as long
// as its count of what is there lags, and every other pull that what is there is too large.
func TestLargeMessageThatTheServerDoesNotCountYet(t *testing.T) {
	const stream, most = "LAG", 100 // pull requests; a loop makes thousands
	g := newRig(t, nil)
	large := strings.Repeat("x", 3*pullOctets/2)
	if err := g.send("/queue/lag", large); err != nil {
		t.Fatal(err)
	}
	pulls, c := make(chan string, 1000), &noting{consumer: newConsumer(10)}
	_, err := g.nc.Subscribe("$JS.API.CONSUMER.MSG.NEXT."+stream+".c", func(m *nats.Msg) {
		request := string(m.Data)
		select {
		case pulls <- request:
		default:
			return // It loops.
		}
		answer := nats.NewMsg(m.Reply)
		switch {
		case strings.Contains(request, `"no_wait"`):
			answer.Header.Set("Status", "404")
			answer.Header.Set("Description", "No Messages")
		case strings.Contains(request, `"max_bytes"`) && c.delivered.Load():
			return // It waits.
		case strings.Contains(request, `"max_bytes"`):
			answer.Header.Set("Status", "409")
			answer.Header.Set("Description", "Message Size Exceeds MaxBytes")
			answer.Header.Set("Nats-Pending-Messages", "1")
			answer.Header.Set("Nats-Pending-Bytes", fmt.Sprint(pullOctets))
		default:
			// The queue itself answers; on a busy machine perhaps that its time was over.
			answer = &nats.Msg{Subject: "$JS.API.CONSUMER.MSG.NEXT." + bridge.QueueStream("lag") + ".stomp", Reply: m.Reply, Data: m.Data}
		}
		if err := g.nc.PublishMsg(answer); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	s, err := g.SubscribeConsumer(stream, "c", 10, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		c.close()
		s.Stop(c.takeHeld)
	}()
	if _, got := c.next(t); got != large {
		t.Errorf("got %.20q of %d octets, want %d octets", got, len(got), len(large))
	}
	if got := len(pulls); got > most {
		t.Errorf("%d pull requests, want at most %d", got, most)
	}
}

// TestLargeMessagesAmongManyConsumersComeWithoutABusyLoop: consumers of one queue end each other's pulls when a large
// message comes.
func TestLargeMessagesAmongManyConsumersComeWithoutABusyLoop(t *testing.T) {
	const consumers, messages, most = 8, 40, 400
	g := newRig(t, nil)
	large := strings.Repeat("x", 3*pullOctets/2)
	pulls := g.countPulls()
	c := newConsumer(200)
	var subs []*bridge.QueueSubscription
	if err := g.EnsureQueue(g.route("/queue/crowd", router.Send)); err != nil {
		t.Fatal(err)
	}
	for range consumers {
		subs = append(subs, g.subscribe("/queue/crowd", c))
	}
	for i := range messages {
		body := fmt.Sprint(i)
		if i%4 == 3 {
			body += large
		}
		if err := g.send("/queue/crowd", body); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for range messages {
		_, body := c.next(t)
		seen[strings.TrimRight(body, "x")] = true
	}
	if len(seen) != messages {
		t.Errorf("%d different messages, want %d", len(seen), messages)
	}
	if got := pulls(); got > most {
		t.Errorf("%d pull requests for %d messages, want at most %d", got, messages, most)
	}
	c.close()
	for _, s := range subs {
		s.Stop(c.takeHeld)
	}
}

// TestOctetsOfAPullUsedUpExactly: JetStream ends a pull whose octets are used up without a word. The next message must
// come all the same, not after the time in which a pull counts as lost.
func TestOctetsOfAPullUsedUpExactly(t *testing.T) {
	for _, tt := range []struct {
		name string
		over int // octets above a pull's
		half int // so many messages make up the pull
	}{
		{"one short", -1, 1},
		{"exact", 0, 1},
		{"one over", 1, 1},
		{"exact with two", 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newRig(t, nil)
			const queue = "/queue/exact"
			route := g.route(queue, router.Send)
			// What JetStream counts beside the body: the subject and the reply of a delivery.
			reply := len("$JS.ACK.") + len(bridge.QueueStream(route.Channel)) + len(".stomp.1.1.1.1234567890123456789.1")
			size := (pullOctets+tt.over)/tt.half - len(route.Subject) - reply
			for range tt.half {
				if err := g.send(queue, strings.Repeat("x", size)); err != nil {
					t.Fatal(err)
				}
			}
			for _, body := range []string{"second", "third"} {
				if err := g.send(queue, body); err != nil {
					t.Fatal(err)
				}
			}
			c := newConsumer(8)
			s := g.subscribe(queue, c)
			defer func() { c.close(); s.Stop(c.takeHeld) }()
			octets := 0
			for i := range tt.half {
				c.next(t)
				octets += c.size(route.Subject, i)
			}
			if want := pullOctets + tt.over; octets != want {
				t.Fatalf("the messages before have %d octets for JetStream, want %d: the test proves nothing", octets, want)
			}
			for _, want := range []string{"second", "third"} {
				if _, got := c.next(t); got != want {
					t.Errorf("got %.20q, want %q", got, want)
				}
			}
		})
	}
}

// size is the octets that JetStream counts for the delivery that was received i-th, on that subject without headers.
func (c *consumer) size(subject string, i int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (&nats.Msg{Subject: subject, Reply: c.held[i].Reply, Data: make([]byte, c.held[i].Size)}).Size()
}

// TestConsumerHoldsNoMoreThanItsPrefetch: the server tells the end of a pull only after its last message, when the next
// pull may be on its way; one must not be taken for the other.
func TestConsumerHoldsNoMoreThanItsPrefetch(t *testing.T) {
	const prefetch, settled, others = 10, 20, 100
	g := newRig(t, nil)
	if err := g.send("/queue/fair", strings.Repeat("x", 900<<10)); err != nil { // Pulls bring few after it.
		t.Fatal(err)
	}
	for i := range settled + prefetch + others {
		if err := g.send("/queue/fair", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	first, second := newConsumer(prefetch), newConsumer(others)
	s := g.subscribe("/queue/fair", first)
	defer func() { first.close(); s.Stop(first.takeHeld) }()
	for range 1 + settled { // One by one: each time there is room for one more.
		first.next(t)
		g.settleOldest(first)
		s.Wake()
	}
	for range prefetch {
		first.next(t)
	}
	s2 := g.subscribe("/queue/fair", second)
	defer func() { second.close(); s2.Stop(second.takeHeld) }()
	for i := range others { // All that the first must not hold.
		select {
		case <-second.got:
		case <-time.After(patience):
			t.Fatalf("the consumer holds %d messages, want %d: another has only %d of the other %d",
				len(first.takeHeld()), prefetch, i, others)
		}
	}
}

// settleOldest acks the message that c has held for the longest time.
func (g *rig) settleOldest(c *consumer) {
	g.t.Helper()
	c.mu.Lock()
	oldest := c.held[:1:1]
	c.held = c.held[1:]
	c.mu.Unlock()
	done := make(chan error, 1)
	g.ConfirmAck(oldest, func(err error) { done <- err })
	if err := outcome(g.t, "ConfirmAck", done); err != nil {
		g.t.Fatal(err)
	}
}
