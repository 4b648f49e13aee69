package bench_test

import (
	"bytes"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/test/testserver"
)

// requestSubject is answered by one native responder, whoever asks.
const requestSubject, requestDestination = "stomp.query.bench", "/query/bench"

// BenchmarkRequest measures requests per second to a native responder, with a number of them in flight: on one STOMP
// connection, and by as many callers of nats.go's Request on one connection.
func BenchmarkRequest(b *testing.B) {
	srv := server(b)
	for _, inFlight := range []int{100, 1} {
		b.Run("inflight="+strconv.Itoa(inFlight), func(b *testing.B) { benchRequest(b, srv, inFlight) })
	}
}

func benchRequest(b *testing.B, srv *testserver.Server, inFlight int) {
	defer useCores()()
	responder := newPeer("responder")
	b.Cleanup(responder.close)
	nc, err := connect(responder, srv.NATSURL)
	if err == nil {
		_, err = nc.Subscribe(requestSubject, func(m *nats.Msg) { _ = m.Respond(body) }) // A lost reply is missed below.
	}
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		b.Fatal(err)
	}
	var peers []*peer
	for _, start := range []func() (*peer, error){
		func() (*peer, error) { return stompRequests(srv.TCPAddr, inFlight) },
		func() (*peer, error) { return goRequests(srv.NATSURL, inFlight) },
	} {
		p, err := start()
		b.Cleanup(p.close)
		if err != nil {
			b.Fatalf("%s: %v", p.name, err)
		}
		peers = append(peers, p)
	}
	rates := make([][]float64, len(peers))
	costs := make([]cost, len(peers))
	turn := func(i int, d time.Duration) float64 {
		before := cpuTime(srv.PID())
		sent, took, err := peers[i].flow(inFlight, d)
		if err != nil {
			b.Fatal(err)
		}
		costs[i].add(cpuTime(srv.PID())-before, float64(sent))
		return float64(sent) / took.Seconds()
	}
	for i := range peers {
		turn(i, smokeSlice)
		costs[i] = cost{}
	}
	rounds(b, func(d time.Duration) {
		for i := range peers {
			rates[i] = append(rates[i], turn(i, d))
		}
	})
	b.ReportMetric(median(rates[0]), "requests/s")
	b.ReportMetric(0, "lost")
	reportRatio(b, median(rates[0]), median(rates[1]), "ratio_to_natsgo")
	reportRatio(b, costs[0].each(), costs[1].each(), "cpu_ratio_to_natsgo")
}

// requestBatch is how many requests are sent at once.
func requestBatch(inFlight int) int { return max(1, inFlight/4) }

// stompRequests asks on one STOMP connection.
func stompRequests(addr string, inFlight int) (*peer, error) {
	p := newPeer("natstomp")
	nc, err := dialSTOMP(addr, "id", "0", "destination", "/reply/bench")
	if err != nil {
		return p, err
	}
	p.onClose(func() { _ = nc.Close() })
	s := p.sink()
	p.read(func() error {
		scan := newSTOMPScanner()
		var fault error
		scan.onMessage = func(head []byte) {
			if bytes.Contains(head, []byte("\nx-error:")) {
				fault = errors.New("a request failed")
			}
		}
		for {
			messages, _, err := scan.fill(nc)
			if err = errors.Join(err, fault); err != nil {
				return err
			}
			s.add(messages)
		}
	})
	p.batch = requestBatch(inFlight)
	frames := sendFrames(p.batch, requestDestination, "reply-to:/reply/bench\n")
	p.send = func(n int) error {
		_, err := nc.Write(frames[:n*(len(frames)/p.batch)])
		return err
	}
	return p, nil
}

// goRequests asks by so many callers on one connection of nats.go.
func goRequests(url string, callers int) (*peer, error) {
	p := newPeer("nats.go")
	nc, err := connect(p, url)
	if err != nil {
		return p, err
	}
	s := p.sink()
	asked := make(chan struct{}, callers)
	var mu sync.Mutex
	for range callers {
		p.readers.Go(func() {
			for range asked {
				if _, err := nc.Request(requestSubject, body, grace); err != nil {
					p.fail(err)
					return
				}
				mu.Lock()
				s.add(1)
				mu.Unlock()
			}
		})
	}
	p.onClose(func() { close(asked) })
	p.batch = requestBatch(callers)
	p.send = func(n int) error {
		for range n {
			asked <- struct{}{}
		}
		return nil
	}
	return p, nil
}
