package identity_test

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/tokens"
)

// way is how a token gets to the server.
type way struct {
	name string
	over string
	fits func(token string) bool // whether the way can carry it
	show func(c *showing)
}

// showing is one client that shows a token.
type showing struct {
	g     *server
	v     rig.Visit
	token string
	conn  *stompclient.Conn
	frame stompclient.Frame // the answer
	err   error
}

func (s *showing) connect(nameValue ...string) {
	if s.conn, s.err = s.g.open(s.v); s.err == nil {
		s.frame, s.err = s.conn.Connect("1.2", nameValue...)
	}
}

// ways are all of them, each over one transport that has it; the passcode over all four.
func ways() []way {
	line := func(token string) bool { return !strings.ContainsAny(token, "\n\r\x00") }
	header := func(token string) bool {
		return line(token) && strings.TrimSpace(token) == token && len(token) < 50<<10
	}
	passcode := func(s *showing) { s.connect("login", "root", "passcode", s.token) }
	all := []way{
		{"bearer", "wss", header, func(s *showing) {
			s.v.Header = http.Header{"Authorization": {"Bearer " + s.token}}
			s.connect("login", "root")
		}},
		{"cookie", "ws", header, func(s *showing) {
			s.v.Header = http.Header{"Cookie": {cookieName + "=" + s.token}, "Origin": {page}}
			s.connect("login", "root")
		}},
		{"refresh", "tcp", func(string) bool { return true }, func(s *showing) {
			s.connect("passcode", token(s.g.t, nil))
			if s.err != nil {
				return
			}
			f := stompclient.New("SEND", "destination", "/$auth/refresh", "receipt", "r").WithBody([]byte(s.token))
			if s.err = s.conn.Send(f); s.err == nil {
				s.frame, s.err = s.conn.Read(rig.Patience)
			}
		}},
	}
	for _, over := range []string{"tcp", "tls", "ws", "wss"} {
		all = append(all, way{"passcode", over, line, passcode})
	}
	return all
}

// each calls f for 0 to n-1, a few at a time.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// TestJ1ToJ17 shows every token that must be refused in every way: all get the one text, and the log has one line for
// each, with the reason.
func TestJ1ToJ17(t *testing.T) {
	g := start(t, func(c *connector.Config) { withTokens(t, c) })
	attacks := attacks(t)
	for _, w := range ways() {
		t.Run(w.name+" over "+w.over, func(t *testing.T) {
			tried, from := 0, make([]net.Addr, len(attacks))
			for i := range attacks {
				from[i] = elsewhere()
				if w.fits(attacks[i].Token) {
					tried++
				}
			}
			if tried < len(attacks)*9/10 {
				t.Errorf("tried %d of %d", tried, len(attacks))
			}
			each(len(attacks), func(i int) {
				if a := attacks[i]; w.fits(a.Token) {
					s := &showing{g: g, v: rig.Visit{Over: w.over, From: from[i]}, token: a.Token}
					w.show(s)
					s.mustBeRefused(t, a.Name, w.name)
				}
			})
			failed := g.audit("client.auth_failed")
			for i, a := range attacks {
				lines := of(failed, ip(from[i]))
				if !w.fits(a.Token) || w.name == "passcode" && len(a.Token) > 16<<10 {
					continue
				}
				if len(lines) != 1 {
					t.Errorf("%s: got %d lines of the audit log", a.Name, len(lines))
				} else if a.Code != "" && w.name != "cookie" && lines[0]["code"] != a.Code {
					t.Errorf("%s: got the code %v, want %s", a.Name, lines[0]["code"], a.Code)
				}
			}
		})
	}
}

// attacks are the tokens. Those that are too early by a second become right while others are tried, so they are from a later
// time.
func attacks(t *testing.T) []tokens.Attack {
	t.Helper()
	all, later := tokens.Attacks(t, time.Now()), make(map[string]tokens.Attack)
	for _, a := range tokens.Attacks(t, time.Now().Add(5*time.Minute)) {
		later[a.Name] = a
	}
	for i, a := range all {
		if strings.HasPrefix(a.Name, "J9 ") || strings.HasPrefix(a.Name, "J11 ") || strings.HasPrefix(a.Name, "J13 ") {
			all[i] = later[a.Name]
		}
	}
	return all
}

