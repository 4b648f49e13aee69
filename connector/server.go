package connector

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/bridge/broker"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/connector/internal/metrics"
	"github.com/natstomp/natstomp/connector/internal/pressure"
	"github.com/natstomp/natstomp/connector/listen"
	"github.com/natstomp/natstomp/router"
)

// headerRoom is what a message may have beside its body: NATS headers and the protocol's own.
const headerRoom = 1 << 20

var (
	// errStopping is why a stopping server is not ready.
	errStopping = errors.New("stopping")
	// errNotStarted is why a server before Start is not ready.
	errNotStarted = errors.New("not started")
)

// Server is a STOMP server on a NATS of its own. Make it with New; its methods are safe for concurrent use.
type Server struct {
	cfg      Config
	log      *slog.Logger
	router   *router.Router
	declared map[string]bool // channels of queues.declare

	broker *broker.Broker
	bridge *bridge.Bridge
	http   []*http.Server // of the listeners that speak HTTP

	audit   *slog.Logger
	logins  *auth.Service
	damper  *auth.Damper
	repeats *auth.Repeats
	rights  *authz.Authorizer // nil: everything is allowed to everybody
	policy  *authz.File       // nil without authz.policy

	metrics *metrics.Metrics
	memory  *pressure.Guard          // nil without memory_limit
	stored  [patterns]*metrics.Timer // of SENDs that are stored, by pattern

	end        context.CancelFunc // ends what goes on in the background until Shutdown
	live       atomic.Bool        // started
	stopping   atomic.Bool
	joined     atomic.Bool               // NATS was found to have what is needed
	maxBody    atomic.Int64              // limits.body, or less where NATS takes less
	lateAcks   atomic.Uint64             // ACKs of messages that were held too long
	shedding   atomic.Uint64             // connections closed for memory_limit
	slowDrops  atomic.Uint64             // topic messages not delivered for limits.pending_bytes
	turnedAway [rejections]atomic.Uint64 // sockets that got no session

	lostReplies atomic.Uint64  // answers to requests whose reply subscription had ended
	lateAnswers atomic.Uint64  // answers of STOMP responders after the deadline
	wg          sync.WaitGroup // accept loops, the admin server and sessions

	mu           sync.Mutex
	started      bool                       // guarded by mu
	listeners    []listener                 // guarded by mu
	conns        map[*conn]struct{}         // guarded by mu
	certificates []*listen.TLS              // guarded by mu; of the listeners with TLS
	idle         []*programEnd              // guarded by mu; sessions of Publish
	subscribed   map[*Subscription]struct{} // guarded by mu; sessions of Subscribe
	users        map[string]int             // guarded by mu; connections of each, where that is limited
	taken        int                        // guarded by mu; connections that hold a slot of limits.connections
	locals       int                        // guarded by mu; sessions of the program
	accepted     [transports]uint64         // guarded by mu
	past         sums                       // guarded by mu; traffic of the connections that have ended
}

// New checks the configuration and returns a Server that is not started. The error holds every fault.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.NATS.Embedded.Listen = cfg.embeddedPort()
	r, err := router.New(cfg.Destinations.router())
	if err != nil {
		return nil, err
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	declared, err := declaredQueues(r, cfg.Queues.Declare)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: log, router: r, declared: declared,
		conns: make(map[*conn]struct{}), users: make(map[string]int), subscribed: make(map[*Subscription]struct{}),
	}
	s.audit = log
	if cfg.Audit != nil {
		s.audit = cfg.Audit
	}
	s.audit = s.audit.With("stream", "audit")
	if err := errors.Join(s.newLogins(), s.newRights()); err != nil {
		return nil, err
	}
	s.maxBody.Store(int64(cfg.Limits.Body))
	s.metrics = s.newMetrics()
	s.memory = s.newMemory()
	for p := range s.stored {
		s.stored[p] = s.metrics.Timer(router.Pattern(p).String())
	}
	return s, nil
}

// Start starts NATS, then the listeners, and returns when clients can connect. After an error nothing is left running.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	if s.started {
		s.mu.Unlock()
		return errors.New("server was started before")
	}
	s.started = true
	s.mu.Unlock()
	if err := s.metrics.Register(); err != nil {
		return err
	}
	var life context.Context
	life, s.end = context.WithCancel(context.Background())
	if err := s.startBridge(ctx, life); err != nil {
		s.end()
		s.metrics.Unregister()
		return err
	}
	s.watchMemory()
	s.watchFiles(life)
	s.live.Store(true)
	if err := s.listen(); err != nil {
		return errors.Join(err, s.Shutdown(ctx))
	}
	return nil
}

