package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/bridge/broker"
	"github.com/natstomp/natstomp/router"
)

// link is the way to a server on TCP, which a test breaks.
type link struct {
	l    net.Listener
	to   string
	deaf atomic.Bool // what the server says is lost
	wg   sync.WaitGroup

	mu    sync.Mutex
	down  bool                  // guarded by mu
	conns map[net.Conn]struct{} // guarded by mu
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{l: l, to: to, conns: map[net.Conn]struct{}{}}
	k.wg.Go(k.accept)
	t.Cleanup(func() {
		_ = l.Close()
		k.breakDown()
		k.wg.Wait()
	})
	return k
}

func (k *link) accept() {
	for {
		c, err := k.l.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", k.to)
		if err != nil || !k.add(c, s) {
			_ = c.Close()
			continue
		}
		k.wg.Go(func() {
			_, _ = io.Copy(s, c) // Ends with either side.
			_ = s.Close()
		})
		k.wg.Go(func() {
			_, _ = io.Copy(ear{k, c}, s) // See above.
			_ = c.Close()
		})
	}
}

// ear hears what the server says.
type ear struct {
	k *link
	c net.Conn
}

func (e ear) Write(p []byte) (int, error) {
	if e.k.deaf.Load() {
		return len(p), nil
	}
	return e.c.Write(p)
}

func (k *link) add(conns ...net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range conns {
		if k.down {
			_ = c.Close()
			continue
		}
		k.conns[c] = struct{}{}
	}
	return !k.down
}

// breakDown ends all connections and lets none be made until restore.
func (k *link) breakDown() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.down = true
	for c := range k.conns {
		_ = c.Close()
	}
	clear(k.conns)
}

func (k *link) restore() {
	k.deaf.Store(false)
	k.mu.Lock()
	k.down = false
	k.mu.Unlock()
}

// remote is a bridge on an external NATS with a link of its own.
type remote struct {
	*rig
	link   *link
	broker *broker.Broker
}

// externalServer is a server on TCP with JetStream.
func externalServer(t *testing.T) *server.Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(patience) {
		t.Fatal("NATS is not ready")
	}
	return srv
}

// newRemote starts a bridge on srv.
func newRemote(t *testing.T, srv *server.Server, change func(*bridge.Config)) *remote {
	t.Helper()
	n := &remote{rig: &rig{t: t}, link: newLink(t, srv.Addr().String())}
	var err error
	if n.router, err = router.New(router.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	if n.nc, err = nats.Connect(srv.ClientURL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.nc.Close)
	if n.js, err = jetstream.New(n.nc); err != nil {
		t.Fatal(err)
	}
	cfg := broker.DefaultConfig()
	cfg.URL = n.link.l.Addr().String()
	b, err := broker.Start(t.Context(), cfg, broker.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	n.broker = b
	n.run(change)
	return n
}

// run starts the bridge, which ends with the test.
func (n *remote) run(change func(*bridge.Config)) {
	n.t.Helper()
	b := n.broker
	cfg := bridge.Config{
		Data: b.Data, Control: b.Control, Wide: b.Wide, JS: b.JS, Router: n.router,
		Logger:         slog.New(slog.DiscardHandler),
		PublishTimeout: patience,
		RequestTimeout: 5 * time.Second,
		Queues:         bridge.QueueConfig{DedupWindow: time.Minute, Settings: size(1 << 20)},
		External: &bridge.External{
			Replicas: b.Replicas, Data: b.Link(broker.DataRole), Control: b.Link(broker.ControlRole),
			Denied: func(bool, bool, string, time.Time) bool { return false },
		},
	}
	if change != nil {
		change(&cfg)
	}
	n.Bridge = bridge.New(cfg)
	if err := n.Start(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
	b.OnLink(func(r broker.Role) { n.LinkUp(r == broker.ControlRole) })
	for _, join := range []func(context.Context) error{b.Join, n.Join} {
		if err := join(n.t.Context()); err != nil {
			n.t.Fatal(err)
		}
	}
	n.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		n.Stop(ctx)
		if err := b.Stop(patience, broker.Marks{}); err != nil {
			n.t.Error(err)
		}
	})
}

// noticed waits until all connections know that the link is down.
func (n *remote) noticed() {
	n.t.Helper()
	eventually(n.t, "connected", func() (got, want any) {
		return n.broker.Data.IsConnected() || n.broker.Control.IsConnected() || n.broker.Wide.IsConnected(), false
	})
}

// begin stores messages i to j-1 and does not wait.
func (n *remote) begin(destination string, i, j int, results chan<- error) {
	n.t.Helper()
	for ; i < j; i++ {
		n.SendQueue(n.message(destination, strconv.Itoa(i), bridge.SendOptions{}), func(err error) { results <- err })
	}
}

// all waits for so many results, none of which may be an error.
func all(t *testing.T, results <-chan error, count int) {
	t.Helper()
	for range count {
		if err := outcome(t, "a message", results); err != nil {
			t.Fatal(err)
		}
	}
}

// bodies are the messages of a stream, in order.
func (n *remote) bodies(stream string) (list []string) {
	n.t.Helper()
	s, err := n.js.Stream(n.t.Context(), stream)
	if err != nil {
		n.t.Fatal(err)
	}
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		m, err := s.GetMsg(n.t.Context(), seq)
		if err != nil {
			n.t.Fatal(err)
		}
		list = append(list, string(m.Data))
	}
	return list
}

