package interop_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

// goStomp is go-stomp, each scenario in a goroutine of its own.
type goStomp struct{}

func (goStomp) String() string { return "gostomp" }

// goScenarios are the scenarios of testdata/stomp_client.py as a go-stomp program would have them.
var goScenarios = map[string]func(*goRun) error{
	"connect": goConnect, "fan_out": goFanOut, "ack_modes": goAckModes, "competing": goCompeting, "nack": goNack,
	"reconnect": goReconnect, "receipts": goReceipts, "live": goLive, "transactions": goTransactions,
	"bodies": goBodies, "headers": goHeaders, "heart_beat": goHeartBeat, "errors": goErrors,
	"publish": goPublish, "consume": goConsume, "request": goRequest, "respond": goRespond,
}

func (goStomp) start(t *testing.T, srv *testserver.Server, scenario string, o options) *session {
	t.Helper()
	run, ok := goScenarios[scenario]
	if !ok {
		t.Fatalf("no scenario %q", scenario)
	}
	r := &goRun{
		options: o, addr: srv.TCPAddr,
		queue: "/queue/" + o.Channel, topic: "/topic/" + o.Channel,
	}
	r.session = newSession(t, "go-stomp "+scenario, r.closeAll)
	go func() {
		err := run(r)
		r.closeAll()
		r.pumps.Wait()
		r.session.end(err)
	}()
	return r.session
}

// goRun is one scenario's view of the test: where the server is, what to do, where to report.
type goRun struct {
	options

	session      *session
	addr         string
	queue, topic string
	pumps        sync.WaitGroup

	mu    sync.Mutex
	conns []*tappedConn // Guarded by mu.
}

// report adds an event.
func (r *goRun) report(kind, who, text string) {
	r.session.add(event{Event: kind, Who: who, MS: r.elapsed(), Text: text})
}

// reportFrame adds the event of a frame that came in.
func (r *goRun) reportFrame(kind, who string, header *frame.Header, body []byte) {
	headers := make(map[string]string)
	for i := range header.Len() {
		name, value := header.GetAt(i)
		if _, repeated := headers[name]; !repeated {
			headers[name] = value
		}
	}
	r.session.add(event{Event: kind, Who: who, MS: r.elapsed(), Headers: headers, Body: body})
}

func (r *goRun) elapsed() float64 { return r.session.now() }

// closeAll closes every socket, which ends go-stomp's goroutines.
func (r *goRun) closeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
}

// tappedConn counts what passes a socket while it idles.
type tappedConn struct {
	*net.TCPConn

	in, out atomic.Int64
}

func (c *tappedConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	c.in.Add(int64(n))
	return n, err
}

func (c *tappedConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	c.out.Add(int64(n))
	return n, err
}

// goConn is one connection that reports what it sees.
type goConn struct {
	*stomp.Conn

	run    *goRun
	who    string
	socket *tappedConn
}

// dial connects with the version of the scenario.
func (r *goRun) dial(who string, opts ...func(*stomp.Conn) error) (*goConn, error) {
	version := r.Version
	if version == "" {
		version = "1.2"
	}
	return r.dialVersion(who, version, opts...)
}

