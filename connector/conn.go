package connector

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/connector/listen"
	"github.com/natstomp/natstomp/router"
)

// drainTime is how long input is read and dropped after an ERROR, so that the peer reads it (DESIGN section 3).
const drainTime = time.Second

// conn is one client's session. serve runs on the reader goroutine, starts the writer and joins it.
type conn struct {
	// Immutable.
	srv     *Server
	net     net.Conn
	via     transport
	id      string // names the connection to operators
	name    string // unguessable; names the connection on NATS for no-local
	log     *slog.Logger
	audit   *slog.Logger
	refused bool // above limits.connections: the handshake is answered with an ERROR
	writer  sync.WaitGroup
	work    sync.WaitGroup // work in the background, joined by the reader
	wake    chan struct{}  // tells the writer that there is something to do
	ended   chan struct{}  // closed when the session is over
	read    reader
	stall   stallGuard
	traffic traffic
	began   time.Time

	// Owned by the reader; subs is changed by enroll and withdraw only.
	dec       *frame.Decoder
	connected bool
	session   string
	identity  string                   // whose durable subscriptions and x-dedup-ids these are; the name in who
	token     string                   // of the WebSocket handshake, until CONNECT
	subs      map[string]*subscription // by id, or by destination for a 1.0 client without ids
	byIndex   map[uint32]*subscription
	gone      map[uint32]uint64 // ended subscriptions: the newest message of each
	lastIndex uint32
	noLocal   int // subscriptions with no-local
	txs       map[string]*transaction
	txBytes   int
	locals    map[local]*subscription // by destination
	routes    map[string]router.Route // parsed destinations of SENDs
	published bool                    // a SEND that is not stored may not have reached NATS yet
	tokens    string                  // begins the reply-to of every request that this connection answers
	rate      frameRate
	maxBody   int // of the frames that are read

	sender *bridge.Sender

	// Written by the reader before CONNECTED, read by others only afterwards.
	version frame.Version
	beat    time.Duration // the writer's effective heart-beat interval, 0: none

	user string // guarded by srv.mu; whose connection it counts as, empty: nobody's

	rights atomic.Pointer[authz.Session] // nil: everything is allowed

	queueSubs atomic.Int32 // queue subscriptions, to save a lock where there are none
	failed    atomic.Bool  // an ERROR is in the outbox, or the socket is gone; set with mu held

	mu       sync.Mutex
	shown    identity                   // guarded by mu
	who      auth.Identity              // guarded by mu
	expiry   *time.Timer                // guarded by mu; ends the session, nil: nothing does
	out      outbox                     // guarded by mu
	receipts receipts                   // guarded by mu
	fault    error                      // guarded by mu; what the ERROR tells
	lost     []autoAck                  // guarded by mu; deliveries that were dropped unwritten
	revoked  bool                       // guarded by mu; the session has lost what it rests on
	queues   map[*subscription]struct{} // guarded by mu; queue subscriptions that pull
	unacked  int                        // guarded by mu; messages that the client holds
	held     int                        // guarded by mu; octets of those
	requests map[*request]struct{}      // guarded by mu; that wait for an answer
	asked    map[uint64]openRequest     // guarded by mu; that this connection has to answer, by number

	lastRequest uint64 // guarded by mu; number of the newest of those

	starved bool          // guarded by mu; a pull waits for room in the connection's limits
	waits   *subscription // guarded by mu; whose turn it is when there is room in the limits on unacknowledged messages
}

func newConn(s *Server, nc net.Conn, token string, refused bool) *conn {
	c := &conn{
		srv:     s,
		net:     nc,
		via:     transportOf(nc),
		id:      randomHex()[:16],
		name:    randomHex(),
		log:     s.log.With("remote", nc.RemoteAddr().String()),
		audit:   s.audit.With("remote", nc.RemoteAddr().String()),
		token:   token,
		refused: refused,
		wake:    make(chan struct{}, 1),
		ended:   make(chan struct{}),
		subs:    make(map[string]*subscription),
		byIndex: make(map[uint32]*subscription),
		gone:    make(map[uint32]uint64),
		txs:     make(map[string]*transaction),
		routes:  make(map[string]router.Route),
		queues:  make(map[*subscription]struct{}),
		sender:  s.bridge.NewSender(),
		began:   time.Now(),
	}
	c.receipts.room.L = &c.mu
	c.stall.below = listen.Stalls(nc)
	c.read = reader{
		conn: nc, octets: &c.traffic.octetsIn, until: c.began.Add(s.cfg.Limits.ConnectTimeout),
		over: make(chan struct{}),
	}
	if c.via != viaLocal {
		c.read.memory = s.memory
	}
	c.dec = frame.NewDecoder(&c.read, s.handshakeLimits())
	return c
}

