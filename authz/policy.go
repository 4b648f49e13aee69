package authz

import "slices"

// compiled is a policy that is ready for decisions. It is immutable and safe for concurrent use.
type compiled struct {
	engine *engine
	plain  bool // Rules match only by their subject, resource, action and channel.
	rules  []Rule
	places map[string][]int32 // For each subject the places of its rules; all of them at "*" unless plain.
	roles  map[string][]string
	links  int
	seals  map[string]bool // Subjects of rules that deny with a placeholder.
}

// compile prepares a policy without faults.
func compile(e *engine, d *definition, t *text) (*compiled, error) {
	p := &compiled{
		engine: e, plain: d.plain(), rules: t.rules, links: len(t.links),
		roles: make(map[string][]string), places: make(map[string][]int32), seals: make(map[string]bool),
	}
	for _, l := range t.links {
		p.roles[l.member] = append(p.roles[l.member], l.role)
	}
	if d.ranked() {
		if err := p.arrange(t.links); err != nil {
			return nil, err
		}
	}
	for i := range p.rules {
		r := &p.rules[i]
		subject := r.Subject
		if !p.plain {
			subject = anything // What a matcher makes of a subject is its own affair.
		}
		p.places[subject] = append(p.places[subject], int32(i))
		if r.Effect == deny && r.named() {
			p.seals[subject] = true
		}
	}
	return p, nil
}

// arrange puts the rules into the order of the roles that they are for.
func (p *compiled) arrange(given []link) error {
	links := make([][]string, len(given))
	for i, l := range given {
		links[i] = []string{l.member, l.role}
	}
	rows := make([][]string, len(p.rules))
	of := make(map[*string]Rule, len(rows)) // Which rule a row is of.
	for i, r := range p.rules {
		rows[i] = r.row()
		of[&rows[i][0]] = r
	}
	if err := p.engine.arrange(rows, links); err != nil {
		return err
	}
	for i, row := range rows {
		p.rules[i] = of[&row[0]]
	}
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
		rows[i] = p.rules[place].row()
	}
	allowed, by, err = p.engine.decide(r, rows)
	if by >= 0 {
		by = int(places[by])
	}
	return allowed, by, err
}

// candidates returns the places of the rules that could match, in order.
func (p *compiled) candidates(r request) (places []int32) {
	take := func(subject string) {
		for _, i := range p.places[subject] {
			if rule := &p.rules[i]; (!p.plain || rule.fits(r)) && rule.about(r.channel, r.subjects.identity) {
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
