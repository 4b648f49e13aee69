package bridge

import (
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/router"
)

const (
	// sharedTail is the size from which receivers share one copy of an encoded message instead of copying it.
	sharedTail = 16 << 10
	// topicPendingBytes bounds what nats.go holds for one subject while its dispatcher works.
	topicPendingBytes = 64 << 20
)

func appendUint(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }

// TopicReceiver takes the messages of one topic subscription.
type TopicReceiver interface {
	// DeliverTopic hands over the part of a MESSAGE that begins with the destination header. It must not block, and
	// must not change tail; it may keep tail only if shared. origin is the sending connection's name, or empty.
	DeliverTopic(tail []byte, shared bool, origin string)
}

// TopicSubscription is a receiver's place in the fan-out.
type TopicSubscription struct {
	f        *fanout
	t        *topic // nil for a group, which has a NATS subscription of its own
	view     View
	receiver TopicReceiver
	group    *nats.Subscription
	ordered  bool
}

// Ordered says whether a SEND that follows SubscribeTopic comes behind the subscription at the server even
// before it is live.
func (s *TopicSubscription) Ordered() bool { return s.ordered }

// fanout has one NATS subscription per distinct subject and hands its messages to the local receivers.
type fanout struct {
	b *Bridge

	mu     sync.Mutex
	topics map[string]*topic // guarded by mu; by subject

	wides atomic.Int32 // NATS subscriptions that begin with a wildcard
}

// topic is one NATS subscription and its receivers.
type topic struct {
	f       *fanout
	subject string
	wide    bool
	groups  atomic.Pointer[[]receivers]

	// Guarded by fanout.mu.
	sub     *nats.Subscription
	live    bool          // flushed: the server knows the subscription
	waiting []func(error) // asked before it was live
	gone    bool

	scratch []byte // owned by the NATS dispatcher
}

// receivers are those that want their messages written alike. Never changed once published.
type receivers struct {
	view View
	list []TopicReceiver
}

func newFanout(b *Bridge) *fanout {
	return &fanout{b: b, topics: make(map[string]*topic)}
}

// SubscribeTopic adds r to the receivers of the route. live is called once, when the server knows the subscription, or
// with the error that prevented it; messages may come before. Neither blocks. A group is a NATS queue group, each
// message of which goes to one member on one node.
func (b *Bridge) SubscribeTopic(route router.Route, group string, view View, r TopicReceiver, live func(error)) *TopicSubscription {
	s := &TopicSubscription{f: b.topics, view: view.of(route), receiver: r, ordered: !route.Wide}
	if group != "" {
		s.joinGroup(route, group, live)
		return s
	}
	s.f.mu.Lock()
	t, ok := s.f.topics[route.Subject]
	if !ok {
		t = &topic{f: s.f, subject: route.Subject, wide: route.Wide}
		t.groups.Store(&[]receivers{})
		s.f.topics[route.Subject] = t
	}
	s.t = t
	t.add(s)
	if t.live {
		s.f.mu.Unlock()
		live(nil)
		return s
	}
	t.waiting = append(t.waiting, live)
	if ok {
		s.ordered = false // Somebody else is about to send the SUB.
	}
	s.f.mu.Unlock()
	if !ok {
		t.open()
	}
	return s
}

// Close ends the subscription; when it returns, r gets no new message, but a delivery may be under way.
func (s *TopicSubscription) Close() {
	if s.t == nil {
		if s.group != nil {
			s.f.unsubscribe(s.group)
		}
		return
	}
	s.f.mu.Lock()
	empty := s.t.remove(s)
	var sub *nats.Subscription
	if empty {
		s.t.gone = true
		sub = s.t.sub
		if s.f.topics[s.t.subject] == s.t {
			delete(s.f.topics, s.t.subject)
		}
	}
	s.f.mu.Unlock()
	if sub != nil {
		s.f.unsubscribe(sub)
	}
}

func (s *TopicSubscription) joinGroup(route router.Route, group string, live func(error)) {
	t := &topic{f: s.f, subject: route.Subject, wide: route.Wide}
	t.groups.Store(&[]receivers{{view: s.view, list: []TopicReceiver{s.receiver}}})
	nc, flush := s.f.link(route.Wide)
	s.f.count(route.Wide, 1)
	since := time.Now()
	sub, err := nc.QueueSubscribe(route.Subject, group, t.dispatch)
	if err != nil {
		s.f.count(route.Wide, -1)
		live(err)
		return
	}
	_ = sub.SetPendingLimits(-1, topicPendingBytes) // Fails only on a closed subscription.
	s.group = sub
	flush.after(func(err error) {
		if err == nil {
			err = s.f.b.denied(route.Wide, false, route.Subject, since)
		}
		live(err)
	})
}

