package connector

import (
	"math"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// maxTimeout is the longest time that fits a duration: the header timeout only shortens rpc.timeout.
const maxTimeout = time.Duration(math.MaxInt64 / int64(time.Millisecond) * int64(time.Millisecond))

// notOnRequest are the headers of SEND that /command and /query do not honour.
var notOnRequest = map[string]string{
	"x-dedup-id":          "a request is not remembered, use /queue",
	"_AMQ_DUPL_ID":        "a request is not remembered, use /queue",
	"x-delay":             "a request is not kept, use /queue",
	"AMQ_SCHEDULED_DELAY": "a request is not kept, use /queue",
}

// request is a SEND to /command or /query that waits for its one answer.
type request struct {
	sub     *subscription   // that gets the answer
	pending *bridge.Pending // owned by the reader
}

// wish is what the headers of a request ask for.
type wish struct {
	sub         *subscription
	timeout     time.Duration
	correlation *string
}

// wishOf reads and checks the headers of a request: reply-to must name an active local destination of this connection.
func (c *conn) wishOf(f *frame.Frame) (wish, error) {
	w := wish{timeout: c.srv.cfg.RPC.Timeout}
	to, err := required(f, "reply-to")
	if err != nil {
		return w, err
	}
	if !isPrivate(to) {
		return w, refuse("header reply-to: %s is not a /reply/ destination that is subscribed on this connection", printable(string(to)))
	}
	route, known := c.routes[string(to)]
	if !known {
		if route, err = c.parse(to, router.Send); err != nil {
			return w, err
		}
		c.cacheRoute(to, route)
	}
	if w.sub, err = c.localFor(to, route); err != nil {
		return w, err
	}
	if timeout, ok, err := milliseconds(f, "timeout", time.Millisecond, maxTimeout); err != nil {
		return w, err
	} else if ok {
		w.timeout = min(w.timeout, timeout)
	}
	if id, ok := f.Lookup("correlation-id"); ok {
		text := string(id)
		w.correlation = &text
	}
	return w, nil
}

// request sends a request. Whatever becomes of it, exactly one MESSAGE answers it while the reply subscription lives.
func (c *conn) request(route router.Route, f *frame.Frame) error {
	w, err := c.wishOf(f)
	if err != nil {
		return err
	}
	r := &request{sub: w.sub}
	q := bridge.Request{
		Route: route, Headers: f.Headers, Body: f.Body,
		Timeout: w.timeout, Correlation: w.correlation, View: w.sub.view(),
		Done: r.answered,
	}
	c.mu.Lock()
	room := len(c.requests) < c.srv.cfg.Limits.RPCPending
	if room {
		if c.requests == nil {
			c.requests = make(map[*request]struct{})
		}
		c.requests[r] = struct{}{}
	}
	c.mu.Unlock()
	if !room {
		q.Overload()
		return nil
	}
	if r.pending, err = c.srv.bridge.Request(q); err != nil {
		c.mu.Lock()
		delete(c.requests, r)
		c.mu.Unlock()
	}
	return err
}

// answered takes the answer, on whatever goroutine it comes.
func (r *request) answered(a bridge.Answer) {
	s := r.sub
	defer s.recovered()
	c := s.conn
	c.mu.Lock()
	delete(c.requests, r)
	c.mu.Unlock()
	if !s.acceptReply(a.Tail, a.Shared) {
		c.srv.lostReplies.Add(1)
		return
	}
	c.kick()
}

// cancelRequests gives up what nobody waits for any more. Called by the reader, after the last SEND.
func (c *conn) cancelRequests() {
	c.mu.Lock()
	open := c.requests
	c.requests = nil
	c.mu.Unlock()
	for r := range open {
		r.pending.Cancel()
	}
}
