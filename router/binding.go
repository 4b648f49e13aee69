package router

import (
	"errors"
	"fmt"
	"strings"
)

// Binding maps a destination onto something that exists on NATS.
type Binding struct {
	// Destination is what clients write, such as /queue/orders. With a slash at its end it is a prefix: the tokens that
	// follow it are appended to Subject.
	Destination string
	// Subject is the NATS subject that stands for it, without wildcards. It may be empty for a single destination of
	// Store or Queues that has a Stream.
	Subject string
	// Stream is the JetStream stream that holds its messages; for Store and Queues only, required for Store.
	Stream string
	// Consumer is the durable of Stream that all subscribers share; for single destinations only.
	Consumer string
}

// bound is a Binding with its destination parsed.
type bound struct {
	*Binding
	pattern Pattern
	channel string
	prefix  bool
}

// takes reports whether the binding is for the channel.
func (b *bound) takes(p Pattern, channel string) bool {
	if p != b.pattern {
		return false
	}
	rest, ok := strings.CutPrefix(channel, b.channel)
	if b.prefix {
		return ok && rest != "" && rest[0] == '.'
	}
	return ok && rest == ""
}

// bind gives a route the subject, stream and consumer of the most specific binding that takes it.
func (r *Router) bind(route *Route) bool {
	var best *bound
	for i := range r.bindings {
		b := &r.bindings[i]
		if b.takes(route.Pattern, route.Channel) && (best == nil || !b.prefix || len(b.channel) > len(best.channel)) {
			best = b
			if !b.prefix {
				break
			}
		}
	}
	if best == nil {
		return false
	}
	route.Bound = best.Binding
	route.Subject = best.Subject
	if best.prefix {
		route.Subject += route.Channel[len(best.channel):]
	}
	return true
}

// boundTo returns a binding of this router with its destination parsed.
func (r *Router) boundTo(b *Binding) *bound {
	for i := range r.bindings {
		if r.bindings[i].Binding == b {
			return &r.bindings[i]
		}
	}
	return nil
}

// compile parses and checks the bindings. Its errors begin with the path of the setting at fault.
func (r *Router) compile(list []Binding) error {
	var faults []error
	bindings := make([]bound, 0, len(list))
	for i := range list {
		b, err := r.compileOne(list[i])
		if err == nil && taken(bindings, b) {
			err = fmt.Errorf("%q is bound already", b.Destination)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("destinations.bindings[%d]: %w", i, err))
			continue
		}
		bindings = append(bindings, b)
	}
	r.bindings = bindings
	return errors.Join(faults...)
}

func taken(bindings []bound, b bound) bool {
	for _, earlier := range bindings {
		if earlier.pattern == b.pattern && earlier.channel == b.channel && earlier.prefix == b.prefix {
			return true
		}
	}
	return false
}

func (r *Router) compileOne(b Binding) (bound, error) {
	destination, prefix := strings.CutSuffix(b.Destination, "/")
	route, err := r.Parse(destination, Send)
	if err != nil {
		return bound{}, err
	}
	c := bound{Binding: &b, pattern: route.Pattern, channel: route.Channel, prefix: prefix}
	return c, c.check(r)
}

// check refuses a binding that could not be honoured.
func (b *bound) check(r *Router) error {
	stored := b.pattern == Store || b.pattern == Queues
	switch {
	case b.pattern > Queries:
		return fmt.Errorf("%q never reaches NATS", b.Destination)
	case b.Stream != "" && !stored:
		return fmt.Errorf("%q has no stream", b.Destination)
	case b.Consumer != "" && b.Stream == "":
		return fmt.Errorf("consumer %q has no stream", b.Consumer)
	case b.Consumer != "" && b.prefix:
		return fmt.Errorf("consumer %q cannot stand for every destination below %q", b.Consumer, b.Destination)
	case b.pattern == Store && b.Stream == "":
		return fmt.Errorf("%q needs a stream", b.Destination)
	case b.Subject == "" && (b.prefix || b.Stream == ""):
		return fmt.Errorf("%q needs a subject", b.Destination)
	case b.Subject == "":
		return nil
	}
	return r.checkSubject(b.Subject, b.prefix)
}

// checkSubject refuses what is no subject of other people.
func (r *Router) checkSubject(subject string, prefix bool) error {
	most := 2 * maxPrefix
	if prefix {
		most = maxPrefix
	}
	switch {
	case len(subject) > most:
		return fmt.Errorf("subject has %d octets, the limit is %d", len(subject), most)
	case checkText(subject) != nil, !tokensFilled(subject), strings.ContainsAny(subject, "*>"):
		return fmt.Errorf("%q is no NATS subject", subject)
	case r.Reserved(subject):
		return fmt.Errorf("subject %q is reserved", subject)
	}
	return nil
}
