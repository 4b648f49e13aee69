package connector

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/router"
)

// newRights makes what decides over rights (DESIGN section 6): without a policy everything is allowed in auth.mode none,
// and nothing otherwise. A policy of the NATS bucket comes later.
func (s *Server) newRights() error {
	cfg := s.cfg.Authz
	if cfg.Policy == "" && !cfg.KV {
		if s.cfg.Auth.Mode == "none" {
			return nil
		}
		s.log.Warn("nothing is allowed to anybody: auth.mode is " + s.cfg.Auth.Mode + " and there is no authz.policy")
	}
	model, err := cfg.model()
	if err != nil {
		return err
	}
	s.rights, err = authz.New(authz.Config{Model: model, Changed: s.policyChanged, Logger: s.log})
	if err != nil {
		return fmt.Errorf("authz.model: %w", err)
	}
	if cfg.Policy == "" {
		return nil
	}
	s.policy = authz.NewFile(s.rights, cfg.Policy)
	if err := s.policy.Reload(); err != nil {
		return fmt.Errorf("authz.policy: %w", err)
	}
	return nil
}

// watchFiles follows the files of policy, users and keys until ctx ends.
func (s *Server) watchFiles(ctx context.Context) {
	s.wg.Go(func() { s.logins.Run(ctx) })
	if s.cfg.Authz.KV {
		s.wg.Go(func() { s.followBucket(ctx) })
	}
	if s.policy != nil {
		s.wg.Go(func() {
			if err := s.policy.Run(ctx); err != nil {
				s.log.Error("the policy file cannot be watched; SIGHUP still loads it", "err", err)
			}
		})
	}
}

// Reload reads the policy file, the users file, the key files and the certificates again, which also happens by itself
// when they change. What has a fault is refused whole, and what was in force before stays. The error has every fault.
// Connections are kept; those that lost a right that they use get an ERROR. It is safe for concurrent use.
func (s *Server) Reload() error {
	err := errors.Join(s.reloadCertificates(), s.logins.Reload())
	if s.policy != nil {
		err = errors.Join(err, s.policy.Reload())
	}
	return err
}

// settingsFault is why what is in force is not what the files or the bucket say, or nil.
func (s *Server) settingsFault() error {
	if s.rights == nil {
		return nil
	}
	if st := s.rights.Status(); st.Err != nil {
		return fmt.Errorf("policy refused, the one before stays: %w", firstLine(st.Err))
	} else if s.cfg.Authz.KV && st.Epoch == 0 {
		return errors.New("no policy yet in the NATS bucket " + bridge.PolicyBucket)
	}
	if err := s.logins.Fault(); err != nil {
		return fmt.Errorf("file of auth refused, what it said before stays: %w", firstLine(err))
	}
	return s.logins.Ready()
}

// firstLine shortens an error of many lines for those who only ask whether there is one.
func firstLine(err error) error {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if !more {
		return err
	}
	return fmt.Errorf("%s (and %d more faults)", first, strings.Count(rest, "\n")+1)
}

// policyChanged hears of each policy that was taken or refused.
func (s *Server) policyChanged(st authz.Status) {
	if st.Err != nil {
		s.audit.Error("policy.refused", "epoch", st.Epoch, "err", st.Err)
		return
	}
	s.audit.Info("policy.reloaded", "epoch", st.Epoch, "origin", st.Origin, "rules", st.Rules, "links", st.Links)
	for _, c := range s.sessions() {
		c.recheck()
	}
}

// sessions are all connections now.
func (s *Server) sessions() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// mayWrite is the right to SEND.
func (c *conn) mayWrite(route *router.Route, destination []byte) error {
	return c.may(authz.Write, route, destination)
}

// mayRead is the right to SUBSCRIBE.
func (c *conn) mayRead(route *router.Route, destination []byte) error {
	return c.may(authz.Read, route, destination)
}

func (c *conn) may(a authz.Action, route *router.Route, destination []byte) error {
	rights := c.rights.Load()
	if rights == nil || isLocal(route.Pattern) {
		return nil
	}
	// Not the list of targets: this is asked for each SEND.
	allowed := rights.Allowed(a, route.Pattern.String(), route.Channel)
	if allowed && route.Mixed {
		allowed = rights.Allowed(a, router.Store.String(), route.Channel)
	}
	if allowed {
		return nil
	}
	return c.denied(a, destination)
}

// denied is the refusal of an action that the policy does not allow. The text says no more than the client knows.
func (c *conn) denied(a authz.Action, destination []byte) error {
	c.mu.Lock()
	session := c.shown.session
	c.mu.Unlock()
	c.audit.Warn("client.denied", "session", session, "action", a.String(), "destination", printable(string(destination)))
	return &ClientError{Text: fmt.Sprintf("access denied: no right to %s %s", a, printable(string(destination))), reason: "denied"}
}

// recheck ends the session if it has lost a right that a subscription rests on.
func (c *conn) recheck() {
	if c.rights.Load() == nil {
		return // Everything is allowed to it, or it has no CONNECTED yet.
	}
	type live struct {
		route router.Route
		asked []byte
	}
	var subs []live
	c.mu.Lock()
	for _, s := range c.subs {
		subs = append(subs, live{s.route, []byte(s.asked)})
	}
	c.mu.Unlock()
	for i := range subs {
		if err := c.mayRead(&subs[i].route, subs[i].asked); err != nil {
			c.revoke(err)
			return
		}
	}
}

// revoke ends a session that has lost what it rests on. What waits to be written it has no right to any more: the ERROR
// comes next. finish waits for no client that does not read it.
func (c *conn) revoke(err error) {
	c.mu.Lock()
	if !c.failed.Load() {
		c.lost = append(c.lost, c.out.discard()...)
		c.revoked = true
		c.fail(err, "")
	}
	c.mu.Unlock()
	c.kick()
}
