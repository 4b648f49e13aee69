package bridge

import (
	"container/heap"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// tokenLength is the octets of the unguessable part of a reply subject: 128 bits in base64url.
const tokenLength = 22

// timeoutMark separates that part from how long the requester waits, in ms. No other inbox has such a token: a responder
// behind another node learns the deadline from it, and no header is needed.
const timeoutMark = "~"

// Request is a SEND to /command or /query.
type Request struct {
	Route   router.Route
	Headers []frame.Header
	Body    []byte
	// Timeout is how long the answer may take.
	Timeout time.Duration
	// View is how the answer is written.
	View View
	// Correlation is the correlation-id of the answer; nil leaves that header to the responder.
	Correlation *string
	// Done takes the answer. It is called once, unless the request is cancelled before, and must not block. The tail
	// belongs to the bridge unless it is shared.
	Done func(Answer)
}

// Answer is the one answer to a request: the responder's, or what became of the request instead.
type Answer struct {
	// Tail is the part of the MESSAGE that begins with the destination header.
	Tail []byte
	// Shared says that Tail may be kept, but not changed.
	Shared bool
	// Outcome is what became of the request.
	Outcome Outcome
}

// Pending is a request that waits for its answer.
type Pending struct {
	r        *requests
	q        asked
	done     func(Answer)
	reply    string // where the answer is to go
	token    string // the last of reply's
	deadline time.Time
	place    int // in requests.queue; guarded by requests.mu
}

// Cancel gives the request up. When it returns, Done is either running, or over, or will never be called.
func (p *Pending) Cancel() { p.r.take(p.token) }

// Request sends a request to whoever answers its subject. An error says that nothing was sent and that Done is not
// called. When NATS cannot be reached at the moment, that is an answer: no responder.
func (b *Bridge) Request(q Request) (*Pending, error) {
	// Without the headers that speak to this server.
	m := nats.Msg{Subject: q.Route.Subject, Header: toNATS(q.Headers, "reply-to", "timeout"), Data: q.Body}
	p := b.requests.expect(q.asked(), q.Timeout, q.Done)
	err := b.publishFor(&m, p.reply)
	if err == nil || b.requests.take(p.token) == nil {
		return p, nil
	}
	if errors.Is(err, ErrTooLarge) {
		return nil, err
	}
	q.Done(p.q.failed(NoResponder))
	return p, nil
}

// Overload answers the request without sending it, because too many wait already.
func (q Request) Overload() {
	a := q.asked()
	q.Done(a.failed(Overloaded))
}

func (q *Request) asked() asked {
	return asked{view: q.View, correlation: q.Correlation, command: q.Route.Pattern == router.Commands}
}

// requests is one inbox for the replies to all requests. A token is unguessable and used once, so that nobody but the
// receiver of a request can answer it.
type requests struct {
	nc      *nats.Conn
	prefix  string
	sub     *nats.Subscription
	wake    chan struct{}
	late    atomic.Uint64
	scratch []byte // owned by the NATS dispatcher

	mu      sync.Mutex
	pending map[string]*Pending // guarded by mu; by token
	queue   byDeadline          // guarded by mu; the same requests
}

func newRequests(nc *nats.Conn) *requests {
	return &requests{nc: nc, wake: make(chan struct{}, 1), pending: make(map[string]*Pending)}
}

func (r *requests) start() error {
	r.prefix = r.nc.NewInbox() + "."
	sub, err := r.nc.Subscribe(r.prefix+"*", r.receive)
	if err != nil {
		return err
	}
	r.sub = sub
	return sub.SetPendingLimits(-1, -1) // Bounded by what is asked for.
}

func (r *requests) stop() {
	if r.sub != nil {
		_ = r.sub.Unsubscribe() // Fails only when the connection is gone, and then it is done.
	}
}

// expect makes room for an answer.
func (r *requests) expect(q asked, timeout time.Duration, done func(Answer)) *Pending {
	var room [96]byte
	reply := string(strconv.AppendInt(append(appendRandom(append(room[:0], r.prefix...)), timeoutMark...), timeout.Milliseconds(), 10))
	p := &Pending{r: r, q: q, done: done, reply: reply, token: reply[len(r.prefix):], deadline: time.Now().Add(timeout)}
	r.mu.Lock()
	r.pending[p.token] = p
	heap.Push(&r.queue, p)
	first := p.place == 0
	r.mu.Unlock()
	if first {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	return p
}

// take claims the answer to a request; nil: it has one.
func (r *requests) take(token string) *Pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending[token]
	if p != nil {
		delete(r.pending, token)
		heap.Remove(&r.queue, p.place)
	}
	return p
}

// receive runs on the NATS subscription's own goroutine, one reply at a time.
func (r *requests) receive(m *nats.Msg) {
	p := r.take(m.Subject[len(r.prefix):])
	if p == nil {
		r.late.Add(1)
		return
	}
	if len(m.Data) >= sharedTail {
		a := p.q.replied(make([]byte, 0, len(m.Data)+1024), m)
		a.Shared = true
		p.done(a)
		return
	}
	a := p.q.replied(r.scratch[:0], m)
	r.scratch = a.Tail
	p.done(a)
}

// run answers the requests whose time is over.
func (r *requests) run(stop <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.wake:
		case <-stop:
			return
		}
		due, wait := r.overdue(time.Now())
		for _, p := range due {
			p.done(p.q.failed(TimedOut))
		}
		timer.Reset(wait)
	}
}

// overdue takes out the requests whose time is over and says when the next one's is.
func (r *requests) overdue(now time.Time) (due []*Pending, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.queue) > 0 {
		p := r.queue[0]
		if wait = p.deadline.Sub(now); wait > 0 {
			return due, wait
		}
		heap.Remove(&r.queue, 0)
		delete(r.pending, p.token)
		due = append(due, p)
	}
	return due, time.Hour // The next request wakes earlier.
}

// byDeadline is a heap that knows where each request is, so that an answered one leaves no trace.
type byDeadline []*Pending

var _ heap.Interface = (*byDeadline)(nil)

func (h byDeadline) Len() int           { return len(h) }
func (h byDeadline) Less(i, j int) bool { return h[i].deadline.Before(h[j].deadline) }

func (h byDeadline) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *byDeadline) Push(x any) {
	p := x.(*Pending)
	p.place = len(*h)
	*h = append(*h, p)
}

// Pop implements heap.Interface.
func (h *byDeadline) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return p
}

// timeoutOf is how long the requester waits whose node made the reply subject; ok is false for any other subject.
func timeoutOf(reply string) (timeout time.Duration, ok bool) {
	token := reply[strings.LastIndexByte(reply, '.')+1:]
	secret, ms, ok := strings.Cut(token, timeoutMark)
	if !ok || len(secret) != tokenLength {
		return 0, false
	}
	n, err := strconv.ParseUint(ms, 10, 32)
	return time.Duration(n) * time.Millisecond, err == nil
}

// randomToken is 128 random bits as one token of a subject.
func randomToken() string { return string(appendRandom(nil)) }

func appendRandom(dst []byte) []byte {
	var b [16]byte
	_, _ = rand.Read(b[:]) // Never fails.
	return base64.RawURLEncoding.AppendEncode(dst, b[:])
}
