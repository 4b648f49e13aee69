package authz

import (
	"fmt"
	"sync"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
)

// request is what Casbin is asked.
type request struct {
	subjects          *subjects
	resource, channel string
	action            Action
}

// engine takes decisions. It is what this package needs of Casbin, which nothing but this file knows. It keeps enforcers
// that are made of one model and idle: an enforcer takes one decision at a time, because the rows are put into it for
// that.
type engine struct {
	model string
	idle  sync.Pool // Of *seat.
}

// seat is an enforcer and what it works on. The roles are not Casbin's: its role manager does not know those that a
// session comes with, gives up above ten levels, and its g remembers every name it was ever asked about.
type seat struct {
	enforcer *casbin.Enforcer
	rules    *model.Assertion
	subjects *subjects
}

func newSeat(text string) (*seat, error) {
	m, err := model.NewModelFromString(text)
	if err != nil {
		return nil, err
	}
	delete(m, "g") // Otherwise Casbin would put its own in the place of ours.
	s := &seat{rules: m["p"]["p"]}
	if s.enforcer, err = casbin.NewEnforcer(m); err != nil {
		return nil, err
	}
	s.enforcer.AddFunction("g", s.hasRole)
	s.enforcer.AddFunction("chanMatch", func(args ...any) (any, error) {
		t, err := texts("chanMatch", 3, args)
		return err == nil && chanMatch(t[0], t[1], t[2]), err
	})
	return s, nil
}

// hasRole is g(r.sub, p.sub).
func (s *seat) hasRole(args ...any) (any, error) {
	t, err := texts("g", 2, args)
	return err == nil && (t[0] == s.subjects.identity && s.subjects.has(t[1])), err
}

// texts returns the arguments of a function that takes n texts.
func texts(name string, n int, args []any) (t [3]string, err error) {
	if len(args) != n {
		return t, fmt.Errorf("%s takes %d values", name, n)
	}
	for i, arg := range args {
		text, ok := arg.(string)
		if !ok {
			return t, fmt.Errorf("%s takes texts", name)
		}
		t[i] = text
	}
	return t, nil
}

// newEngine returns an engine for a model and what the model says, or why it cannot be used.
func newEngine(text string) (*engine, *definition, error) {
	d, err := read(text)
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return nil, nil, err
	}
	e := &engine{model: text}
	return e, d, e.try()
}

// read takes a model apart.
func read(text string) (*definition, error) {
	m, err := model.NewModelFromString(text)
	if err != nil {
		return nil, err
	}
	d := &definition{}
	for section, entries := range m {
		for name, a := range entries {
			switch name {
			case "r":
				d.request = a.Tokens
			case "p":
				d.rule = a.Tokens
			case "g":
				d.roles = append(d.roles, a.Value)
			case "e":
				d.effect = a.Value
			case "m":
				d.matcher = a.Value
			case "logger":
			default:
				d.others = append(d.others, section+" "+name)
			}
		}
	}
	return d, nil
}

// try takes decisions that meet and miss rules of both effects, so that a fault of a model shows at the start.
func (e *engine) try() error {
	who := &subjects{identity: "a", names: []string{"a"}, set: map[string]struct{}{"a": {}}}
	permit, forbid := Rule{0, "a", "events", "a", "write", allow}, Rule{0, "a", "events", "a", "write", deny}
	other := Rule{0, "role:b", "queues", "b.>", "read", allow}
	for _, channel := range []string{"a", "b.c"} {
		for _, rows := range [][][]string{nil, {permit.row()}, {other.row(), forbid.row()}, {permit.row(), forbid.row(), other.row()}} {
			if _, _, err := e.decide(request{who, "events", channel, Write}, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// decide decides over rows of rules, in the order of the policy. It returns the index of the row that led to the decision,
// -1 if there is none. It is safe for concurrent use.
func (e *engine) decide(r request, rows [][]string) (allowed bool, by int, err error) {
	s, _ := e.idle.Get().(*seat)
	if s == nil {
		if s, err = newSeat(e.model); err != nil {
			return false, -1, err
		}
	}
	s.subjects, s.rules.Policy = r.subjects, rows
	allowed, rule, err := s.enforcer.EnforceEx(r.subjects.identity, r.resource, r.channel, r.action.String())
	s.subjects, s.rules.Policy = nil, nil
	e.idle.Put(s)
	if err != nil {
		return false, -1, err
	}
	by = -1
	for i := range rows {
		if len(rule) > 0 && &rule[0] == &rows[i][0] { // Casbin returns the row itself.
			by = i
		}
	}
	return allowed, by, nil
}

// arrange puts rows into the order of a ranked effect: those for a member of a role, by the links, before those for the
// role. It works in rows.
func (e *engine) arrange(rows, links [][]string) error {
	m, err := model.NewModelFromString(e.model)
	if err != nil {
		return err
	}
	m["p"]["p"].Policy = rows
	if g := m["g"]["g"]; g != nil {
		g.Policy = links
	}
	return m.SortPoliciesBySubjectHierarchy()
}
