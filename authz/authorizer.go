package authz

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what an Authorizer is made of. The zero value is a good one.
type Config struct {
	// Model is the text of a Casbin model; empty is DefaultModel. It may change effect, roles and matcher; request and rule
	// keep their fields, and chanMatch(r.chan, p.chan, r.sub) must be one of the conditions that && joins in the matcher.
	Model string
	// Changed is called after each policy that was taken or refused, with the status that this attempt led to, by the
	// goroutine that brought it and with no lock held. Two calls may overlap. Default nil.
	Changed func(Status)
	// Logger receives decisions that failed, which only a faulty Model can cause. Default: discard.
	Logger *slog.Logger
}

// Status says which policy is in force and how the last attempt to change it went.
type Status struct {
	Epoch  uint64    // Epoch counts the policies that were taken since New; 0 means none yet, and everything is denied.
	Origin string    // Origin is where the one in force came from.
	Loaded time.Time // Loaded is when it was taken.
	Rules  int       // Rules are its p lines.
	Links  int       // Links are its g lines.

	Err     error     // Err says why the last attempt failed, nil if it did not: the policy in force is not the one that should be.
	Failed  time.Time // Failed is when that was, zero without Err.
	Refused uint64    // Refused counts the attempts that failed since New.
}

// Authorizer holds the policy in force. It is safe for concurrent use, has no goroutine and needs no end.
type Authorizer struct {
	// Immutable.
	engine     *engine
	definition *definition
	changed    func(Status)
	log        *slog.Logger

	state atomic.Pointer[state]

	// Guarded by mu.
	mu     sync.Mutex
	status Status
}

// state is what is in force.
type state struct {
	epoch  uint64
	policy *compiled // nil before the first one: nothing is allowed.
	log    *slog.Logger
}

func (st *state) subjects(identity string, roles []string) *subjects {
	if st.policy == nil {
		return &subjects{identity: identity}
	}
	return st.policy.subjects(identity, roles)
}

func (st *state) decide(r request) bool {
	if st.policy == nil {
		return false
	}
	allowed, _, err := st.policy.decide(r)
	if err != nil {
		st.log.Error("decision failed and is a denial", "resource", r.resource, "action", r.action.String(), "err", err)
	}
	return allowed && err == nil
}

// New returns an Authorizer that denies everything until Load takes a policy. The error says what is wrong with the
// model.
func New(c Config) (*Authorizer, error) {
	if c.Model == "" {
		c.Model = DefaultModel
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	e, d, err := newEngine(c.Model)
	if err != nil {
		return nil, fmt.Errorf("reading the model: %w", err)
	}
	a := &Authorizer{engine: e, definition: d, changed: c.Changed, log: c.Logger}
	a.state.Store(&state{log: c.Logger})
	return a, nil
}

// Load puts a policy in force whose text is given, or refuses it with a *PolicyError that has all its faults; then the one
// before stays. Origin says where the text came from, for faults and Status. When Load has returned, no decision of the
// policy before is given any more. Calls take effect one after the other; the text is not kept.
func (a *Authorizer) Load(origin string, text []byte) error {
	st, err := a.take(origin, text)
	a.tell(st)
	return err
}

// Fail tells that a policy that should be in force could not be had; the one before stays.
func (a *Authorizer) Fail(origin string, err error) {
	a.mu.Lock()
	_ = a.refuse(fmt.Errorf("%s: %w", origin, err))
	st := a.status
	a.mu.Unlock()
	a.tell(st)
}

// take is Load without telling; the status is that which the attempt led to.
func (a *Authorizer) take(origin string, policy []byte) (Status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.replace(origin, policy)
	return a.status, err
}

// replace puts a policy in force or refuses it. a.mu is held.
func (a *Authorizer) replace(origin string, policy []byte) error {
	t := parse(policy, len(a.definition.roles) > 0)
	if len(t.faults) > 0 {
		return a.refuse(&PolicyError{origin, t.faults})
	}
	p, err := compile(a.engine, a.definition, t)
	if err != nil {
		return a.refuse(&PolicyError{origin, []Fault{{0, err.Error()}}})
	}
	a.status.Epoch++
	a.status.Origin, a.status.Loaded = origin, time.Now()
	a.status.Rules, a.status.Links = len(p.rules), p.links
	a.status.Err, a.status.Failed = nil, time.Time{}
	a.state.Store(&state{epoch: a.status.Epoch, policy: p, log: a.log})
	return nil
}

func (a *Authorizer) refuse(err error) error {
	a.status.Err, a.status.Failed = err, time.Now()
	a.status.Refused++
	return err
}

func (a *Authorizer) tell(st Status) {
	if a.changed != nil {
		a.changed(st)
	}
}

// Status returns the status now.
func (a *Authorizer) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// Session returns the session of an identity with the roles of its login, which are named without "role:". The empty
// identity is a session without login. The error wraps ErrIdentity: the identity could be taken for something else, or a
// rule that denies with {sub} could apply to it and it is no single token, so that nobody can say to which channel.
func (a *Authorizer) Session(identity string, roles []string) (*Session, error) {
	if err := checkIdentity(identity); err != nil {
		return nil, err
	}
	s := &Session{authorizer: a, identity: identity, roles: slices.Clone(roles)}
	for i, role := range s.roles {
		s.roles[i] = rolePrefix + role
	}
	s.view = s.look(a.state.Load())
	if s.view.subjects.sealed {
		return nil, fmt.Errorf("%w: it is no single token of a channel, and a rule with %s could deny it something", ErrIdentity, placeholder)
	}
	return s, nil
}