// serve runs the session to its end.
func (c *conn) serve() {
	c.writer.Add(1)
	go func() {
		defer c.writer.Done()
		c.writeLoop()
	}()
	receipt, err := c.readLoop()
	c.finish(receipt, err)
}

// readLoop handles frames until one fails or the peer leaves. It returns the receipt header of the frame that failed.
func (c *conn) readLoop() (receipt string, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic in a session", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	var f frame.Frame
	for {
		if c.connected && int64(c.maxBody) != c.srv.maxBody.Load() {
			c.setLimits()
		}
		err := c.dec.Decode(&f)
		if err == nil {
			c.traffic.read(f.Command)
			if !c.read.frame(f.Command) {
				err = os.ErrDeadlineExceeded
			}
		}
		switch {
		case err == nil && c.failed.Load():
			err = errFailed // What came in one read with the frame that failed.
		case err == nil:
			err = c.handle(&f)
		}
		if err != nil {
			return c.receiptOf(&f), c.explain(err)
		}
	}
}

// explain says what a read that timed out means.
func (c *conn) explain(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return c.explainLimit(err)
	}
	switch {
	case c.failed.Load():
		return errFailed
	case c.read.interrupted():
		return errShutdown
	case c.connected:
		c.audit.Info("client.timeout", "session", c.session)
		return errTimeout
	case c.read.octets.Load() == 0:
		return errTimeout // A probe of the port.
	}
	return refuse("no complete CONNECT frame within limits.connect_timeout (%s); a frame ends with a NUL octet",
		c.srv.cfg.Limits.ConnectTimeout)
}

// receiptOf is the receipt header of a frame, as far as it was decoded.
func (c *conn) receiptOf(f *frame.Frame) string {
	r, _ := f.Lookup("receipt")
	if len(r) > c.srv.cfg.Limits.ID && c.srv.cfg.Limits.ID > 0 {
		return ""
	}
	return string(r)
}

// finish ends the session: nothing more is delivered, what the client holds goes back, what is due is written, then
// the socket is closed.
func (c *conn) finish(receipt string, cause error) {
	if end, ok := c.net.(*localEnd); ok {
		end.deafen()
	}
	c.mu.Lock()
	if c.expiry != nil {
		c.expiry.Stop()
	}
	c.mu.Unlock()
	for _, s := range c.subs {
		s.close()
	}
	orderly := errors.Is(cause, errDisconnect) || errors.Is(cause, io.EOF) && !c.owesAutos()
	quiet := !orderly && silent(cause)
	if quiet {
		// Nobody reads what is still to be written; the writer must not hold up the return of messages. The socket is
		// closed after that: who sees its end finds the messages back.
		c.silence()
		c.endWriter() // It ends at once, and then what it had is known to be lost.
	}
	c.leave()
	if !quiet {
		c.conclude(receipt, cause, orderly)
	}
	c.returnLost() // What the slow-consumer policy dropped does not wait for the socket.
	stop := c.hurry()
	c.endWriter()
	stop()
	c.returnLost()
	c.work.Wait()
	c.srv.freeSlot(c)
	if !quiet {
		c.drain(orderly)
	}
	_ = c.net.Close() // The session is over either way.
	c.logEnd(cause)
}

// hurry cuts a session that was revoked and whose client does not read why. The caller stops it.
func (c *conn) hurry() (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.revoked {
		return func() {}
	}
	late := time.AfterFunc(drainTime, c.abort)
	return func() { late.Stop() }
}

// owesAutos says whether messages of ack:auto wait to be written: a peer that has closed its side would lose them.
func (c *conn) owesAutos() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out.autos) > 0
}

// endWriter joins the writer; what it has not written is lost.
func (c *conn) endWriter() {
	c.writer.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = append(c.lost, c.out.abandon()...)
	c.failed.Store(true)
	c.receipts.room.Broadcast()
}

// logEnd logs how the session ended; not earlier, since a log may block and locks were held.
func (c *conn) logEnd(cause error) {
	c.mu.Lock()
	fault := c.fault
	c.mu.Unlock()
	if fault == nil {
		c.log.Debug("client.disconnected", "session", c.session, "cause", fmt.Sprint(cause))
		return
	}
	if errors.Is(fault, errAuthentication) {
		c.log.Debug("client.error", "session", c.session, "text", errAuthentication.Text) // The audit log tells of it.
		return
	}
	if e, known := clientError(fault); known {
		c.log.Info("client.error", "session", c.session, "text", printable(e.Text))
		return
	}
	c.log.Error("session failed", "session", c.session, "err", fault)
}

// leave ends all subscriptions. It returns when what the client held is on its way back.
func (c *conn) leave() {
	var wg sync.WaitGroup
	for _, s := range c.subs {
		s.close()
		wg.Go(s.leave)
	}
	c.cancelRequests()
	wg.Wait()
}

