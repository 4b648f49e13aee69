package cluster_test

import (
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// maxStall is how long receipts may stay away when a node of a cluster is killed: elections take 5 to 7 s.
const maxStall = 12 * time.Second

// TestClusterKill kills nodes of a cluster under load: the one that leads the queue's stream, then the one that the
// publishers' natstomp is connected to. Topics go on too, and no client of a natstomp is closed.
func TestClusterKill(t *testing.T) {
	t.Parallel()
	nodes := natsCluster(t)
	a, b := testserver.Start(t, "--nats-url", urls(nodes)), testserver.Start(t, "--nats-url", urls(nodes))
	c := rig.Connect(t, a.TCPAddr)
	c.AskFrame(rig.Send("/queue/kill", "first:0"))
	if got, want := durability(t, a), "nats;r=3"; got != want {
		t.Errorf("durability: got %q, want %q", got, want)
	}
	_, js := native(t, urls(nodes))
	l := newLoad("/queue/kill")
	for _, name := range []string{"p1", "p2"} {
		l.produce(t, a, name)
	}
	l.produce(t, b, "p3")
	l.consume(t, a)
	l.consume(t, b)
	topic := newTopicLoad(t, a, b)
	for _, victim := range []func() *natsServer{
		func() *natsServer { return leader(t, js, nodes, rig.QueueStream("kill")) },
		func() *natsServer { return homeOf(t, nodes, a) },
	} {
		l.more(t, 1_000)
		n := victim()
		n.kill()
		l.more(t, 1_000)
		n.start(t)
		l.more(t, 1_000)
	}
	topic.finish(t)
	l.finish(t, js)
	if l.gap > maxStall {
		t.Errorf("no receipt for %v, want at most %v", l.gap, maxStall)
	}
}

// TestOtherNodeGoesOn has the natstomp that serves a queue's consumer killed: what comes next is with the consumer on
// the other one at once, and what the first one held within the ack wait.
func TestOtherNodeGoesOn(t *testing.T) {
	t.Parallel()
	n := single(t, "")
	a, b := testserver.Start(t, "--nats-url", n.url()), testserver.Start(t, "--nats-url", n.url())
	ca, cb := rig.Connect(t, a.TCPAddr), rig.Connect(t, b.TCPAddr)
	ca.AskFrame(rig.Subscribe("s", "/queue/other", "ack", "client-individual", "prefetch-count", "1"))
	cb.AskFrame(rig.Send("/queue/other", "held"))
	if got := ca.Any(); string(got.Body) != "held" {
		t.Fatalf("got %s, want the held message", got)
	}
	cb.AskFrame(rig.Subscribe("s", "/queue/other", "ack", "client-individual"))
	a.Kill()
	start := time.Now()
	cb.DoFrame(rig.Send("/queue/other", "next"))
	got := cb.Any()
	if took := time.Since(start); string(got.Body) != "next" || got.Get("redelivered") != "" || took > recovery {
		t.Errorf("got %s after %v, want the next message within %v", got, took, recovery)
	}
	got = cb.Any()
	if string(got.Body) != "held" || got.Get("redelivered") != "true" {
		t.Errorf("got %s, want the held message with redelivered:true", got)
	}
}

// TestOtherNodeServesADurable has the natstomp that serves a durable subscription killed: it goes on from the other one,
// with what comes next at once, and with what was not acknowledged.
func TestOtherNodeServesADurable(t *testing.T) {
	t.Parallel()
	n := single(t, "")
	a, b := testserver.Start(t, "--nats-url", n.url()), testserver.Start(t, "--nats-url", n.url())
	sub := rig.Subscribe("d", "/topic-store/news", "durable", "true", "ack", "client-individual", "prefetch-count", "1")
	ca, cb := rig.Connect(t, a.TCPAddr, "client-id", "reader"), rig.Connect(t, b.TCPAddr, "client-id", "reader")
	pub := rig.Connect(t, b.TCPAddr)
	ca.AskFrame(sub)
	for _, body := range []string{"1", "2"} {
		pub.AskFrame(rig.Send("/topic-store/news", body))
	}
	ca.DoFrame(stompclient.New("ACK", "id", ca.Any().Get("ack")))
	if got := ca.Any(); string(got.Body) != "2" { // Asked for behind the ACK, which has therefore arrived.
		t.Fatalf("got %s, want the second message", got)
	}
	a.Kill()
	start := time.Now()
	cb.AskFrame(sub)
	pub.DoFrame(rig.Send("/topic-store/news", "3"))
	got := cb.Any()
	if took := time.Since(start); string(got.Body) != "3" || got.Get("redelivered") != "" || took > recovery {
		t.Errorf("got %s after %v, want the next message within %v", got, took, recovery)
	}
	cb.DoFrame(stompclient.New("ACK", "id", got.Get("ack")))
	if got = cb.Any(); string(got.Body) != "2" || got.Get("redelivered") != "true" {
		t.Errorf("got %s, want the second message with redelivered:true", got)
	}
}

// durability is what CONNECTED announces.
func durability(t *testing.T, srv *testserver.Server) string {
	t.Helper()
	c, err := stompclient.Dial(srv.TCPAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := c.Connect("1.2")
	if err != nil {
		t.Fatal(err)
	}
	return f.Get("durability")
}

// homeOf is the NATS server that a natstomp is connected to: the one that its log names last, else that of the start
// block.
func homeOf(t *testing.T, nodes []*natsServer, srv *testserver.Server) *natsServer {
	t.Helper()
	at, found := -1, (*natsServer)(nil)
	log := srv.Log()
	for _, n := range nodes {
		for _, mark := range []string{"nats-server 2.15.3 " + n.name + " ", `"msg":"nats reconnected","role":"data","url":"` + n.url() + `"`} {
			if i := strings.LastIndex(log, mark); i > at {
				at, found = i, n
			}
		}
	}
	if found == nil {
		t.Fatalf("no server in the log of natstomp:\n%s", log)
	}
	return found
}
