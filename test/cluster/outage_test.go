package cluster_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/testserver"
)

// recovery is how soon receipts must come after a link is whole again: within 2 s (reliability goal Q9), and what a busy
// machine adds. Nothing that is tested waits for anything that takes less.
const recovery = 10 * time.Second

// TestServerRestarts ends and starts a single server under load, orderly and by SIGKILL.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	n := single(t, "")
	a, b := testserver.Start(t, "--nats-url", n.url()), testserver.Start(t, "--nats-url", n.url())
	l := newLoad("/queue/restarts")
	l.produce(t, a, "p1")
	l.produce(t, a, "p2")
	l.produce(t, b, "p3")
	l.consume(t, a)
	l.consume(t, b)
	for _, end := range []func(){n.stop, n.kill} {
		l.more(t, 2_000)
		end()
		n.start(t)
		l.more(t, 2_000)
	}
	_, js := native(t, n.url())
	l.finish(t, js)
	l.inOrder(t)
}

// TestLinkCut cuts the link between natstomp and NATS under load: receipts are withheld, never false, and come again
// soon.
func TestLinkCut(t *testing.T) {
	t.Parallel()
	for _, cut := range []struct {
		name string
		d    time.Duration
		how  func(*proxy)
	}{
		{"severed", time.Second, (*proxy).sever},
		{"severed for long", 10 * time.Second, (*proxy).sever},
		{"hanging", time.Second, (*proxy).hang},
		{"hanging for long", 10 * time.Second, (*proxy).hang},
	} {
		t.Run(cut.name, func(t *testing.T) {
			t.Parallel()
			n := single(t, "")
			p := newProxy(t, "127.0.0.1:"+strconv.Itoa(n.port))
			srv := testserver.Start(t, "--nats-url", p.url())
			l := newLoad("/queue/cut")
			l.produce(t, srv, "p1")
			l.produce(t, srv, "p2")
			l.consume(t, srv)
			l.more(t, 1_000)
			cut.how(p)
			healed := time.NewTimer(cut.d)
			<-healed.C // The length of the cut is what the test is about.
			p.heal()
			start := time.Now()
			l.more(t, 1)
			if took := time.Since(start); took > recovery {
				t.Errorf("the first receipt came %v after the link was whole, want at most %v", took, recovery)
			}
			l.more(t, 1_000)
			_, js := native(t, n.url())
			l.finish(t, js)
			l.inOrder(t)
		})
	}
}