// conclude writes the last frame of a session, in its turn after the receipts that are due.
func (c *conn) conclude(receipt string, cause error, orderly bool) {
	switch {
	case errors.Is(cause, errFailed):
		return // An ERROR is on its way already.
	case orderly:
		done := c.reserve(receipt, 0, func() { c.out.closed = true })
		c.flushTopics(func(err error) { c.settle(done, err) })
	default:
		c.settle(c.reserve(receipt, 0, nil), cause)
	}
}

// flushTopics calls done when NATS has all topic SENDs of this session.
func (c *conn) flushTopics(done func(error)) {
	if !c.published {
		done(nil)
		return
	}
	c.sender.Flush(done)
}

// fail puts the ERROR for err into the outbox as its last frame. c.mu is held.
func (c *conn) fail(err error, receipt string) {
	if c.failed.Load() {
		return
	}
	c.failed.Store(true)
	c.fault = err
	e, _ := clientError(err)
	c.srv.metrics.Failed(reasonOf(err))
	c.out.fresh.count(frame.Error)
	last := errorFrame(c.version, c.connected, e, receipt)
	c.out.keep(append(c.out.tail(len(last)), last...))
	c.out.closed = true
	c.receipts.room.Broadcast()
	c.read.interrupt()
}

// failNow is fail for faults that do not belong to a frame of the client.
func (c *conn) failNow(err error) {
	c.mu.Lock()
	c.fail(err, "")
	c.mu.Unlock()
	c.kick()
}

// abort closes the socket at once; both goroutines end.
func (c *conn) abort() {
	c.mu.Lock()
	c.failed.Store(true)
	c.mute()
	c.mu.Unlock()
	c.read.end()
	c.cut()
	c.kick()
}

// silence ends the writer, even in the middle of a write, and leaves the socket open where the transport allows that.
func (c *conn) silence() {
	if _, ok := c.net.(interface{ Abort() error }); ok {
		c.abort()
		return
	}
	c.mu.Lock()
	c.failed.Store(true)
	c.mute()
	c.mu.Unlock()
	c.read.end()
	c.stall.stop(c.net)
	c.kick()
}

// stallGuard arms the deadline of writes until it is stopped.
type stallGuard struct {
	below bool // what the connection runs on does it: see listen.Stall

	mu      sync.Mutex
	stopped bool // guarded by mu
}

func (g *stallGuard) arm(nc net.Conn, stall time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return net.ErrClosed
	}
	if stall == 0 || g.below {
		return nil
	}
	return nc.SetWriteDeadline(time.Now().Add(stall))
}

// stop ends the write that is under way and all further ones.
func (g *stallGuard) stop(nc net.Conn) {
	g.mu.Lock()
	g.stopped = true
	_ = nc.SetWriteDeadline(time.Unix(1, 0)) // Fails only on a closed socket.
	g.mu.Unlock()
}

// cut closes the socket without waiting for anything.
func (c *conn) cut() {
	if a, ok := c.net.(interface{ Abort() error }); ok {
		_ = a.Abort() // The session is over either way.
		return
	}
	_ = listen.Abort(c.net) // See above.
}

// mute drops what is not written and accepts nothing more. c.mu is held.
func (c *conn) mute() {
	c.out.closed = true
	c.lost = append(c.lost, c.out.discard()...)
	c.receipts.room.Broadcast()
}

// shutdown ends the session with the ERROR that says so.
func (c *conn) shutdown() { c.read.interrupt() }

// kick wakes the writer.
func (c *conn) kick() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// background runs f on a goroutine that finish joins.
func (c *conn) background(f func()) { c.work.Go(f) }

// drain reads and drops input until the peer closes, so that it reads our last frame instead of a reset.
func (c *conn) drain(orderly bool) {
	switch nc := c.net.(type) {
	case interface{ CloseWrite() error }:
		_ = nc.CloseWrite() // A peer that is gone needs no end of file.
	case interface{ CloseReason(text string) }:
		if orderly {
			return // Its close has a handshake.
		}
		nc.CloseReason("see the ERROR frame")
	}
	if err := c.net.SetReadDeadline(time.Now().Add(drainTime)); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, c.net) // Ends at the deadline or with the peer.
}

// returnLost gives back deliveries of ack:auto that never reached the socket.
func (c *conn) returnLost() {
	c.mu.Lock()
	lost := c.lost
	c.lost = nil
	c.mu.Unlock()
	type source struct {
		channel string
		durable bridge.DurableID
	}
	bySource := make(map[source][]bridge.Delivery)
	for _, a := range lost {
		from := source{a.sub.route.Pattern.String() + " " + a.sub.route.Channel, a.sub.durable}
		bySource[from] = append(bySource[from], a.d)
	}
	for from, ds := range bySource {
		if err := c.srv.bridge.GiveBack(ds); err != nil {
			c.log.Warn("returning messages failed; they come back after the ack wait", "channel", from.channel, "err", err)
		}
	}
}
