package authz

import (
	"slices"
	"strings"
)

// compiled is a policy that is ready for decisions. It is immutable and safe for concurrent use.
type compiled struct {
	engine engine
	plain  bool // Only rules for one of the subjects can match.
	rules  []Rule
	rows   [][]string         // The rules as Casbin gets them.
	places map[string][]int32 // For each subject the places of its rules; nil unless plain.
	roles  map[string][]string
	links  int
	seals  map[string]bool // Subjects of rules that deny with a placeholder.
}

// compile prepares a policy without faults.
func compile(e engine, d *definition, t *text) (*compiled, error) {
	p := &compiled{
		engine: e, plain: d.plain(), rules: t.rules, links: len(t.links),
		rows: make([][]string, len(t.rules)), roles: make(map[string][]string), seals: make(map[string]bool),
	}
	for i := range p.rules {
		p.rows[i] = p.rules[i].row()
	}
	links := make([][]string, len(t.links))
	for i, l := range t.links {
		links[i] = []string{l.member, l.role}
		p.roles[l.member] = append(p.roles[l.member], l.role)
	}
	if d.ranked() {
		if err := p.arrange(links); err != nil {
			return nil, err
		}
	}
	if p.plain {
		p.places = make(map[string][]int32)
	}
	for i, r := range p.rules {
		if p.plain {
			p.places[r.Subject] = append(p.places[r.Subject], int32(i))
		}
		if r.Effect == deny && slices.Contains(strings.Split(r.Channel, "."), placeholder) {
			p.seals[r.Subject] = true
			if !p.plain {
				p.seals[anything] = true // What a matcher makes of a subject is its own affair.
			}
		}
	}
	return p, nil
}

// arrange puts the rules into the order of the roles that they are for.
func (p *compiled) arrange(links [][]string) error {
	at := make(map[*string]int, len(p.rows))
	for i, row := range p.rows {
		at[&row[0]] = i
	}
	rows, err := p.engine.arrange(slices.Clone(p.rows), links)
	if err != nil {
		return err
	}
	rules := make([]Rule, len(rows))
	for i, row := range rows {
		rules[i] = p.rules[at[&row[0]]]
	}
	p.rules, p.rows = rules, rows
	return nil
}

// decide is the decision: false in case of doubt, with the place of the rule that led to it, -1 for none.
func (p *compiled) decide(r request) (allowed bool, by int, err error) {
	if r.subjects.sealed || !isChannel(r.channel) {
		return false, -1, nil
	}
	places := p.candidates(r)
	rows := make([][]string, len(places))
	for i, place := range places {
		rows[i] = p.rows[place]
	}
	allowed, by, err = p.engine.decide(r, rows)
	if by >= 0 {
		by = int(places[by])
	}
	return allowed, by, err
}

// candidates returns the places of the rules that could match, in order.
func (p *compiled) candidates(r request) []int32 {
	var places []int32
	if !p.plain {
		for i := range p.rules {
			if chanMatch(r.channel, p.rows[i][2], r.subjects.identity) {
				places = append(places, int32(i))
			}
		}
		return places
	}
	take := func(subject string) {
		for _, i := range p.places[subject] {
			if p.fits(&p.rules[i], r) && chanMatch(r.channel, p.rows[i][2], r.subjects.identity) {
				places = append(places, i)
			}
		}
	}
	take(anything)
	for _, name := range r.subjects.names {
		take(name)
	}
	slices.Sort(places)
	return places
}

// fits reports whether a rule is about the resource and the action.
func (p *compiled) fits(rule *Rule, r request) bool {
	return (rule.Resource == anything || rule.Resource == r.resource) && (rule.Action == anything || rule.Action == r.action.String())
}