// unsubscribe ends a NATS subscription of the fan-out.
func (f *fanout) unsubscribe(sub *nats.Subscription) {
	_ = sub.Unsubscribe() // Fails only when the connection is gone, and then it is done.
	if strings.HasPrefix(sub.Subject, "*") || strings.HasPrefix(sub.Subject, ">") {
		f.b.wide.after(func(error) { f.count(true, -1) })
	}
}

// count counts subscriptions that begin with a wildcard.
func (f *fanout) count(wide bool, n int32) {
	if !wide {
		return
	}
	if n > 0 {
		f.b.wideGate.Lock() // No pull is being ended that relies on there being none.
		defer f.b.wideGate.Unlock()
	}
	f.wides.Add(n)
}

func (f *fanout) link(wide bool) (*nats.Conn, *flusher) {
	if wide {
		return f.b.cfg.Wide, f.b.wide
	}
	return f.b.cfg.Data, f.b.data
}

// open makes the NATS subscription of a new topic. No lock is held across NATS, so the last receiver may have left
// meanwhile.
func (t *topic) open() {
	nc, flush := t.f.link(t.wide)
	t.f.count(t.wide, 1)
	since := time.Now()
	sub, err := nc.Subscribe(t.subject, t.dispatch)
	if err != nil {
		t.f.count(t.wide, -1)
		t.opened(err)
		return
	}
	_ = sub.SetPendingLimits(-1, topicPendingBytes) // Fails only on a closed subscription.
	t.f.mu.Lock()
	t.sub = sub
	gone := t.gone
	t.f.mu.Unlock()
	if gone {
		t.f.unsubscribe(sub)
	}
	flush.after(func(err error) {
		if err == nil {
			err = t.f.b.denied(t.wide, false, t.subject, since)
		}
		if err != nil {
			t.f.unsubscribe(sub)
		}
		t.opened(err)
	})
}

func (t *topic) opened(err error) {
	t.f.mu.Lock()
	waiting := t.waiting
	t.waiting = nil
	t.live = err == nil
	if err != nil && t.f.topics[t.subject] == t {
		delete(t.f.topics, t.subject)
	}
	t.f.mu.Unlock()
	for _, live := range waiting {
		live(err)
	}
}

// add publishes a new list of receivers; the dispatcher reads the old one to the end.
func (t *topic) add(s *TopicSubscription) {
	old := *t.groups.Load()
	groups := make([]receivers, 0, len(old)+1)
	found := false
	for _, g := range old {
		if g.view == s.view {
			g.list = append(append(make([]TopicReceiver, 0, len(g.list)+1), g.list...), s.receiver)
			found = true
		}
		groups = append(groups, g)
	}
	if !found {
		groups = append(groups, receivers{view: s.view, list: []TopicReceiver{s.receiver}})
	}
	t.groups.Store(&groups)
}

// remove publishes the list without s and says whether it is empty.
func (t *topic) remove(s *TopicSubscription) (empty bool) {
	old := *t.groups.Load()
	groups := make([]receivers, 0, len(old))
	for _, g := range old {
		if g.view == s.view {
			list := make([]TopicReceiver, 0, len(g.list))
			for _, r := range g.list {
				if r != s.receiver {
					list = append(list, r)
				}
			}
			g.list = list
		}
		if len(g.list) > 0 {
			groups = append(groups, g)
		}
	}
	t.groups.Store(&groups)
	return len(groups) == 0
}

// dispatch runs on the NATS subscription's own goroutine, one message at a time. A message that makes it panic is lost
// and nothing else.
func (t *topic) dispatch(m *nats.Msg) {
	defer func() {
		if p := recover(); p != nil {
			t.f.b.log.Error("panic in a dispatcher", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if t.wide && t.f.b.cfg.Router.Reserved(m.Subject) {
		return
	}
	t.f.b.showReply(m)
	origin := ""
	if o := m.Header[originHeader]; len(o) > 0 {
		origin = o[0]
	}
	for _, g := range *t.groups.Load() {
		destination, ok := g.view.destination(t.f.b.cfg.Router, m.Subject)
		if !ok {
			continue
		}
		shared := len(m.Data) >= sharedTail
		var tail []byte
		if shared {
			tail = appendTail(make([]byte, 0, len(m.Data)+1024), g.view.Version, destination, m, nil)
		} else {
			t.scratch = appendTail(t.scratch[:0], g.view.Version, destination, m, nil)
			tail = t.scratch
		}
		for _, r := range g.list {
			r.DeliverTopic(tail, shared, origin)
		}
	}
}
