package bench_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// prefetch is how many messages a consumer may hold, in both peers.
const prefetch = 500

// BenchmarkQueue measures one producer, with a number of receipts or PubAcks in flight, and one consumer that
// acknowledges each message. JetStream through nats.go works on a stream and durable that natstomp has made.
func BenchmarkQueue(b *testing.B) {
	srv := server(b)
	for _, window := range []int{100, 1} {
		b.Run("window="+strconv.Itoa(window), func(b *testing.B) { benchQueue(b, srv, window) })
	}
}

func benchQueue(b *testing.B, srv *testserver.Server, window int) {
	defer useCores()()
	peers := queuePeers(b, srv, window)
	results := make([]queueResults, len(peers))
	costs := make([]cost, len(peers))
	turn := func(i int, d time.Duration) {
		before := cpuTime(srv.PID())
		sent, err := peers[i].work(window, d, &results[i])
		if err != nil {
			b.Fatal(err)
		}
		costs[i].add(cpuTime(srv.PID())-before, float64(sent))
	}
	for i := range peers {
		turn(i, smokeSlice)
		results[i], costs[i] = queueResults{}, cost{}
	}
	rounds(b, func(d time.Duration) {
		for i := range peers {
			turn(i, d)
		}
	})
	for _, p := range peers {
		if err := p.drained(); err != nil {
			b.Fatal(err)
		}
	}
	stomp, viaGo := &results[0], &results[1]
	b.ReportMetric(median(stomp.stored), "receipts/s")
	b.ReportMetric(median(stomp.consumed), "consumed/s")
	b.ReportMetric(0, "lost")
	reportRatio(b, median(stomp.stored), median(viaGo.stored), "receipts_ratio_to_natsgo")
	reportRatio(b, median(stomp.consumed), median(viaGo.consumed), "consumed_ratio_to_natsgo")
	reportRatio(b, costs[0].each(), costs[1].each(), "cpu_ratio_to_natsgo")
	if window == 1 {
		b.ReportMetric(median(stomp.waits), "receipt_p50_us")
		reportRatio(b, median(stomp.waits), median(viaGo.waits), "receipt_p50_ratio_to_natsgo")
	}
}

// A queuePeer is one way to use a queue.
type queuePeer struct {
	*peer
	stored, consumed *sink
	stream           jetstream.Stream
}

// queueResults has one value per slice, waits one per message.
type queueResults struct {
	stored, consumed []float64 // per second
	waits            []float64 // from a SEND to its RECEIPT, in microseconds; with a window of 1 only
}

// work sends for d with at most window messages unconfirmed and waits until all are confirmed and consumed.
func (q *queuePeer) work(window int, d time.Duration, r *queueResults) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+grace)
	defer cancel()
	first, start := q.sent, time.Now()
	for time.Since(start) < d {
		if err := q.await(ctx, q.stored, q.sent+1-int64(window)); err != nil {
			return 0, err
		}
		n := window - int(q.sent-q.stored.got.Load())
		at := time.Now()
		q.sent += int64(n)
		if err := q.send(n); err != nil {
			return 0, err
		}
		if window == 1 {
			if err := q.await(ctx, q.stored, q.sent); err != nil {
				return 0, err
			}
			r.waits = append(r.waits, float64(time.Since(at).Nanoseconds())/1e3)
		}
	}
	if err := q.await(ctx, q.stored, q.sent); err != nil {
		return 0, err
	}
	sent := q.sent - first
	r.stored = append(r.stored, float64(sent)/time.Since(start).Seconds())
	if err := q.await(ctx, q.consumed, q.sent); err != nil {
		return 0, err
	}
	r.consumed = append(r.consumed, float64(sent)/time.Since(start).Seconds())
	return sent, q.complete()
}

// drained waits until every ack has reached the stream.
func (q *queuePeer) drained() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := q.stream.Info(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		if info.State.Msgs == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %d messages were acknowledged and are still stored", q.name, info.State.Msgs)
		}
	}
}

// queuePeers connects both peers, natstomp first.
func queuePeers(b *testing.B, srv *testserver.Server, window int) []*queuePeer {
	b.Helper()
	var peers []*queuePeer
	for _, start := range []struct {
		name string
		open func(q *queuePeer, srv *testserver.Server, channel string, window int) error
	}{{"natstomp", stompQueue}, {"nats.go", goQueue}} {
		q := &queuePeer{peer: newPeer(start.name)}
		q.stored, q.consumed = q.sink(), q.sink()
		b.Cleanup(q.close)
		channel := fmt.Sprintf("bench.%d.%s", window, start.name)
		if err := start.open(q, srv, channel, window); err != nil {
			b.Fatalf("%s: %v", q.name, err)
		}
		peers = append(peers, q)
	}
	return peers
}

