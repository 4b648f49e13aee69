package conformance

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/natstomp/natstomp/test/stompclient"
)

// client is a connection of a script.
type client struct {
	*stompclient.Conn
	name      string
	connected bool
	beating   bool            // The script sent a heart-beat header.
	ended     bool            // One side has closed.
	ids       map[string]bool // The message-ids so far.
	next      *stompclient.Frame
}

// client returns the open connection of that name.
func (r *runner) client(name string) (*client, error) {
	for _, c := range slices.Backward(r.clients) {
		if c.name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("script: no connection %s", name)
}

func (e Env) open() (*stompclient.Conn, error) {
	if e.WebSocket {
		return stompclient.DialWebSocket(e.Server.WebSocketURL)
	}
	return stompclient.Dial(e.Server.TCPAddr)
}

func (r *runner) dial(name string) (*client, error) {
	if c, err := r.client(name); err == nil && !c.ended {
		return nil, fmt.Errorf("script: connection %s is open", name)
	}
	conn, err := r.env.open()
	if err != nil {
		return nil, err
	}
	c := &client{Conn: conn, name: name, ids: map[string]bool{}}
	r.clients = append(r.clients, c)
	return c, nil
}

// connStep runs one step of a connection, or a group of <any.
func (r *runner) connStep(group []step) error {
	st := group[0]
	if !strings.HasPrefix(st.verb, "<") {
		r.began = time.Now()
		defer func() { r.mark = time.Now() }()
	}
	switch st.verb {
	case "dial":
		_, err := r.dial(st.conn)
		return err
	case "connect":
		return r.connect(st)
	}
	c, err := r.client(st.conn)
	if err != nil {
		return err
	}
	switch st.verb {
	case "<":
		return r.expect(c, st)
	case "<any":
		return r.expectAny(c, group)
	case "<skip":
		return c.skip(st.words[0])
	case "<none":
		return c.silent(st.words[0])
	case "<beat":
		return r.expectBeat(c, st)
	case "<close":
		c.ended = true
		return r.inTime(st, c.ExpectClose(patience))
	case "<end":
		return r.expectEnd(c, st)
	default:
		return r.act(c, st)
	}
}

// connect dials, sends CONNECT and expects CONNECTED in the version asked for.
func (r *runner) connect(st step) error {
	c, err := r.dial(st.conn)
	if err != nil {
		return err
	}
	version, words := r.version, st.words
	if len(words) > 0 && slices.Contains(versions, words[0]) {
		version, words = words[0], words[1:]
	}
	f, err := r.frame(append([]string{"CONNECT"}, words...), "")
	if err != nil {
		return err
	}
	if version != "1.0" {
		f.Headers = append(f.Headers, stompclient.Header{Name: "accept-version", Value: version})
	}
	_, c.beating = f.Lookup("heart-beat")
	if err := c.Send(f); err != nil {
		return err
	}
	got, err := c.read()
	if err != nil {
		return err
	}
	if got.Command != "CONNECTED" || got.Get("version") != version {
		return fmt.Errorf("got %s, want CONNECTED with version:%s", got, version)
	}
	return nil
}

// frame makes a frame of expanded words.
func (r *runner) frame(words []string, body string) (stompclient.Frame, error) {
	f := stompclient.Frame{Command: r.expand(words[0]), Body: []byte(r.expand(body))}
	for _, w := range words[1:] {
		if name, ok := strings.CutPrefix(w, "@"); ok {
			headers, err := r.settling(name)
			if err != nil {
				return f, err
			}
			f.Headers = append(f.Headers, headers...)
			continue
		}
		name, value, ok := strings.Cut(w, ":")
		if !ok {
			return f, fmt.Errorf("script: %q is no header", w)
		}
		name = strings.ReplaceAll(name, "%3A", ":")
		f.Headers = append(f.Headers, stompclient.Header{Name: r.expand(name), Value: r.expand(value)})
	}
	return f, nil
}

// settling returns the headers by which each version acknowledges a captured message.
func (r *runner) settling(name string) ([]stompclient.Header, error) {
	h, ok := r.acks[name]
	if !ok {
		return nil, fmt.Errorf("script: no message was captured as %s", name)
	}
	switch r.version {
	case "1.0":
		return []stompclient.Header{{Name: "message-id", Value: h.id}}, nil
	case "1.1":
		return []stompclient.Header{{Name: "message-id", Value: h.id}, {Name: "subscription", Value: h.subscription}}, nil
	default:
		return []stompclient.Header{{Name: "id", Value: h.id}}, nil
	}
}

// act runs a step that sends or closes.
func (r *runner) act(c *client, st step) error {
	switch st.verb {
	case ">":
		f, err := r.frame(st.words, st.body)
		if err != nil {
			return err
		}
		if _, found := f.Lookup("heart-beat"); found {
			c.beating = true
		}
		return c.Send(f)
	case ">>":
		octets := r.expand(strings.Join(st.words, " "))
		c.beating = c.beating || strings.Contains(octets, "heart-beat:")
		return c.Write([]byte(octets))
	case ">1":
		for _, b := range []byte(r.expand(strings.Join(st.words, " "))) {
			if err := c.Write([]byte{b}); err != nil {
				return err
			}
		}
		return nil
	case "beat":
		return c.beat(st.words[0], st.words[1])
	case "half":
		tcp, ok := c.NetConn().(*net.TCPConn)
		if !ok {
			return errors.New("not a TCP connection")
		}
		return tcp.CloseWrite()
	case "reset":
		c.ended = true
		return c.Reset()
	default:
		c.ended = true
		return c.Close()
	}
}

// beat sends n heart-beats.
func (c *client) beat(every, n string) error {
	d, err := time.ParseDuration(every)
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	tick := time.NewTicker(d)
	defer tick.Stop()
	for range count {
		<-tick.C
		if err := c.Write([]byte("\n")); err != nil {
			return err
		}
	}
	return nil
}

// read returns the next frame after checking what holds for each.
func (c *client) read() (stompclient.Frame, error) {
	if c.next != nil {
		f := *c.next
		c.next = nil
		return f, nil
	}
	f, err := c.Read(patience)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return f, fmt.Errorf("nothing arrived within %v", patience)
	case err != nil:
		return f, fmt.Errorf("instead of a frame: %w", err)
	}
	return f, c.check(f)
}

