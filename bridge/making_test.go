package bridge_test

import (
	"net"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// gate is a link to NATS on which writing can be held up.
type gate struct {
	nats.InProcessConnProvider

	mu      sync.Mutex
	open    chan struct{} // guarded by mu; closed while octets may pass
	blocked chan struct{} // hears of each write that is held up
}

func newGate(to nats.InProcessConnProvider) *gate {
	g := &gate{InProcessConnProvider: to, open: make(chan struct{}), blocked: make(chan struct{}, 100)}
	close(g.open)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	g.open = make(chan struct{})
	g.mu.Unlock()
}

func (g *gate) release() {
	g.mu.Lock()
	close(g.open)
	g.mu.Unlock()
}

// InProcessConn implements nats.InProcessConnProvider.
func (g *gate) InProcessConn() (net.Conn, error) {
	nc, err := g.InProcessConnProvider.InProcessConn()
	return gatedConn{nc, g}, err
}

type gatedConn struct {
	net.Conn
	g *gate
}

func (c gatedConn) Write(p []byte) (int, error) {
	c.g.mu.Lock()
	open := c.g.open
	c.g.mu.Unlock()
	select {
	case <-open:
	default:
		c.g.blocked <- struct{}{}
		<-open
	}
	return c.Conn.Write(p)
}

// TestSecondSubscriberOfATopicInTheMakingWaits: who joins while another makes the NATS subscription must not publish
// before it is live, or would miss its own message.
func TestSecondSubscriberOfATopicInTheMakingWaits(t *testing.T) {
	var link *gate
	g := newRig(t, func(cfg *bridge.Config) {
		link = newGate(cfg.Data.Opts.InProcessServer)
		nc, err := nats.Connect("", nats.InProcessServer(link))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		cfg.Data = nc
	})
	route := g.route("/topic/making", router.Subscribe)

	// A publish that does not fit the client's buffer holds the link, so that the making cannot go on.
	link.shut()
	var work sync.WaitGroup
	work.Go(func() {
		if err := g.PublishTopic(g.route("/topic/elsewhere", router.Send), nil, make([]byte, 128<<10), ""); err != nil {
			t.Errorf("publishing what fills the link: %v", err)
		}
	})
	<-link.blocked
	type subscriber struct {
		*bridge.TopicSubscription
		got  *listener
		live chan error
	}
	joined := make(chan subscriber, 2)
	for range 2 {
		work.Go(func() {
			s := subscriber{got: newListener(), live: make(chan error, 1)}
			view := bridge.View{Version: frame.V12, Destination: "/topic/making"}
			s.TopicSubscription = g.SubscribeTopic(route, "", view, s.got, func(err error) { s.live <- err })
			joined <- s
		})
	}
	second := <-joined // The first is held up in NATS.
	if second.Ordered() {
		t.Error("the second subscriber may publish at once, its SUB is not sent yet")
	}
	select {
	case err := <-second.live:
		t.Errorf("live, with %v, before NATS has the SUB", err)
	default:
	}
	link.release()
	first := <-joined
	if !first.Ordered() {
		t.Error("the first subscriber has sent its SUB before what it publishes, and must wait")
	}
	for _, s := range []subscriber{first, second} {
		defer s.Close()
		if err := outcome(t, "SubscribeTopic", s.live); err != nil {
			t.Fatal(err)
		}
	}
	g.publish("/topic/making", "own")
	for _, s := range []subscriber{first, second} {
		if got := string(s.got.next(t, frame.V12).Body); got != "own" {
			t.Errorf("got %q, want own", got)
		}
	}
	work.Wait()
}
