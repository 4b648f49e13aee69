package authz

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPolicy bounds the text of a policy, in octets. A hundred thousand rules take about 5 MiB.
const maxPolicy = 64 << 20

// maxFaults bounds the faults that are kept of one policy.
const maxFaults = 100

// text is a policy that is being read. Its rules and links refer to the text of the policy.
type text struct {
	roles  bool // The model has roles.
	rules  []Rule
	links  []link
	faults []Fault
	more   int // Faults that were not kept.
}

// parse reads the lines of a policy and returns all that is wrong with them.
func parse(policy []byte, roles bool) *text {
	t := &text{roles: roles}
	if len(policy) > maxPolicy {
		t.fault(0, "has %d octets, the limit is %d", len(policy), maxPolicy)
		return t
	}
	whole := string(bytes.TrimPrefix(policy, []byte("\ufeff"))) // What some editors put at the head of a file.
	t.rules = make([]Rule, 0, strings.Count(whole, "\n")+1)
	n := 0
	for line := range strings.Lines(whole) {
		n++
		t.line(n, strings.TrimSpace(line))
	}
	t.circles()
	slices.SortStableFunc(t.faults, func(a, b Fault) int { return a.Line - b.Line })
	if len(t.rules) == 0 && len(t.faults) == 0 {
		t.fault(0, "has no rule, which would deny everything to everybody")
	}
	if t.more > 0 {
		t.faults = append(t.faults, Fault{0, fmt.Sprintf("and %d more", t.more)})
	}
	return t
}

func (t *text) fault(line int, format string, args ...any) {
	if len(t.faults) == maxFaults {
		t.more++
		return
	}
	t.faults = append(t.faults, Fault{line, fmt.Sprintf(format, args...)})
}

// line reads one line without its end.
func (t *text) line(n int, line string) {
	if line == "" || line[0] == '#' {
		return
	}
	if !utf8.ValidString(line) {
		t.fault(n, "is not valid UTF-8")
		return
	}
	f, err := split(line)
	if err != nil {
		t.fault(n, "%v", err)
		return
	}
	switch kind := f.list[0]; kind {
	case "p":
		t.rule(n, f)
	case "g":
		t.link(n, f)
	default:
		t.fault(n, "begins with %s: a line is a rule (p) or gives a role (g)", shown(kind))
	}
}

// fields are those of a line; count may be more than the list holds.
type fields struct {
	list  [6]string
	count int
}

func (f *fields) add(field string) {
	if f.count < len(f.list) {
		f.list[f.count] = field
	}
	f.count++
}

// split returns the fields of a line. Blanks around one that is not quoted are not part of it.
func split(line string) (f fields, err error) {
	if strings.IndexByte(line, '"') < 0 {
		for field := range strings.SplitSeq(line, ",") {
			f.add(strings.TrimSpace(field))
		}
		return f, nil
	}
	r := csv.NewReader(strings.NewReader(line))
	r.TrimLeadingSpace = true
	list, err := r.Read()
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return f, fmt.Errorf("is no CSV: %w in column %d", bad.Err, bad.Column)
	}
	for _, field := range list {
		f.add(field)
	}
	return f, err
}

// rule reads what follows the p of a line.
func (t *text) rule(n int, f fields) {
	if f.count != 6 {
		t.fault(n, "a rule has 6 fields (p, subject, resource, channel, action, effect), this one has %d", f.count)
		return
	}
	r := Rule{n, f.list[1], f.list[2], f.list[3], f.list[4], f.list[5]}
	before := len(t.faults) + t.more
	if r.Subject != anything {
		t.name(n, "subject", r.Subject)
	}
	t.oneOf(n, "resource", r.Resource, resources, resourceHints)
	if r.Channel == "" {
		t.fault(n, "the channel is empty: > is any")
	} else if err := checkPattern(r.Channel); err != nil {
		t.fault(n, "channel %s %v", shown(r.Channel), err)
	}
	t.oneOf(n, "action", r.Action, actions, actionHints)
	if r.Effect != allow && r.Effect != deny {
		t.fault(n, "effect %s is not one of allow, deny", shown(r.Effect))
	}
	if len(t.faults)+t.more == before {
		t.rules = append(t.rules, r)
	}
}

var actions = []string{"read", "write"}

// Names that people write, with what is meant.
var (
	resourceHints = map[string]string{
		"event": "events", "topic": "events", "topics": "events", "store": "events_store", "topic-store": "events_store",
		"events-store": "events_store", "queue": "queues", "command": "commands", "query": "queries",
	}
	actionHints = map[string]string{
		"send": "write", "publish": "write", "pub": "write", "subscribe": "read", "sub": "read", "consume": "read",
	}
)

func (t *text) oneOf(n int, field, value string, known []string, hints map[string]string) {
	if value == anything || slices.Contains(known, value) {
		return
	}
	reason := fmt.Sprintf("%s %s is not one of %s, *", field, shown(value), strings.Join(known, ", "))
	if value == "reply" || value == "temp_queue" || value == "temp_topic" {
		reason += " (there are no rights on reply addresses)"
	} else if hint := hints[strings.ToLower(value)]; hint != "" {
		reason += fmt.Sprintf(" (did you mean %s?)", hint)
	}
	t.fault(n, "%s", reason)
}

// link reads what follows the g of a line.
func (t *text) link(n int, f fields) {
	if !t.roles {
		t.fault(n, "gives a role, and the model has none (role_definition)")
		return
	}
	if f.count != 3 {
		t.fault(n, "a role is given by 3 fields (g, member, role), here are %d", f.count)
		return
	}
	member, role := f.list[1], f.list[2]
	switch {
	case member == anything:
		t.fault(n, "gives a role to everybody: write rules for the subject * instead")
	case !strings.HasPrefix(role, rolePrefix):
		t.fault(n, "role %s does not begin with %s", shown(role), rolePrefix)
	case t.name(n, "member", member) && t.name(n, "role", role):
		t.links = append(t.links, link{n, member, role})
	}
}

// name checks an identity or a role and reports whether it is one.
func (t *text) name(n int, field, name string) bool {
	role, isRole := strings.CutPrefix(name, rolePrefix)
	reason := ""
	switch {
	case name == "":
		reason = "is empty"
	case isRole && role == "":
		reason = "names no role"
	case !isRole && len(name) >= len(rolePrefix) && strings.EqualFold(name[:len(rolePrefix)], rolePrefix):
		reason = "is no role: write " + rolePrefix + name[len(rolePrefix):]
	case len(role) > maxIdentity:
		reason = fmt.Sprintf("has %d octets, the limit is %d", len(role), maxIdentity)
	case strings.ContainsFunc(name, unicode.IsControl):
		reason = "has a control character"
	case strings.IndexByte(name, '*') >= 0:
		reason = "has a wildcard: only * alone stands for anybody"
	case name[0] == '{' && name[len(name)-1] == '}':
		reason = "is a placeholder: " + placeholder + " is for channels, * is anybody"
	default:
		return true
	}
	t.fault(n, "%s %s %s", field, shown(name), reason)
	return false
}

// shown quotes a value and cuts a long one.
func shown(value string) string {
	const most = 64
	if len(value) > most {
		return fmt.Sprintf("%q...", strings.ToValidUTF8(value[:most], ""))
	}
	return fmt.Sprintf("%q", value)
}
