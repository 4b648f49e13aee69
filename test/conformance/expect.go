package conformance

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/natstomp/natstomp/test/stompclient"
)

// expect reads one frame and matches it.
func (r *runner) expect(c *client, st step) error {
	f, err := c.read()
	if err != nil {
		return err
	}
	if err := r.inTime(st, nil); err != nil {
		return err
	}
	return r.accept(c, st, f)
}

// accept matches a frame that was read, takes over what it captures and, after an ERROR, expects the close.
func (r *runner) accept(c *client, st step, f stompclient.Frame) error {
	got := message{f.Command, f.Headers, f.Body}
	found, err := r.match(st, got)
	if err != nil {
		if r.env.Rewrite == nil {
			return fmt.Errorf("%w\n\tgot %s", err, f)
		}
		r.env.Rewrite(st.line, r.rewritten(st, got))
	}
	for name, value := range found {
		r.vars[name] = value
		r.acks[name] = held{value, f.Get("subscription")}
	}
	if f.Command != "ERROR" {
		return nil
	}
	c.ended = true
	if err := c.ExpectClose(patience); err != nil {
		return fmt.Errorf("after %s: %w", f, err)
	}
	return nil
}

// expectAny reads as many frames as there are steps; each must match one of them.
func (r *runner) expectAny(c *client, group []step) error {
	for len(group) > 0 {
		f, err := c.read()
		if err != nil {
			return err
		}
		var misses []string
		matched := -1
		for i, st := range group {
			_, err := r.match(st, message{f.Command, f.Headers, f.Body})
			if err == nil {
				matched = i
				break
			}
			misses = append(misses, err.Error())
		}
		if matched < 0 {
			return fmt.Errorf("got %s, which matches none of %d lines:\n\t%s", f, len(group), strings.Join(misses, "\n\t"))
		}
		if err := r.accept(c, group[matched], f); err != nil {
			return err
		}
		group = append(group[:matched:matched], group[matched+1:]...)
	}
	return nil
}

// expectBeat waits for a heart-beat; its range counts from the call or the last octet, whichever is later.
func (r *runner) expectBeat(c *client, st step) error {
	began := time.Now()
	if err := c.ReadBeat(patience); err != nil {
		return err
	}
	took := time.Since(began)
	return within(st, took, took)
}

// expectEnd expects the close, after an ERROR or without one.
func (r *runner) expectEnd(c *client, st step) error {
	c.ended = true
	f, err := c.Read(patience)
	if err == nil {
		if f.Command != "ERROR" {
			return fmt.Errorf("got %s, want the end of the connection", f)
		}
		if err = c.check(f); err == nil {
			err = c.ExpectClose(patience)
		}
		return r.inTime(st, err)
	}
	if errors.Is(err, stompclient.ErrWire) || isTimeout(err) {
		return fmt.Errorf("instead of the end of the connection: %w", err)
	}
	return r.inTime(st, nil)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// inTime returns err, or else checks the range of the step against the time since the last step that did something. When
// within that step it was done nobody knows: this process may wait for the processor before and after.
func (r *runner) inTime(st step, err error) error {
	if err != nil {
		return err
	}
	now := time.Now()
	return within(st, now.Sub(r.began), now.Sub(r.mark))
}

// within checks the range of a step, given the most and the least time that it can have taken.
func within(st step, most, least time.Duration) error {
	if st.max != 0 && (most < st.min || least > st.max) {
		return fmt.Errorf("came after %v to %v, want between %v and %v", least, most, st.min, st.max)
	}
	return nil
}

// errorType is the content-type of each ERROR (DESIGN section 3: exactly text/plain kills one well-known client).
const errorType = "text/plain;charset=utf-8"

// internals is what no ERROR shows (DESIGN section 3): texts of libraries, places in the source, names of our streams.
var internals = regexp.MustCompile(`nats: |\.go:\d|goroutine|runtime error|nil pointer|JetStream|Q_[A-Za-z0-9_-]+_[0-9a-f]{8}`)

// check asserts what DESIGN section 3 says of every frame of a kind.
func (c *client) check(f stompclient.Frame) error {
	if err := c.checkBeats(); err != nil {
		return err
	}
	switch f.Command {
	case "CONNECTED":
		if c.connected {
			return fmt.Errorf("a second CONNECTED: %s", f)
		}
		c.connected = true
	case "RECEIPT":
		for _, h := range f.Headers {
			if h.Name != "receipt-id" && h.Name != "x-duplicate" {
				return fmt.Errorf("header %q on a RECEIPT", h.Name)
			}
		}
		if f.Get("receipt-id") == "" || len(f.Body) != 0 {
			return fmt.Errorf("a RECEIPT without its id or with a body: %s", f)
		}
	case "ERROR":
		switch text := f.Get("message"); {
		case text == "" || text != string(f.Body):
			return fmt.Errorf("message header and body of an ERROR must be the same text: %s", f)
		case f.Get("content-type") != errorType:
			return fmt.Errorf("content-type of an ERROR: got %q, want %q", f.Get("content-type"), errorType)
		case internals.MatchString(text):
			return fmt.Errorf("an ERROR shows what is inside: %s", f)
		}
	default:
		return c.checkMessage(f)
	}
	return nil
}

func (c *client) checkMessage(f stompclient.Frame) error {
	id := f.Get("message-id")
	switch {
	case id == "" || f.Get("destination") == "":
		return fmt.Errorf("a MESSAGE without message-id or destination: %s", f)
	case c.ids[id]:
		return fmt.Errorf("message-id %q for the second time: %s", id, f)
	case strings.ContainsAny(id, ":\\\r\n"):
		return fmt.Errorf("a message-id that needs escaping: %s", f)
	}
	c.ids[id] = true
	if ack, found := f.Lookup("ack"); found && ack != id {
		return fmt.Errorf("ack %q differs from message-id %q", ack, id)
	}
	if v, found := f.Lookup("redelivered"); found && v != "true" {
		return fmt.Errorf("redelivered:%s, which is there only when true", v)
	}
	return nil
}

func (c *client) checkBeats() error {
	if c.Beats() > 0 && !c.beating {
		return fmt.Errorf("%d EOLs between frames although the client wants no heart-beats", c.Beats())
	}
	return nil
}
