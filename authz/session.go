package authz

import "sync"

// maxKnown bounds the decisions that a session remembers. With channels of at most 512 octets and the subjects that they
// are cut from, it keeps a session below 1 MiB whatever its client asks for.
const maxKnown = 512

// Session is what one login may do. It is safe for concurrent use and needs no end.
type Session struct {
	authorizer *Authorizer
	identity   string
	roles      []string // As the session came with them, with prefix.

	// Guarded by mu.
	mu   sync.Mutex
	view *view
}

// view is a session under one policy.
type view struct {
	state    *state
	subjects *subjects
	known    map[question]bool // Guarded by the session's mu.
}

// question is what decisions are remembered by. Equal routes give equal questions and no others do: the channel is
// compared octet by octet beside resource and action.
type question struct {
	channel string
	kind    uint8 // Resource and action.
}

// kindOf returns the kind of a question, false if there is no such resource or action.
func kindOf(a Action, resource string) (uint8, bool) {
	var r uint8
	switch resource {
	case "events":
		r = 0
	case "events_store":
		r = 1
	case "queues":
		r = 2
	case "commands":
		r = 3
	case "queries":
		r = 4
	default:
		return 0, false
	}
	return r<<1 | uint8(a-Read), a == Read || a == Write
}

// Allowed reports whether the session may act on a channel. The resource is the name of the pattern (Resources), the
// channel the one of the same route, for Read also with wildcards. An unknown resource is denied; reply addresses are
// not asked for. The strings are kept.
//
// A decision is one of the policy in force when Allowed returns; one that is remembered costs no allocation. What a
// caller registers on the strength of a decision, such as a subscription, it asks again after it is registered: from
// then on Config.Changed leads to it.
func (s *Session) Allowed(a Action, resource, channel string) bool {
	kind, ok := kindOf(a, resource)
	if !ok {
		return false
	}
	q := question{channel, kind}
	s.mu.Lock()
	v := s.view
	allowed, known := v.known[q]
	known = known && v.state == s.authorizer.state.Load()
	s.mu.Unlock()
	if known {
		return allowed
	}
	return s.decide(q, a, resource)
}

// decide asks the policy in force and remembers its answer.
func (s *Session) decide(q question, a Action, resource string) bool {
	for {
		v := s.current()
		allowed := v.state.decide(request{v.subjects, resource, q.channel, a})
		if v.state != s.authorizer.state.Load() {
			continue
		}
		s.mu.Lock()
		if len(v.known) >= maxKnown {
			clear(v.known)
		}
		v.known[q] = allowed
		s.mu.Unlock()
		return allowed
	}
}

// current returns the view of the policy in force.
func (s *Session) current() *view {
	state := s.authorizer.state.Load()
	s.mu.Lock()
	v := s.view
	s.mu.Unlock()
	if v.state == state {
		return v
	}
	v = s.look(state)
	s.mu.Lock()
	s.view = v
	s.mu.Unlock()
	return v
}

// look returns the session as a policy sees it.
func (s *Session) look(st *state) *view {
	return &view{state: st, subjects: st.subjects(s.identity, s.roles), known: make(map[question]bool)}
}