// silent expects that nothing arrives for a while.
func (c *client) silent(d string) error {
	timeout, err := time.ParseDuration(d)
	if err != nil {
		return err
	}
	beats := c.Beats()
	f, err := c.Read(timeout)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if n := c.Beats() - beats; n > 0 {
			return fmt.Errorf("got %d heart-beats, want nothing", n)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("want nothing, not even the end: %w", err)
	}
	return fmt.Errorf("got %s, want nothing", f)
}

// skip reads frames up to one of another command, which is the next then.
func (c *client) skip(command string) error {
	for {
		f, err := c.read()
		if err != nil {
			return err
		}
		if f.Command != command {
			c.next = &f
			return nil
		}
	}
}

// finish ends an open connection by DISCONNECT and expects its RECEIPT and the close as the next things.
func (c *client) finish() error {
	if c.ended {
		return nil
	}
	c.ended = true
	if !c.connected {
		return c.Close()
	}
	if err := c.Send(stompclient.New("DISCONNECT", "receipt", "end-of-script")); err != nil {
		return err
	}
	f, err := c.read()
	if err != nil {
		return err
	}
	if f.Command != "RECEIPT" || f.Get("receipt-id") != "end-of-script" {
		return fmt.Errorf("got %s, which the script does not expect, want the RECEIPT of DISCONNECT", f)
	}
	return c.ExpectClose(patience)
}