// openStream gives q a look at the stream of a queue that exists.
func (q *queuePeer) openStream(srv *testserver.Server, channel string, opts ...jetstream.JetStreamOpt) (jetstream.JetStream, error) {
	nc, err := connect(q.peer, srv.NATSURL)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, opts...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	q.stream, err = js.Stream(ctx, bridge.QueueStream(channel))
	return js, err
}

// stompQueue is a queue through natstomp.
func stompQueue(q *queuePeer, srv *testserver.Server, channel string, window int) error {
	destination := "/queue/" + channel
	consumer, err := dialSTOMP(srv.TCPAddr, "id", "0", "destination", destination, "ack", "client-individual",
		"prefetch-count", strconv.Itoa(prefetch))
	if err != nil {
		return err
	}
	q.onClose(func() { _ = consumer.Close() })
	q.read(func() error { return consumeSTOMP(consumer, q.consumed) })
	producer, err := dialSTOMP(srv.TCPAddr)
	if err != nil {
		return err
	}
	q.onClose(func() { _ = producer.Close() })
	q.read(func() error { return countReceipts(producer, q.stored) })
	// A receipt need not be unique, and the server answers in order.
	q.send = inTurn([]net.Conn{producer}, sendFrames(window, destination, "receipt:1\n"), window)
	_, err = q.openStream(srv, channel)
	return err
}

func countReceipts(nc net.Conn, s *sink) error {
	scan := newSTOMPScanner()
	for {
		messages, receipts, err := scan.fill(nc)
		if err != nil {
			return err
		}
		if messages > 0 {
			return errors.New("a MESSAGE came that nobody asked for")
		}
		s.add(receipts)
	}
}

// consumeSTOMP acknowledges every message, those of one read with one write.
func consumeSTOMP(nc net.Conn, s *sink) error {
	var acks []byte
	faults := 0
	scan := newSTOMPScanner()
	scan.onMessage = func(head []byte) {
		id := headerValue(head, "\nack:")
		if id == nil || headerValue(head, "\nredelivered:") != nil {
			faults++
		}
		acks = append(append(append(acks, "ACK\nid:"...), id...), "\n\n\x00"...)
	}
	for {
		acks = acks[:0]
		messages, _, err := scan.fill(nc)
		if err != nil {
			return err
		}
		if faults > 0 {
			return errors.New("a MESSAGE came without ack header or a second time")
		}
		if _, err := nc.Write(acks); err != nil {
			return err
		}
		s.add(messages)
	}
}

// goQueue is a queue through nats.go.
func goQueue(q *queuePeer, srv *testserver.Server, channel string, window int) error {
	if err := makeQueue(srv.TCPAddr, "/queue/"+channel); err != nil {
		return err
	}
	if _, err := q.openStream(srv, channel); err != nil {
		return err
	}
	if err := q.consumeGo(); err != nil {
		return err
	}
	// A producer has a connection of its own, as with STOMP.
	producer, err := connect(q.peer, srv.NATSURL)
	if err != nil {
		return err
	}
	js, err := jetstream.New(producer, jetstream.WithPublishAsyncMaxPending(window+1), // Stays below: no stalls.
		jetstream.WithPublishAsyncAckHandler(func(jetstream.JetStream, *nats.Msg, *jetstream.PubAck) { q.stored.add(1) }),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { q.fail(err) }))
	if err != nil {
		return err
	}
	subject := "stomp.queue." + channel
	q.send = func(n int) error {
		for range n {
			if _, err := js.PublishAsync(subject, body); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// makeQueue makes a queue by using it, and leaves it without consumer.
func makeQueue(addr, destination string) error {
	c, err := stompclient.Dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := handshake(c, []string{"id", "0", "destination", destination}); err != nil {
		return err
	}
	if err := c.Send(stompclient.New("UNSUBSCRIBE", "id", "0", "receipt", "left")); err != nil {
		return err
	}
	f, err := c.Read(grace)
	if err == nil && f.Command != "RECEIPT" {
		err = fmt.Errorf("UNSUBSCRIBE was answered by %s", f)
	}
	return err
}

// consumeGo starts to consume the stream, acknowledging each message.
func (q *queuePeer) consumeGo() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	consumer, err := q.stream.Consumer(ctx, "stomp")
	if err != nil {
		return err
	}
	running, err := consumer.Consume(func(m jetstream.Msg) {
		if err := m.Ack(); err != nil {
			q.fail(err)
		}
		q.consumed.add(1)
	}, jetstream.PullMaxMessages(prefetch), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { q.fail(err) }))
	if err != nil {
		return err
	}
	q.onClose(func() {
		running.Stop()
		<-running.Closed()
	})
	return nil
}
