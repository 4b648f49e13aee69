package connector

import (
	"strconv"
	"time"

	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/connector/frame"
)

// connect is the handshake. The order is DESIGN section 6's: version, NATS, connection limit, authentication and that user's
// connection limit, session id, heart-beat, CONNECTED.
func (c *conn) connect(f *frame.Frame) error {
	accept, _ := f.Lookup("accept-version")
	version, ok := frame.Negotiate(string(accept))
	if !ok {
		ours := "1.0,1.1,1.2"
		e := refuse("no common STOMP version: the server speaks %s", ours)
		e.headers = []frame.Header{{Name: []byte("version"), Value: []byte(ours)}}
		return e
	}
	if err := c.srv.available(); err != nil {
		if c.srv.stopping.Load() {
			return errShutdown
		}
		return err
	}
	if c.refused {
		return errConnectionLimit
	}
	if err := c.login(f); err != nil {
		return err
	}
	if err := c.srv.seat(c); err != nil {
		return err
	}
	login, _ := f.Lookup("login")
	wish, _ := f.Lookup("heart-beat")
	return c.open(version, frame.ParseHeartbeat(string(wish)), string(login))
}

// open sets the session up and answers CONNECTED.
func (c *conn) open(version frame.Version, wish frame.Heartbeat, login string) error {
	limits := &c.srv.cfg.Limits
	offer := limits.Heartbeat
	c.dec.SetVersion(version)
	c.setLimits()
	c.read.until = time.Time{}
	var beat time.Duration
	if version > frame.V10 {
		// STOMP 1.2, Heart-beating: each direction is the larger of what one can and the other wants, 0 if either is.
		c.read.silence = 2 * effective(wish.Out, offer)
		beat = effective(wish.In, offer)
	}
	c.mu.Lock()
	if c.failed.Load() { // The login has ended before it was answered.
		c.mu.Unlock()
		return errFailed
	}
	c.connected = true
	c.session, c.identity = c.who.Session(), c.who.Name
	c.version, c.beat = version, beat
	if c.who.Source != auth.Claimed {
		login = c.who.Name // That of CONNECT may be anything.
	}
	c.shown = identity{session: c.session, login: printable(login), connectedAt: time.Now()}
	c.out.fresh.count(frame.Connected)
	b := append(c.out.tail(512), "CONNECTED\nversion:"...)
	b = append(b, version.String()...)
	if version > frame.V10 {
		ms := strconv.FormatInt(offer.Milliseconds(), 10)
		b = append(b, "\nheart-beat:"+ms+","+ms...)
	}
	b = append(b, "\nsession:"+c.session+"\nserver:natstomp/"+c.srv.cfg.Version...)
	b = append(b, "\ndurability:"+c.srv.broker.Durability()...)
	b = append(b, "\nx-max-body:"+strconv.Itoa(c.maxBody)...)
	c.out.keep(append(b, "\n\n\x00\n"...))
	c.mu.Unlock()
	c.kick()
	c.audit.Info("client.connected", "session", c.session, "identity", printable(c.identity), "version", version.String(), "transport", c.via.String())
	return nil
}

// effective is the interval of one direction.
func effective(client int, server time.Duration) time.Duration {
	if client == 0 || server == 0 {
		return 0
	}
	return max(time.Duration(client)*time.Millisecond, server)
}