// dialVersion connects with one version, or offers all that go-stomp knows if it is empty.
func (r *goRun) dialVersion(who, version string, opts ...func(*stomp.Conn) error) (*goConn, error) {
	raw, err := net.Dial("tcp", r.addr)
	if err != nil {
		return nil, err
	}
	socket := &tappedConn{TCPConn: raw.(*net.TCPConn)}
	r.mu.Lock()
	r.conns = append(r.conns, socket)
	r.mu.Unlock()

	opts = append(opts,
		stomp.ConnOpt.Logger(silent{}),
		stomp.ConnOpt.RcvReceiptTimeout(rig.Patience),
		stomp.ConnOpt.DisconnectReceiptTimeout(rig.Patience),
		stomp.ConnOpt.UnsubscribeReceiptTimeout(time.Second),
		stomp.ConnOpt.ResponseHeaders(func(h *frame.Header) { r.reportFrame("connected", who, h, nil) }),
	)
	if version != "" {
		opts = append(opts, stomp.ConnOpt.AcceptVersion(stomp.Version(version)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()
	c, err := stomp.ConnectWithContext(ctx, socket, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: connecting: %w", who, err)
	}
	return &goConn{Conn: c, run: r, who: who, socket: socket}, nil
}

// silent keeps go-stomp from writing on the test's standard error.
type silent struct{}

func (silent) Debugf(string, ...any)   {}
func (silent) Infof(string, ...any)    {}
func (silent) Warningf(string, ...any) {}
func (silent) Errorf(string, ...any)   {}
func (silent) Debug(string)            {}
func (silent) Info(string)             {}
func (silent) Warning(string)          {}
func (silent) Error(string)            {}

// close leaves with a DISCONNECT whose receipt is awaited.
func (c *goConn) close() error {
	if err := c.Disconnect(); err != nil {
		return fmt.Errorf("%s: disconnecting: %w", c.who, err)
	}
	c.run.report("disconnected", c.who, "")
	return nil
}

// drop resets the connection, as a crash of the machine's program does.
func (c *goConn) drop() error {
	if err := c.socket.SetLinger(0); err != nil {
		return err
	}
	return c.socket.Close()
}

// send sends without a receipt.
func (c *goConn) send(destination, body string, headers ...pair) error {
	return c.Send(destination, "", []byte(body), sendHeaders(headers)...)
}

// store sends and waits for the receipt.
func (c *goConn) store(destination, body string, headers ...pair) error {
	opts := append(sendHeaders(headers), stomp.SendOpt.Receipt)
	if err := c.Send(destination, "", []byte(body), opts...); err != nil {
		return fmt.Errorf("%s: sending %.20q to %s: %w", c.who, body, destination, err)
	}
	return nil
}

func sendHeaders(headers []pair) []func(*frame.Frame) error {
	opts := make([]func(*frame.Frame) error, 0, len(headers)+1)
	for _, h := range headers {
		opts = append(opts, stomp.SendOpt.Header(h[0], h[1]))
	}
	return opts
}

// goSub is a subscription whose messages wait in a long queue: go-stomp stops reading the socket, and with it the
// receipts, when its own 16 places are taken.
type goSub struct {
	*stomp.Subscription

	conn     *goConn
	messages chan *stomp.Message
}

// probe begins the body of the messages that only show that a subscription is live.
const probe = "probe "

// request subscribes and does not wait for anything: go-stomp cannot ask for a receipt of a SUBSCRIBE (it takes the
// RECEIPT for the end of the subscription).
func (c *goConn) request(destination, ack string, headers ...pair) (*goSub, error) {
	mode := map[string]stomp.AckMode{
		"auto": stomp.AckAuto, "client": stomp.AckClient, "client-individual": stomp.AckClientIndividual,
	}[ack]
	var opts []func(*frame.Frame) error
	for _, h := range headers {
		opts = append(opts, stomp.SubscribeOpt.Header(h[0], h[1]))
	}
	sub, err := c.Subscribe(destination, mode, opts...)
	if err != nil {
		return nil, fmt.Errorf("%s: subscribing: %w", c.who, err)
	}
	s := &goSub{Subscription: sub, conn: c, messages: make(chan *stomp.Message, 4096)}
	c.run.pumps.Go(s.pump)
	return s, nil
}

// subscribe subscribes. The subscription is live when subscribe returns, except on a queue, where that makes no
// difference. What a go-stomp program can do to know is to send itself a message.
func (c *goConn) subscribe(destination, ack string, headers ...pair) (*goSub, error) {
	s, err := c.request(destination, ack, headers...)
	if err != nil || !strings.HasPrefix(destination, "/topic/") {
		return s, err
	}
	// To one of the topics that a wildcard covers.
	if err := c.store(strings.NewReplacer("*", "probe", ">", "probe").Replace(destination), probe+c.who); err != nil {
		return nil, err
	}
	for {
		m, err := s.nextAny()
		if err != nil {
			return nil, fmt.Errorf("after a receipted SEND to its own subscription: %w", err)
		}
		if string(m.Body) == probe+c.who {
			return s, nil
		}
	}
}

// pump reports and queues what the subscription delivers, until its end.
func (s *goSub) pump() {
	defer close(s.messages)
	for m := range s.C {
		var refused *stomp.Error
		switch {
		case errors.As(m.Err, &refused) && refused.Frame != nil && refused.Frame.Header.Get(frame.ContentType) != "":
			s.conn.run.reportFrame("error", s.conn.who, refused.Frame.Header, refused.Frame.Body)
		case m.Err != nil:
			s.conn.run.report("ended", s.conn.who, m.Err.Error())
		default:
			if !strings.HasPrefix(string(m.Body), probe) {
				s.conn.run.reportFrame("message", s.conn.who, m.Header, m.Body)
			}
			s.messages <- m
		}
	}
}

// next returns the next message that is no probe.
func (s *goSub) next() (*stomp.Message, error) {
	for {
		m, err := s.nextAny()
		if err != nil || !strings.HasPrefix(string(m.Body), probe) {
			return m, err
		}
	}
}

func (s *goSub) nextAny() (*stomp.Message, error) {
	timeout := time.NewTimer(rig.Patience)
	defer timeout.Stop()
	select {
	case m, ok := <-s.messages:
		if !ok {
			return nil, fmt.Errorf("%s: ended before a further message", s.conn.who)
		}
		return m, nil
	case <-timeout.C:
		return nil, fmt.Errorf("%s: no further message", s.conn.who)
	}
}

// take returns the next count messages.
func (s *goSub) take(count int) ([]*stomp.Message, error) {
	out := make([]*stomp.Message, 0, count)
	for range count {
		m, err := s.next()
		if err != nil {
			return nil, fmt.Errorf("after %d of %d: %w", len(out), count, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// takeAcked takes messages and acknowledges each.
func (s *goSub) takeAcked(count int) error {
	for range count {
		m, err := s.next()
		if err != nil {
			return err
		}
		if err := s.conn.Ack(m); err != nil {
			return err
		}
	}
	return nil
}
