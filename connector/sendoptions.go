package connector

import (
	"strconv"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
)

const (
	// maxDelay bounds x-delay.
	maxDelay = 10 * 365 * 24 * time.Hour
	// maxExpiration is from what time on an expiration counts as none.
	maxExpiration = 100 * 365 * 24 * time.Hour
)

// sendOptions reads what a SEND to a queue asks for beyond being stored (DESIGN section 4.3).
func (c *conn) sendOptions(f *frame.Frame) (o bridge.SendOptions, err error) {
	asks := false
	for _, h := range f.Headers {
		switch string(h.Name) {
		case "expires", "expiration", "x-delay", "AMQ_SCHEDULED_DELAY", "x-dedup-id", "_AMQ_DUPL_ID":
			asks = true
		}
	}
	if !asks {
		return o, nil
	}
	if o.Expires, err = sendTime(f, "expires"); err != nil {
		return o, err
	}
	ms, err := sendTime(f, "expiration")
	if err != nil {
		return o, err
	}
	if ms < maxExpiration.Milliseconds() {
		o.TTL = time.Duration(ms) * time.Millisecond
	}
	if o.Delay, err = sendDelay(f); err != nil {
		return o, err
	}
	if o.DedupID = dedupID(f); o.DedupID != "" {
		o.Identity = c.identity
	}
	return o, nil
}

// sendTime reads a header that is a time in ms; absent is 0.
func sendTime(f *frame.Frame, name string) (int64, error) {
	v, ok := f.Lookup(name)
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 0 {
		return 0, refuse("header %s: %q is not a number of milliseconds", name, printable(string(v)))
	}
	return n, nil
}

// sendDelay is how long a message is not to be shown.
func sendDelay(f *frame.Frame) (time.Duration, error) {
	for _, name := range []string{"x-delay", "AMQ_SCHEDULED_DELAY"} {
		if d, ok, err := milliseconds(f, name, 0, maxDelay); ok || err != nil {
			return d, err
		}
	}
	return 0, nil
}

// dedupID is what the client calls a message, so that it is stored once.
func dedupID(f *frame.Frame) string {
	for _, name := range []string{"x-dedup-id", "_AMQ_DUPL_ID"} {
		if v, ok := f.Lookup(name); ok {
			return string(v)
		}
	}
	return ""
}
