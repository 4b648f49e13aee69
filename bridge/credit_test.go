package bridge_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// rationed is a reader whose credit in octets is what credit says, once it has begun. It is woken whenever it is asked.
type rationed struct {
	*reader
	credit func(delivered, outstanding int) (octets int)

	mu        sync.Mutex
	s         *bridge.OrderedSubscription // guarded by mu; nil: it has not begun
	delivered int                         // guarded by mu
}

func (r *rationed) Credit(outstanding int) (messages, octets int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.s == nil {
		return 0, 0
	}
	r.s.Wake()
	return 1_000 - outstanding, r.credit(r.delivered, outstanding)
}

func (r *rationed) DeliverStored(tail []byte) bool {
	r.mu.Lock()
	r.delivered++
	r.mu.Unlock()
	return r.reader.DeliverStored(tail)
}

func (r *rationed) begin(s *bridge.OrderedSubscription) {
	r.mu.Lock()
	r.s = s
	r.mu.Unlock()
	s.Wake()
}

// storedSize is what JetStream counts for one of the first nine messages of a stored topic's subject in a pull.
func (g *rig) storedSize(subject string) int {
	g.t.Helper()
	c, err := g.js.CreateConsumer(g.t.Context(), "STORE", jetstream.ConsumerConfig{
		Name: strings.Repeat("x", 26), FilterSubject: subject, AckPolicy: jetstream.AckNonePolicy, // As long as that of a subscription.
	})
	if err != nil {
		g.t.Fatal(err)
	}
	m, err := c.Next()
	if err != nil {
		g.t.Fatal(err)
	}
	return len(m.Subject()) + len(m.Reply()) + len(m.Data())
}

// TestReaderGoesOnBehindAMessageThatCameAlone: while a pull without bound in octets is open the octets of others cannot
// be counted. One that ended without a word, because its octets were used up exactly, was waited for until it counted
// as lost.
func TestReaderGoesOnBehindAMessageThatCameAlone(t *testing.T) {
	g := newRig(t, nil)
	bodies := numbers(1, 10)
	g.stored("/topic-store/ration", bodies...)
	size := g.storedSize("stomp.store.ration")
	r := &rationed{reader: newReader(1_000), credit: func(delivered, outstanding int) int {
		if delivered+outstanding == 0 {
			return size - 1
		}
		return 2 * size
	}}
	begun := time.Now()
	r.begin(g.read("/topic-store/ration", bridge.Start{Kind: bridge.StartFirst}, r))
	r.want(t, bodies...)
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("%d messages took %v", len(bodies), took)
	}
}

// TestMessageLargerThanABoundConsumerLetsPullsBe: the octets of a consumer's pulls may be limited, a pull without bound in
// octets brings one that is larger.
func TestMessageLargerThanABoundConsumerLetsPullsBe(t *testing.T) {
	const limit, most = 1 << 10, 12 // pull requests; a loop makes thousands
	g := bind(t, router.Binding{Destination: "/queue/q", Stream: "S", Consumer: "tight"})
	g.stream("S", "s")
	g.consumer("S", jetstream.ConsumerConfig{Durable: "tight", AckPolicy: jetstream.AckExplicitPolicy, MaxRequestMaxBytes: limit})
	pulls := g.countPulls()
	large := strings.Repeat("x", 2*limit)
	for _, body := range []string{"before", large, "after"} {
		if err := g.send("/queue/q", body); err != nil {
			t.Fatal(err)
		}
	}
	c := newConsumer(100)
	hold := bridge.Hold{Check: time.Second, Delay: func(bridge.Delivery) time.Duration { return 0 }}
	s, err := g.SubscribeQueue(g.route("/queue/q", router.Subscribe), bridge.View{Version: frame.V12, Destination: "d"}, 100, hold, bridge.QueueOptions{}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Stop(c.takeHeld) }()
	c.want(t, "before", large, "after")
	if got := pulls(); got > most {
		t.Errorf("%d pull requests, want at most %d", got, most)
	}
}