// inOrder fails the test unless the stream has each of 0 to count-1 once, in order.
func (n *remote) inOrder(stream string, count int) {
	n.t.Helper()
	got := n.bodies(stream)
	if len(got) != count {
		n.t.Errorf("%d messages stored, want %d", len(got), count)
	}
	for i, body := range got {
		if body != strconv.Itoa(i) {
			n.t.Fatalf("message %d is %s", i, body)
		}
	}
}

// stored waits until the stream has so many messages.
func (n *remote) stored(stream string, count uint64) {
	n.t.Helper()
	eventually(n.t, "messages stored", func() (got, want any) {
		s, err := n.js.Stream(n.t.Context(), stream)
		if err != nil {
			return err, count
		}
		return s.CachedInfo().State.Msgs, count
	})
}

// TestPubAcksLost loses all that the server says about stored messages, then the link: what is sent again is stored
// once, and what follows is behind it.
func TestPubAcksLost(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	stream := bridge.QueueStream("acks")
	results := make(chan error, 1_000)
	n.begin("/queue/acks", 0, 1, results)
	all(t, results, 1)
	n.link.deaf.Store(true)
	n.begin("/queue/acks", 1, 500, results)
	n.stored(stream, 500)
	n.link.breakDown()
	n.begin("/queue/acks", 500, 600, results)
	n.link.restore()
	n.begin("/queue/acks", 600, 700, results)
	all(t, results, 699)
	n.inOrder(stream, 700)
	if got := n.Stats().Retries; got < 499 {
		t.Errorf("%d retries, want at least 499", got)
	}
}

// TestBatchAckLost loses the PubAck of a COMMIT: it is applied once.
func TestBatchAckLost(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	stream := bridge.QueueStream("batch")
	results := make(chan error, 1)
	n.begin("/queue/batch", 0, 1, results)
	all(t, results, 1)
	route := n.route("/queue/batch", router.Send)
	var sends []bridge.Send
	for i := range 5 {
		sends = append(sends, bridge.Send{Route: route, Body: []byte(strconv.Itoa(i + 1))})
	}
	n.link.deaf.Store(true)
	n.SendBatch(sends, func(err error) { results <- err })
	n.stored(stream, 6)
	n.link.breakDown()
	n.link.restore()
	all(t, results, 1)
	n.inOrder(stream, 6)
}

// TestLinkDownAndUp sends while the link is down; nothing is reported before it is up again.
func TestLinkDownAndUp(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	stream := bridge.QueueStream("down")
	results := make(chan error, 1_000)
	n.begin("/queue/down", 0, 1, results)
	all(t, results, 1)
	n.link.breakDown()
	n.begin("/queue/down", 1, 200, results)
	select {
	case err := <-results:
		t.Fatalf("a result while the link is down: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	n.link.restore()
	all(t, results, 199)
	n.inOrder(stream, 200)
}

// TestLinkFlaps breaks the link again and again while several producers send.
func TestLinkFlaps(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	const producers, count = 3, 800
	results := make(chan error, producers*count)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() { n.begin(fmt.Sprintf("/queue/flap/%d", p), 0, count, results) })
	}
	for range 8 {
		all(t, results, 50)
		n.link.breakDown()
		n.link.restore()
	}
	wg.Wait()
	all(t, results, producers*count-8*50)
	for p := range producers {
		n.inOrder(bridge.QueueStream(fmt.Sprintf("flap.%d", p)), count)
	}
}

