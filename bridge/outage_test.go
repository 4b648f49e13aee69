package bridge_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/router"
)

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
