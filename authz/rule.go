package authz

import (
	"fmt"
	"slices"
	"strings"
)

// Action is what a session wants to do with a channel.
type Action uint8

// The actions.
const (
	Read  Action = iota + 1 // Read is SUBSCRIBE, browsing a queue, deleting a durable subscription, answering requests.
	Write                   // Write is SEND.
)

// String returns the name of the action in a policy: "read" or "write".
func (a Action) String() string {
	switch a {
	case Read:
		return "read"
	case Write:
		return "write"
	}
	return "unknown"
}

// ParseAction returns the action of a name, false if it is none.
func ParseAction(name string) (Action, bool) {
	switch name {
	case "read":
		return Read, true
	case "write":
		return Write, true
	}
	return 0, false
}

// Resources returns the names of what rights exist on: the patterns of package router that reach NATS.
func Resources() []string { return slices.Clone(resources) }

var resources = []string{"events", "events_store", "queues", "commands", "queries"}

// anything is every subject, resource or action of a rule.
const anything = "*"

// The effects of rules.
const (
	allow = "allow"
	deny  = "deny"
)

// Rule is a p line of a policy. A field may be quoted there, here it is as it is meant.
type Rule struct {
	Line     int    // Line counts from 1.
	Subject  string // Subject is an identity, a role ("role:sales") or "*" for anybody.
	Resource string // Resource is one of Resources, or "*" for any.
	Channel  string // Channel is a channel in dot form with "*", ">" and "{sub}" as whole tokens.
	Action   string // Action is "read", "write" or "*" for both.
	Effect   string // Effect is "allow" or "deny".
}

// String returns the rule as a line of a policy.
func (r Rule) String() string {
	return "p, " + strings.Join([]string{r.Subject, r.Resource, r.Channel, r.Action, r.Effect}, ", ")
}

// about reports whether the rule is about the channel; see match.
func (r *Rule) about(channel, identity string) bool {
	return match(r.Channel, channel, identity, r.Effect == deny)
}

// fits reports whether the rule is about the resource and the action.
func (r *Rule) fits(q request) bool {
	return (r.Resource == anything || r.Resource == q.resource) && (r.Action == anything || r.Action == q.action.String())
}

// named reports whether the rule has the placeholder.
func (r *Rule) named() bool {
	for token := range strings.SplitSeq(r.Channel, ".") {
		if token == placeholder {
			return true
		}
	}
	return false
}

// row returns the rule as Casbin gets it.
func (r *Rule) row() []string {
	channel := r.Channel
	if r.Effect == deny {
		channel = denies + channel
	}
	return []string{r.Subject, r.Resource, channel, r.Action, r.Effect}
}

// link is a g line: who has which role.
type link struct {
	line         int
	member, role string
}

// Fault is one thing that is wrong with a policy.
type Fault struct {
	Line int    // Line counts from 1; 0 means the policy as a whole.
	Text string // Text says on one line what is wrong.
}

// PolicyError says why a policy was refused.
type PolicyError struct {
	Origin string  // Origin is where the policy came from, such as the name of its file.
	Faults []Fault // Faults are all that was found, by line; after the first hundred one says how many more there are.
}

var _ error = (*PolicyError)(nil)

// Error returns the faults, one on each line, each with origin and line.
func (e *PolicyError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = fmt.Sprintf("%s: %s", e.Origin, f.Text)
		if f.Line > 0 {
			lines[i] = fmt.Sprintf("%s:%d: %s", e.Origin, f.Line, f.Text)
		}
	}
	return strings.Join(lines, "\n")
}
