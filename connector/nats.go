package connector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/bridge/broker"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

const (
	// joinTimeout bounds one attempt to find out what an external NATS offers.
	joinTimeout = 10 * time.Second
	// againLeast and againMost bound the pause between two attempts of keepTrying.
	againLeast = 100 * time.Millisecond
	againMost  = 2 * time.Second
	// giveUpAfter is how long a stop waits for a NATS that does not answer.
	giveUpAfter = 4 * time.Second
	// natsHeaders is the part of NATS's max_payload that is left for the headers of a message.
	natsHeaders = 16 << 10
)

// external is what the bridge must know about a NATS that is not embedded; nil for one that is.
func external(b *broker.Broker) *bridge.External {
	if !b.External() {
		return nil
	}
	return &bridge.External{
		Replicas: b.Replicas,
		Data:     b.Link(broker.DataRole),
		Control:  b.Link(broker.ControlRole),
		Denied: func(wide, publish bool, subject string, since time.Time) bool {
			role := broker.DataRole
			if wide {
				role = broker.WideRole
			}
			return b.Denied(role, publish, subject, since)
		},
	}
}

func (s *Server) mode() string {
	if s.broker.External() {
		return "external"
	}
	return "embedded"
}

// join finds out what NATS offers and makes the declared queues. An external NATS may be down: then it goes on trying in
// the background while life lasts, and clients are told so meanwhile.
func (s *Server) join(ctx, life context.Context) error {
	var declared []router.Route
	for _, name := range s.cfg.Queues.Declare {
		route, err := declaredRoute(s.router, name)
		if err != nil {
			return err
		}
		declared = append(declared, route)
	}
	s.broker.OnLink(func(r broker.Role) {
		s.measure()
		s.bridge.LinkUp(r == broker.ControlRole)
	})
	s.measure()
	err := s.joinOnce(ctx, declared)
	if err == nil || !s.broker.External() {
		return err
	}
	s.wg.Go(func() {
		s.keepTrying(life, "NATS cannot be used yet, trying on", err, func() error { return s.joinOnce(life, declared) })
		if life.Err() == nil {
			s.log.Info("NATS can be used", "server", s.broker.ServerName(), "durability", s.broker.Durability())
		}
	})
	return nil
}

// keepTrying tries something that has failed until it succeeds or ctx ends. Each reason is logged when it is new.
func (s *Server) keepTrying(ctx context.Context, message string, err error, try func() error) {
	said := ""
	for pause := againLeast; err != nil && ctx.Err() == nil; pause = min(2*pause, againMost) {
		if text := err.Error(); text != said {
			said = text
			s.log.Warn(message, "err", err)
		}
		select {
		case <-time.After(pause):
			err = try()
		case <-ctx.Done():
		}
	}
}

func (s *Server) joinOnce(ctx context.Context, declared []router.Route) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if err := s.broker.Join(ctx); err != nil {
		return err
	}
	s.measure()
	if err := s.bridge.Join(ctx); err != nil {
		return err
	}
	for _, route := range declared {
		if err := s.bridge.EnsureQueue(route); err != nil {
			return fmt.Errorf("queues.declare: %w", err)
		}
	}
	s.joined.Store(true)
	return nil
}

// Ready returns nil when clients can be served, else why not. A queue whose stream is gone, or cannot be written to, is a
// reason too, although clients of others are served.
func (s *Server) Ready() error {
	if err := s.available(); err != nil {
		return err
	}
	if gone := s.bridge.Gone(); len(gone) > 0 {
		return errors.New(strings.Join(gone, "; "))
	}
	if err := s.broker.Fault(); err != nil {
		return err
	}
	return s.settingsFault()
}

// available returns nil when sessions can be opened, else why not.
func (s *Server) available() error {
	switch {
	case s.stopping.Load():
		return errStopping
	case !s.live.Load():
		return errNotStarted
	case s.broker.Ready() != nil:
		return s.broker.Ready()
	case !s.joined.Load():
		return fmt.Errorf("%w: its queues were not found yet", broker.ErrNotReady)
	case s.cfg.Authz.KV && s.rights.Status().Epoch == 0:
		return errNoPolicy
	}
	return nil
}

// ForgetQueue lets a queue whose stream is gone be made anew. name is a destination, a channel in dot form, or the name
// of the stream. It is an error if no such queue is gone.
func (s *Server) ForgetQueue(name string) error {
	channel := name
	if strings.HasPrefix(name, "/") {
		route, err := s.router.Parse(name, router.Send)
		if err != nil {
			return err
		}
		channel = route.Channel
	}
	ok, err := s.bridge.Forget(channel)
	if err == nil && !ok {
		err = fmt.Errorf("no queue %s is gone", printable(name))
	}
	return err
}

// giveUpNATS ends all waiting for a NATS that is away, at a stop: at once where that is known. The caller stops the
// timer.
func (s *Server) giveUpNATS() *time.Timer {
	if !s.broker.External() {
		return time.NewTimer(0)
	}
	after := giveUpAfter
	if s.broker.Ready() != nil {
		after = 0
	}
	return time.AfterFunc(after, s.bridge.Abandon)
}

// measure holds bodies to what NATS takes.
func (s *Server) measure() {
	most := int64(s.cfg.Limits.Body)
	if payload := s.broker.MaxPayload(); s.broker.External() && payload > 0 {
		most = min(most, max(payload-natsHeaders, payload/2))
	}
	s.maxBody.Store(most)
}

// setLimits holds the frames of a connected client to the limits.
func (c *conn) setLimits() {
	limits := c.srv.handshakeLimits()
	limits.Frame, limits.Passcode = 0, 0
	c.maxBody = limits.Body
	c.dec.SetLimits(limits)
}

// explainLimit names the limit that NATS sets instead of the one of the configuration.
func (c *conn) explainLimit(err error) error {
	var limit *frame.LimitError
	if errors.As(err, &limit) && limit.Name == "body" && limit.Max < int(c.srv.cfg.Limits.Body) {
		return refuse("body too large: the NATS server takes no more than %d (max_payload, less room for headers)", limit.Max)
	}
	return err
}