// TestTopicsOverABrokenLink sends to a topic with and without confirmation around an outage.
func TestTopicsOverABrokenLink(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	sub, err := n.nc.SubscribeSync("t")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	s := n.NewSender()
	route := n.route("/topic/t", router.Send)
	results := make(chan error, 100)
	put := func(body string, confirmed bool) {
		t.Helper()
		var done func(error)
		if confirmed {
			done = func(err error) { results <- err }
		}
		if err := s.Topic(route, nil, []byte(body), "", done); err != nil {
			t.Fatal(err)
		}
	}
	put("1", true)
	all(t, results, 1)
	n.link.breakDown()
	n.noticed()
	put("2", true)
	put("dropped", false)
	put("3", true)
	s.Flush(func(err error) { results <- err })
	n.link.restore()
	all(t, results, 3)
	put("4", false)
	for _, want := range []string{"1", "2", "3", "4"} {
		m, err := sub.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got, want := n.Stats().Drops, uint64(1); got != want {
		t.Errorf("dropped: got %d, want %d", got, want)
	}
}

// TestConfirmationLost loses the answer to the flush of a topic SEND: it is sent again, and never confirmed falsely.
func TestConfirmationLost(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	sub, err := n.nc.SubscribeSync("t")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	n.link.deaf.Store(true)
	results := make(chan error, 1)
	s := n.NewSender()
	if err := s.Topic(n.route("/topic/t", router.Send), nil, []byte("x"), "", func(err error) { results <- err }); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.NextMsg(patience); err != nil {
		t.Fatal(err)
	}
	n.link.breakDown()
	select {
	case err := <-results:
		t.Fatalf("a result although nothing confirmed it: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	n.link.restore()
	all(t, results, 1)
	if _, err := sub.NextMsg(patience); err != nil {
		t.Errorf("it was not sent again: %v", err)
	}
}

// TestPublishTimeoutOfAnOutage has the link stay down for too long.
func TestPublishTimeoutOfAnOutage(t *testing.T) {
	n := newRemote(t, externalServer(t), func(cfg *bridge.Config) { cfg.PublishTimeout = 3 * time.Second })
	results := make(chan error, 2)
	n.begin("/queue/late", 0, 1, results)
	all(t, results, 1)
	n.link.breakDown()
	n.begin("/queue/late", 1, 2, results)
	if err := outcome(t, "the queue", results); !errors.Is(err, bridge.ErrTimeout) {
		t.Errorf("queue: got %v, want %v", err, bridge.ErrTimeout)
	}
	s := n.NewSender()
	if err := s.Topic(n.route("/topic/t", router.Send), nil, nil, "", func(err error) { results <- err }); err != nil {
		t.Fatal(err)
	}
	if err := outcome(t, "the topic", results); !errors.Is(err, bridge.ErrTimeout) {
		t.Errorf("topic: got %v, want %v", err, bridge.ErrTimeout)
	}
	n.link.restore()
	eventually(t, "a message after the outage", func() (got, want any) {
		n.begin("/queue/late", 2, 3, results)
		return outcome(t, "the queue", results), nil
	})
}

// TestAbandon ends all waiting.
func TestAbandon(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	results := make(chan error, 10)
	n.begin("/queue/stop", 0, 1, results)
	all(t, results, 1)
	n.link.breakDown()
	n.begin("/queue/stop", 1, 4, results)
	if err := n.NewSender().Topic(n.route("/topic/t", router.Send), nil, nil, "", func(err error) { results <- err }); err != nil {
		t.Fatal(err)
	}
	n.Abandon()
	for range 4 {
		if err := outcome(t, "what waits", results); !errors.Is(err, bridge.ErrStopped) {
			t.Errorf("got %v, want %v", err, bridge.ErrStopped)
		}
	}
}

// TestBrowseOverAnOutage breaks the link while a queue is looked at: the look goes on behind what it has shown.
func TestBrowseOverAnOutage(t *testing.T) {
	n := newRemote(t, externalServer(t), nil)
	const count, octets = 40, 10_000
	for i := range count {
		if err := n.send("/queue/look", strconv.Itoa(i)+" "+strings.Repeat("x", octets)); err != nil {
			t.Fatal(err)
		}
	}
	l := newLooker(2 * octets)
	look := n.browse("/queue/look", l)
	defer look.Stop(nil)
	for i := range count {
		switch i {
		case 10:
			n.link.breakDown()
			n.noticed()
		case 20:
			n.link.deaf.Store(true)
		}
		l.more(2 * octets)
		look.Wake()
		switch i {
		case 10:
			n.link.restore()
		case 20:
			n.link.breakDown()
			n.link.restore()
		}
		tail := l.next(t)
		if _, body, _ := strings.Cut(tail, "\n\n"); !strings.HasPrefix(body, strconv.Itoa(i)+" ") {
			t.Fatalf("message %d: got %.300q", i, tail)
		}
	}
	if tail := l.next(t); !strings.Contains(tail, "browser:end\n") {
		t.Errorf("the end: got %q", tail)
	}
}
