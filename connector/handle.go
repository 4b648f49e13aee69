package connector

import (
	"strconv"
	"time"

	"github.com/natstomp/natstomp/connector/frame"
)

// handle does what a frame asks for. An error ends the session.
func (c *conn) handle(f *frame.Frame) error {
	connect := f.Command == frame.Connect || f.Command == frame.Stomp
	switch {
	case !c.connected && connect:
		return c.connect(f)
	case !c.connected:
		return refuse("%s before CONNECT: the first frame must be CONNECT or STOMP", f.Command)
	case connect:
		return refuse("second %s on one connection", f.Command)
	}
	if c.via != viaLocal {
		if err := c.rate.count(c.srv.cfg.Limits.FramesPerSecond); err != nil {
			return err
		}
	}
	if err := c.checkIDs(f); err != nil {
		return err
	}
	switch f.Command {
	case frame.Send:
		return c.send(f)
	case frame.Subscribe:
		return c.subscribe(f)
	case frame.Unsubscribe:
		return c.unsubscribe(f)
	case frame.Ack, frame.Nack:
		return c.acknowledge(f)
	case frame.Begin:
		return c.begin(f)
	case frame.Commit:
		return c.commit(f)
	case frame.Abort:
		return c.rollback(f)
	case frame.Disconnect:
		return errDisconnect
	}
	return refuse("%s is a server's frame", f.Command)
}

// checkIDs holds ids and receipts to limits.id, and to what the version can echo.
func (c *conn) checkIDs(f *frame.Frame) error {
	most := c.srv.cfg.Limits.ID
	for _, h := range f.Headers {
		switch string(h.Name) {
		case "id", "receipt", "transaction", "message-id", "subscription", "ack":
		default:
			continue
		}
		if most > 0 && len(h.Value) > most {
			return refuse("header %s too long: limits.id is %d (got %d)", h.Name, most, len(h.Value))
		}
		if !frame.Representable(c.version, h.Name, h.Value) {
			return refuse("header %s holds what STOMP %s cannot represent", h.Name, c.version)
		}
	}
	return nil
}

// required returns a header that the frame must have. An empty one is as good as missing.
func required(f *frame.Frame, name string) ([]byte, error) {
	v, ok := f.Lookup(name)
	if !ok || len(v) == 0 {
		return nil, refuse("%s needs a header %s", f.Command, name)
	}
	return v, nil
}

// milliseconds reads a header that is a duration; ok is false where it is absent.
func milliseconds(f *frame.Frame, name string, least, most time.Duration) (d time.Duration, ok bool, err error) {
	v, present := f.Lookup(name)
	if !present {
		return 0, false, nil
	}
	n, perr := strconv.ParseInt(string(v), 10, 64)
	if perr != nil || n < least.Milliseconds() || n > most.Milliseconds() {
		return 0, false, refuse("header %s: %q is not a number of milliseconds from %d to %d",
			name, printable(string(v)), least.Milliseconds(), most.Milliseconds())
	}
	return time.Duration(n) * time.Millisecond, true, nil
}

// flag reads a header that is true or false; absent is false.
func flag(f *frame.Frame, name string) (bool, error) {
	v, ok := f.Lookup(name)
	if !ok || string(v) == "false" {
		return false, nil
	}
	if string(v) == "true" {
		return true, nil
	}
	return false, refuse("header %s: %q is not true or false", name, printable(string(v)))
}

// unsupported refuses the first of the named headers that the frame has, unless it asks for nothing. Each comes with
// what to do instead.
func unsupported(f *frame.Frame, names map[string]string) error {
	for _, h := range f.Headers {
		if hint, ok := names[string(h.Name)]; ok && nothing[string(h.Name)] != string(h.Value) {
			return refuse("header %s on %s is not supported: %s", h.Name, f.Command, hint)
		}
	}
	return nil
}

// nothing has the values by which a header asks for nothing.
var nothing = map[string]string{
	"expires":              "0",
	"expiration":           "0",
	"x-delay":              "0",
	"AMQ_SCHEDULED_DELAY":  "0",
	"AMQ_SCHEDULED_REPEAT": "0",
	"activemq.priority":    "0",
	"browser":              "false",
	"auto-delete":          "false",
	"activemq.exclusive":   "false",

	"activemq.noLocal":                    "false",
	"activemq.retroactive":                "false",
	"activemq.maximumPendingMessageLimit": "-1",
	"x-single-active-consumer":            "false",
}

// frameRate counts frames per second.
type frameRate struct {
	second int64
	frames int
}

func (r *frameRate) count(limit int) error {
	if limit == 0 {
		return nil
	}
	if now := time.Now().Unix(); now != r.second {
		r.second, r.frames = now, 0
	}
	if r.frames++; r.frames > limit {
		return refuse("too many frames: limits.frames_per_second is %d", limit)
	}
	return nil
}