func (s *Server) startBridge(ctx, life context.Context) error {
	b, err := broker.Start(ctx, s.cfg.NATS, broker.Options{
		Logger:     s.log,
		MaxPayload: int(s.cfg.Limits.Body) + headerRoom,
	})
	if err != nil {
		return err
	}
	s.broker = b
	marks, err := b.Marks()
	if err != nil {
		return errors.Join(err, b.Stop(leastStop, marks))
	}
	s.bridge = bridge.New(bridge.Config{
		Data: b.Data, Control: b.Control, Wide: b.Wide, JS: b.JS,
		Router:         s.router,
		Logger:         s.log,
		PublishTimeout: s.cfg.NATS.PublishTimeout,
		RequestTimeout: s.cfg.RPC.Timeout,
		External:       external(b),
		Queues: bridge.QueueConfig{
			Limit:       s.cfg.Limits.Queues,
			Settings:    s.queueSettings,
			IdleDelete:  s.cfg.Queues.IdleDelete,
			DelayBytes:  int64(s.cfg.Queues.DelayedMaxBytes),
			DedupWindow: s.cfg.Queues.DedupWindow,
			Storage:     b.Storage(),
			Marks:       marks.Delivered,
			CleanMarks:  marks.Clean,
			ForgetMark:  b.ForgetMark,
		},
		Store: bridge.StoreConfig{
			MaxAge:   s.cfg.Store.MaxAge,
			MaxBytes: int64(s.cfg.Store.MaxBytes),
			Subjects: s.cfg.Destinations.Subjects.Store + ">",
			Durables: s.cfg.Limits.Durables,
		},
	})
	err = s.bridge.Start(ctx)
	if err == nil {
		err = s.join(ctx, life)
	}
	if err != nil {
		return errors.Join(err, s.stopBridge(ctx))
	}
	return nil
}

const (
	// leastStop is what a stop of NATS may take however much time is left.
	leastStop = 5 * time.Second
	// spareStop is what it leaves of that time for the end of the process.
	spareStop = 500 * time.Millisecond
)

// stopBridge stops NATS and saves the marks, which are worth their time even when ctx has ended. NATS has all the time that
// is left: what it cannot save makes the stop unclean.
func (s *Server) stopBridge(ctx context.Context) error {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), leastStop)
	defer cancel()
	marks, limit := s.bridge.Stop(brief), leastStop
	if end, ok := ctx.Deadline(); ok {
		limit = max(limit, time.Until(end)-spareStop)
	}
	return s.broker.Stop(limit, broker.Marks{Clean: true, Delivered: marks})
}

// running says whether clients may be admitted.
func (s *Server) running() bool { return s.live.Load() && !s.stopping.Load() }

// Status tells what runs where. Call it after Start.
func (s *Server) Status() Status {
	st := Status{
		NATS: NATSStatus{
			Mode:          s.mode(),
			ServerVersion: s.broker.ServerVersion(),
			ServerName:    s.broker.ServerName(),
			Cluster:       s.broker.ClusterName(),
			Address:       s.broker.Address(),
			Replicas:      s.broker.Replicas(),
			ClientAddress: s.broker.ClientAddress(),
			StoreDir:      s.broker.StoreDir(),
		},
		Durability: s.broker.Durability(),
		AuthMode:   s.cfg.Auth.Mode,
	}
	if err := s.Ready(); err != nil {
		st.NotReady = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		st.Listeners = append(st.Listeners, ListenerStatus{Name: l.name, Address: l.Addr().String()})
	}
	return st
}

// Shutdown stops accepting, ends every session with the ERROR "server shutting down" after its receipts are sent and
// its messages given back, and stops NATS. Handlers of Subscribe finish the message that they have. When ctx ends first
// the sessions that are left are cut; NATS is stopped in any case. It must follow a successful Start, once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	s.end()
	s.memory.Stop()
	s.closeListeners("tcp", "tls", "ws", "wss", served) // The admin listener stays, so that readiness can be asked.
	defer s.giveUpNATS().Stop()
	s.haltPulls() // First, so that nothing given back goes to another session of this server.
	if !s.broker.External() {
		s.bridge.Closing()
	}
	s.mu.Lock()
	for c := range s.conns {
		if c.via != viaLocal {
			c.shutdown()
		}
	}
	s.mu.Unlock()
	subscribed := s.closeLocal()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.sessionsEnded()
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = fmt.Errorf("sessions were cut: %w", ctx.Err())
		s.mu.Lock()
		for c := range s.conns {
			c.abort()
		}
		s.mu.Unlock()
		s.bridge.Abandon()
		<-ended
	}
	for _, l := range subscribed {
		l.await(ctx)
	}
	s.closeListeners()
	s.wg.Wait()
	s.repeats.Stop()
	s.metrics.Unregister()
	return errors.Join(err, s.stopBridge(ctx))
}

// haltPulls ends all pulling and waits until nothing is on the way.
func (s *Server) haltPulls() {
	var pulls []pull
	s.mu.Lock()
	for c := range s.conns {
		pulls = append(pulls, c.pulls()...)
	}
	s.mu.Unlock()
	for _, p := range pulls {
		p.Halt()
	}
	for _, p := range pulls {
		<-p.Halted()
	}
}

func (s *Server) sessionsEnded() {
	for {
		s.mu.Lock()
		var one *conn
		for c := range s.conns {
			one = c
			break
		}
		s.mu.Unlock()
		if one == nil {
			return
		}
		<-one.ended
	}
}

// handshakeLimits hold until a client is connected.
func (s *Server) handshakeLimits() frame.Limits {
	l := &s.cfg.Limits
	return frame.Limits{
		Headers:    l.Headers,
		HeaderLine: int(l.HeaderLine),
		Passcode:   int(l.Passcode),
		Body:       int(s.maxBody.Load()),
		Frame:      int(l.FrameBeforeConnect),
	}
}

// randomHex is 128 random bits.
func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // Never fails.
	return hex.EncodeToString(b[:])
}