func ip(a net.Addr) string { return a.(*net.TCPAddr).IP.String() }

// mustBeRefused looks at the answer and closes.
func (s *showing) mustBeRefused(t *testing.T, name, way string) {
	t.Helper()
	if s.conn == nil {
		t.Errorf("%s: %v", name, s.err)
		return
	}
	defer s.conn.Close()
	want := auth.RefusedText
	if way == "passcode" && len(s.token) > 16<<10 {
		want = "passcode too long: limits.passcode is 16384"
	}
	if got := s.frame.Get("message"); s.frame.Command != "ERROR" || got != want {
		t.Errorf("%s: got %s, %v, want the ERROR %q", name, s.frame, s.err, want)
		return
	}
	if err := s.conn.ExpectClose(rig.Patience); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestEveryAlgorithm shows a good token of each in every way, or the tests above would prove nothing. The login of
// CONNECT does not count.
func TestEveryAlgorithm(t *testing.T) {
	g := start(t, func(c *connector.Config) { withTokens(t, c) })
	for _, w := range ways() {
		for alg, signer := range tokens.Signers() {
			s := &showing{g: g, v: rig.Visit{Over: w.over}, token: tokens.Sign(t, time.Now(), signer, tokens.Values{"kid": alg}, nil)}
			w.show(s)
			switch {
			case s.err != nil:
				t.Errorf("%s over %s, %s: %v", w.name, w.over, alg, s.err)
			case w.name == "refresh" && s.frame.Get("receipt-id") != "r", w.name != "refresh" && s.frame.Get("session") != "alice":
				t.Errorf("%s over %s, %s: got %s", w.name, w.over, alg, s.frame)
			}
			if s.conn != nil {
				_ = s.conn.Close()
			}
		}
	}
	rig.Holds(t, "end of the sessions", func() bool { return len(g.Connections()) == 0 })
	for _, r := range g.audit("client.connected") {
		if r["identity"] != "alice" || r["session"] != "alice" {
			t.Fatalf("got the audit line %v", r)
		}
	}
}

// TestIdentityOfToken: names that would be something else in a policy are refused or literal, and the login of CONNECT never
// stands in for a missing one.
func TestIdentityOfToken(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Authz.Policy = rig.Put(t, "policy.csv", "p, *, events, own.{sub}, *, allow\np, root, *, >, *, allow\n")
	})
	for _, login := range []string{"", "root", "alice", "role:admin"} {
		c := g.come(rig.Visit{})
		c.Do("CONNECT", "accept-version", "1.2", "login", login, "client-id", "root", "passcode", token(t, tokens.Values{"sub": nil}))
		c.Refused(auth.RefusedText)
	}
	for _, sub := range []string{"a$$/topic/a", "a*", "a>", "a.b", "a/b", "é日", strings.Repeat("a", 256)} {
		c := g.come(rig.Visit{})
		f := c.Login("login", "root", "passcode", token(t, tokens.Values{"sub": sub}))
		if got := f.Get("session"); strings.Trim(got, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("%q: got the session %q", sub, got)
		}
		c.Do("SUBSCRIBE", "id", "1", "destination", "/topic/own/x")
		c.Refused("access denied")
	}
	c := g.login("login", "root", "passcode", token(t, nil))
	c.Subscribe("1", "/topic/own/alice")
	rig.Holds(t, "end of the others", func() bool { return len(g.Connections()) == 1 })
	if got := g.Connections(); got[0].Login != "alice" {
		t.Errorf("got the connection %+v", got[0])
	}
	c.Do("SUBSCRIBE", "id", "2", "destination", "/topic/own/root")
	c.Refused("access denied: no right to read /topic/own/root")
}

