package authz

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// DefaultModel is the Casbin model that is used unless Config names another one, also shipped as policies/model.conf.
const DefaultModel = `[request_definition]
r = sub, res, chan, act

[policy_definition]
p = sub, res, chan, act, eft

[role_definition]
g = _, _

[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))

[matchers]
m = (p.sub == "*" || g(r.sub, p.sub)) && (p.res == "*" || p.res == r.res) && (p.act == "*" || p.act == r.act) && chanMatch(r.chan, p.chan, r.sub)
`

// The fields of a request and of a rule, in Casbin's spelling.
var (
	requestFields = []string{"r_sub", "r_res", "r_chan", "r_act"}
	ruleFields    = []string{"p_sub", "p_res", "p_chan", "p_act", "p_eft"}
)

// chanCondition is what every matcher has to ask for, without blanks and in Casbin's spelling.
const chanCondition = "chanMatch(r_chan,p_chan,r_sub)"

// rankedEffect lets the rules for a member of a role go before those for the role.
const rankedEffect = "subjectPriority(p_eft)||deny"

// effects are what Casbin knows, without blanks and in Casbin's spelling.
var effects = []string{
	"some(where(p_eft==allow))", "!some(where(p_eft==deny))", "some(where(p_eft==allow))&&!some(where(p_eft==deny))",
	"priority(p_eft)||deny", rankedEffect,
}

// definition is a model, read.
type definition struct {
	request, rule []string
	roles         []string // Values of role definitions.
	effect        string
	matcher       string
	others        []string // Names of definitions that are none of these.
}

// check refuses a model under which the promises of this package would not hold.
func (d *definition) check() error {
	switch {
	case len(d.others) > 0:
		return fmt.Errorf("%s: only one definition each is supported (r, p, g, e, m)", strings.Join(d.others, ", "))
	case !slices.Equal(d.request, requestFields):
		return errors.New("request_definition: must be r = sub, res, chan, act")
	case !slices.Equal(d.rule, ruleFields):
		return errors.New("policy_definition: must be p = sub, res, chan, act, eft")
	case len(d.roles) > 0 && squeeze(d.roles[0]) != "_,_":
		return errors.New("role_definition: must be g = _, _")
	case !slices.Contains(effects, squeeze(d.effect)):
		return errors.New("policy_effect: is none of those that Casbin knows")
	case d.ranked() && len(d.roles) == 0:
		return errors.New("policy_effect: subjectPriority needs a role_definition")
	}
	return d.checkMatcher()
}

// called finds what a matcher calls, patterns the operators that take a regular expression.
var (
	called   = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_.]*)\s*\(`)
	patterns = regexp.MustCompile(`[=!]~`)
)

func (d *definition) checkMatcher() error {
	for _, call := range called.FindAllStringSubmatch(d.matcher, -1) {
		if name := call[1]; name != "chanMatch" && name != "in" && (name != "g" || len(d.roles) == 0) {
			return fmt.Errorf("matchers: %s is not offered, only chanMatch and, with a role_definition, g", name)
		}
	}
	if patterns.MatchString(d.matcher) {
		return errors.New("matchers: regular expressions are not offered")
	}
	conditions, ok := conjunction(squeeze(d.matcher))
	if !ok || !slices.Contains(conditions, chanCondition) {
		return errors.New("matchers: chanMatch(r.chan, p.chan, r.sub) must be one of the conditions that && joins, outside of any parentheses")
	}
	return nil
}

// ranked reports whether the effect depends on the order of the roles.
func (d *definition) ranked() bool { return squeeze(d.effect) == rankedEffect }

// plain reports whether the matcher is that of DefaultModel, whose rules can be told by their subject.
func (d *definition) plain() bool {
	_, matcher, _ := strings.Cut(DefaultModel, "\nm = ")
	matcher = strings.NewReplacer("r.", "r_", "p.", "p_").Replace(matcher)
	return squeeze(d.matcher) == squeeze(matcher)
}

// conjunction splits an expression at the && of its top level, false if anything else there binds less.
func conjunction(expression string) ([]string, bool) {
	var parts []string
	depth, begin, quote := 0, 0, byte(0)
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth > 0:
		case strings.HasPrefix(expression[i:], "&&"):
			parts = append(parts, expression[begin:i])
			i++
			begin = i + 1
		case strings.IndexByte("|?:,\\", c) >= 0:
			return nil, false
		}
	}
	return append(parts, expression[begin:]), depth == 0 && quote == 0
}

// squeeze removes blanks. Within quotes too, so it is for comparing only.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }
