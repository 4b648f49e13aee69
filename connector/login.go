package connector

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/connector/listen"
)

// refreshDestination takes a new token (DESIGN section 6); it is no destination of section 2.
const refreshDestination = "/$auth/refresh"

// clockLook is how often the wall clock is looked at for the end of a session.
const clockLook = 30 * time.Second

var (
	errAuthentication = &ClientError{Text: auth.RefusedText, reason: "authentication"}
	errTokenExpired   = &ClientError{Text: "token expired", reason: "expired"}
	errNoMore         = &ClientError{Text: "client certificate expired", reason: "expired"}
)

// newLogins makes what knows who clients are.
func (s *Server) newLogins() error {
	cfg := s.cfg.AuthConfig()
	cfg.Logger, cfg.Changed = s.log, s.usersChanged
	var err error
	s.logins, err = auth.New(cfg)
	s.damper, s.repeats = auth.NewDamper(), auth.NewRepeats(s.turnedAwayMore)
	return err
}

// turnedAwayMore tells of refused logins that turnAway did not tell of.
func (s *Server) turnedAwayMore(r auth.Repeated) {
	remote := "others"
	if r.From.IsValid() {
		remote = r.From.String()
	}
	s.audit.Warn("client.auth_failed", "remote", remote, "code", r.Code, "repeated", r.Count)
}

// login finds out who sent a CONNECT, and what he may do. The host program's own sessions are who they say.
func (c *conn) login(f *frame.Frame) error {
	text := func(name string) string {
		v, _ := f.Lookup(name)
		return string(v)
	}
	shown := auth.Credentials{
		Client: text("client-id"), Login: text("login"), Passcode: text("passcode"),
		Token: c.token, Certificate: listen.PeerCertificate(c.net), Remote: c.address(),
	}
	c.token = ""
	if c.via == viaLocal {
		return c.assume(auth.Identity{Name: shown.Client, Source: auth.Claimed})
	}
	ctx, cancel := c.limited(c.srv.cfg.Limits.ConnectTimeout)
	defer cancel()
	who, err := c.srv.logins.Authenticate(ctx, shown)
	if err == nil {
		err = c.become(who)
	}
	if err != nil {
		return c.turnAway(err)
	}
	return nil
}

// become is assume for an identity that the users file may change at any time, also while the passcode was checked:
// what the session has in the end is what the file says.
func (c *conn) become(who auth.Identity) error {
	for {
		if err := c.assume(who); err != nil {
			return err
		}
		// usersChanged knows it from now on.
		next, err := c.srv.logins.Recheck(who)
		if err != nil || slices.Equal(next.Roles, who.Roles) {
			return err
		}
		who = next
	}
}

// assume gives the session an identity, and the rights of that.
func (c *conn) assume(who auth.Identity) error {
	if c.srv.rights != nil && c.via != viaLocal {
		rights, err := c.srv.rights.Session(who.Name, who.Roles)
		if err != nil {
			return err
		}
		c.rights.Store(rights)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.who = who
	c.awaitExpiry()
	return nil
}

// awaitExpiry has expire called when the identity ends. Its time is one of the wall clock, which can be set, and the timer
// stands still while the machine sleeps; so it looks now and then. c.mu is held.
func (c *conn) awaitExpiry() {
	if c.expiry != nil {
		c.expiry.Stop()
		c.expiry = nil
	}
	if !c.who.Expires.IsZero() && !c.failed.Load() {
		c.expiry = time.AfterFunc(min(time.Until(c.who.Expires), clockLook), c.expire)
	}
}

// turnAway is the answer to a login that was refused: always the same, and late where an address tries too often.
func (c *conn) turnAway(cause error) error {
	code := auth.CodeIdentity
	var refused *auth.Refused
	reason := cause.Error()
	if errors.As(cause, &refused) {
		code, reason = refused.Code, refused.Reason
	}
	c.srv.metrics.LoginRefused(code)
	if c.srv.repeats.Refused(c.address(), code) {
		c.audit.Warn("client.auth_failed", "session", c.session, "code", code, "reason", printable(reason))
	}
	if delay := c.srv.damper.Refused(c.address()); delay > 0 {
		wait := time.NewTimer(delay)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-c.read.over:
		}
	}
	return errAuthentication
}

// refresh is a SEND to refreshDestination: the token in its body renews the session of the same identity.
func (c *conn) refresh(f *frame.Frame) error {
	if _, ok := f.Lookup("transaction"); ok {
		return refuse("a SEND to %s cannot be in a transaction", refreshDestination)
	}
	c.mu.Lock()
	who := c.who
	c.mu.Unlock()
	if who.Source != auth.Token {
		return refuse("destination %s is for sessions that a token opened", refreshDestination)
	}
	ctx, cancel := c.limited(c.srv.cfg.Limits.ConnectTimeout)
	defer cancel()
	next, err := c.srv.logins.Refresh(ctx, who, string(f.Body))
	if err != nil {
		return c.turnAway(err)
	}
	if err := c.assume(next); err != nil {
		return c.turnAway(err)
	}
	c.recheck() // The roles of the new token may be fewer.
	c.audit.Info("session.renewed", "session", c.session, "until", next.Expires)
	c.done(c.receiptOf(f))
	return nil
}

// expire ends the session if what it rests on is over. A timer of awaitExpiry calls it.
func (c *conn) expire() {
	c.mu.Lock()
	who, session := c.who, c.shown.session
	over := !time.Now().Before(who.Expires)
	if !over {
		c.awaitExpiry()
	}
	ended := c.failed.Load()
	c.mu.Unlock()
	if !over || ended {
		return
	}
	c.audit.Info("session.expired", "session", session)
	if who.Source == auth.Certificate {
		c.revoke(errNoMore)
		return
	}
	c.revoke(errTokenExpired)
}

// usersChanged looks at all sessions after the users file was read anew.
func (s *Server) usersChanged() {
	for _, c := range s.sessions() {
		c.mu.Lock()
		who := c.who
		c.mu.Unlock()
		if who.Source != auth.Password || c.failed.Load() {
			continue
		}
		if err := c.become(who); err != nil {
			c.audit.Info("session.expired", "session", who.Session(), "reason", "the users file does not have it any more")
			c.revoke(errAuthentication)
			continue
		}
		c.recheck()
	}
}

// limited returns a context for work of the reader, which ends with the session.
func (c *conn) limited(most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	c.background(func() {
		select {
		case <-c.read.over:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// address is where the client is; not valid for one without a socket.
func (c *conn) address() netip.Addr {
	at, err := netip.ParseAddrPort(c.net.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr()
}