// TestOriginAndCookie: a cookie is what a browser sends for any page; of a page that is not listed it does not get to
// the login.
func TestOriginAndCookie(t *testing.T) {
	g := start(t, func(c *connector.Config) { withTokens(t, c) })
	for origin, in := range map[string]bool{page: true, "https://evil.example": false, "null": false, page + ".evil.example": false} {
		c, err := g.open(rig.Visit{Over: "ws", Header: http.Header{"Cookie": {cookieName + "=" + token(t, nil)}, "Origin": {origin}}})
		if (err == nil) != in {
			t.Errorf("%s: got %v", origin, err)
		}
		if err == nil {
			_ = c.Close()
		}
	}
	for name, header := range map[string]http.Header{
		"another cookie":  {"Cookie": {"other=" + token(t, nil)}},
		"another scheme":  {"Authorization": {"Basic " + token(t, nil)}},
		"nothing":         nil,
		"an empty bearer": {"Authorization": {"Bearer "}},
	} {
		c := g.come(rig.Visit{Over: "ws", Header: header})
		c.Do("CONNECT", "accept-version", "1.2")
		if got := c.Refused("").Get("message"); got != auth.RefusedText {
			t.Errorf("%s: got %q", name, got)
		}
	}
	// What is shown must be right: a bad passcode is not made good by the handshake.
	c := g.come(rig.Visit{Over: "ws", Header: http.Header{"Authorization": {"Bearer " + token(t, nil)}}})
	c.Do("CONNECT", "accept-version", "1.2", "passcode", "x")
	c.Refused(auth.RefusedText)
}

// TestJ18SameTokenTwice: two sessions of one token are two sessions.
func TestJ18SameTokenTwice(t *testing.T) {
	g := start(t, func(c *connector.Config) { withTokens(t, c) })
	text := token(t, nil)
	a, b := g.login("passcode", text), g.login("passcode", text)
	a.Do("BEGIN", "transaction", "t", "receipt", "r")
	a.Receipt("r")
	b.Do("COMMIT", "transaction", "t")
	b.Refused("transaction")
	a.Alive()
}

// TestJ20ExpiryDuringConnect: a token whose time is over when the CONNECT is complete is refused, and one that ends with its
// CONNECTED gets either that or nothing, never a session that stays.
func TestJ20ExpiryDuringConnect(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *connector.Config) {
		withTokens(t, c)
		c.Auth.JWT.Leeway = 0
	})
	end := time.Now().Truncate(time.Second).Add(2 * time.Second)
	text := token(t, tokens.Values{"exp": end.Unix()})
	c := g.come(rig.Visit{})
	if err := c.Write([]byte("CONNECT\naccept-version:1.2\npasscode:" + text)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(time.Until(end) + 50*time.Millisecond); err == nil {
		t.Fatal("half a CONNECT was answered")
	}
	if err := c.Write([]byte("\n\n\x00")); err != nil {
		t.Fatal(err)
	}
	c.Refused(auth.RefusedText)
	end = time.Now().Truncate(time.Second).Add(2 * time.Second)
	text = token(t, tokens.Values{"exp": end.Unix()})
	<-time.After(time.Until(end) - 30*time.Millisecond)
	each(40, func(int) {
		s := &showing{g: g, v: rig.Visit{}, token: text}
		s.connect("passcode", text)
		if s.conn == nil {
			t.Error(s.err)
			return
		}
		defer s.conn.Close()
		f := s.frame
		if f.Command == "CONNECTED" {
			var err error
			if f, err = s.conn.Read(rig.Patience); err != nil {
				t.Error(err)
			}
		}
		if got := f.Get("message"); f.Command != "ERROR" || got != auth.RefusedText && got != "token expired" {
			t.Errorf("got %s", f)
		}
		if err := s.conn.ExpectClose(rig.Patience); err != nil {
			t.Error(err)
		}
	})
	rig.Holds(t, "end of the sessions", func() bool { return len(g.Connections()) == 0 })
}
