package authz

import (
	"fmt"
	"slices"
	"strings"
)

// Explanation says how a decision came about.
type Explanation struct {
	Allowed  bool
	Epoch    uint64      // Epoch is that of the policy that was asked.
	Subjects []string    // Subjects are whom the session was taken for, beside "*".
	Rule     *Rule       // Rule led to the decision; nil if none did.
	Reason   string      // Reason says it in a few words.
	Others   []OtherRule // Others are all other rules, in the order of the policy.
}

// OtherRule is a rule that did not decide.
type OtherRule struct {
	Rule
	Matched bool   // Matched is true if it matched all the same.
	Reason  string // Reason says why it did not decide, in a few words.
}

// Explain takes the decision of Allowed anew and says how it comes about. Nothing is remembered.
func (s *Session) Explain(a Action, resource, channel string) Explanation {
	v := s.current()
	x := Explanation{Epoch: v.state.epoch, Subjects: slices.Clone(v.subjects.names)}
	p := v.state.policy
	if p == nil {
		x.Reason = "no policy is loaded"
		return x
	}
	if _, ok := kindOf(a, resource); !ok {
		x.Reason = "there is no such resource or action"
		return x
	}
	r := request{v.subjects, resource, channel, a}
	allowed, by, err := p.decide(r)
	x.Allowed = allowed && err == nil
	if by >= 0 {
		x.Rule = &p.rules[by]
	}
	x.Reason = p.verdict(r, x, err)
	for i := range p.rules {
		if i != by {
			o := OtherRule{Rule: p.rules[i]}
			o.Matched, o.Reason = p.why(r, i, x)
			x.Others = append(x.Others, o)
		}
	}
	return x
}

// verdict says why the decision is what it is.
func (p *compiled) verdict(r request, x Explanation, err error) string {
	switch {
	case err != nil:
		return "the model failed: " + err.Error()
	case r.subjects.sealed:
		return fmt.Sprintf("the identity is no single token, and a rule that denies with %s could apply to it", placeholder)
	case !isChannel(r.channel):
		return "there is no such channel"
	case x.Rule != nil:
		return fmt.Sprintf("line %d %s", x.Rule.Line, map[string]string{allow: "allows", deny: "denies"}[x.Rule.Effect])
	case x.Allowed:
		return "no rule denies"
	}
	return "no rule allows"
}

// why says whether a rule that did not decide matches, and why it did not decide.
func (p *compiled) why(r request, place int, x Explanation) (matched bool, reason string) {
	rule := &p.rules[place]
	if !p.plain {
		return p.whyOther(r, place, x)
	}
	switch {
	case rule.Subject != anything && !r.subjects.has(rule.Subject):
		return false, "is for " + rule.Subject
	case rule.fits(r):
	case rule.Resource != anything && rule.Resource != r.resource:
		return false, "is about " + rule.Resource
	default:
		return false, "is about " + rule.Action
	}
	return p.whyOther(r, place, x)
}

// whyOther is why for what no field but the channel tells.
func (p *compiled) whyOther(r request, place int, x Explanation) (matched bool, reason string) {
	rule := &p.rules[place]
	if !rule.about(r.channel, r.subjects.identity) {
		return false, mismatch(rule, r)
	}
	_, by, err := p.engine.decide(r, [][]string{rule.row()})
	switch {
	case err != nil || by < 0 && !p.plain:
		return false, "is refused by the matcher of the model"
	case x.Rule != nil:
		return true, fmt.Sprintf("matches, but line %d decides", x.Rule.Line)
	}
	return true, "matches, but does not decide"
}

// mismatch says why the channels of a rule and a request do not fit.
func mismatch(rule *Rule, r request) string {
	wild := slices.ContainsFunc(strings.Split(r.channel, "."), func(token string) bool { return token == "*" || token == ">" })
	switch {
	case rule.named() && !isToken(r.subjects.identity):
		return fmt.Sprintf("needs an identity that is a single token for %s", placeholder)
	case rule.Effect == deny && wild:
		return fmt.Sprintf("has nothing in common with %s", r.channel)
	case wild && match(rule.Channel, r.channel, r.subjects.identity, true):
		return fmt.Sprintf("covers only a part of %s", r.channel)
	}
	return fmt.Sprintf("is about other channels: %s", rule.Channel)
}
