package connector

import (
	"strconv"
	"strings"

	"github.com/natstomp/natstomp/router"
)

func (v *validation) destinations(c Config) {
	d := c.Destinations
	r, err := router.New(router.Config{DefaultPattern: d.DefaultPattern, Subjects: router.Subjects(d.Subjects)})
	if err != nil {
		v.routerFaults(err)
		// The grammar of destinations hardly depends on these settings: the others can still be checked.
		if r, err = router.New(router.DefaultConfig()); err != nil {
			panic("the router refuses its own defaults: " + err.Error())
		}
	}
	v.router = r
	each(v, "destinations.bindings", d.Bindings, func(b Binding) string { return b.Destination }, func(at string, b Binding) {
		v.binding(at, b)
	})
	each(v, "destinations.stored_topics", d.StoredTopics, itself, func(at, pattern string) {
		route, err := v.router.Parse(pattern, router.Subscribe)
		switch {
		case err != nil:
			v.fault(at, "", err.Error(), "write a topic such as /topic/news/>")
		case route.Pattern != router.Events:
			v.faultQuoted(at, pattern, "is no topic", "write /topic/<channel>")
		}
	})
	if len(v.faults) > 0 {
		return
	}
	if full, err := router.New(d.router()); err != nil {
		v.routerFaults(err)
	} else {
		v.router = full
	}
}

// router is what the grammar of destinations depends on.
func (d Destinations) router() router.Config {
	c := router.Config{DefaultPattern: d.DefaultPattern, Subjects: router.Subjects(d.Subjects), StoredTopics: d.StoredTopics}
	for _, b := range d.Bindings {
		c.Bindings = append(c.Bindings, router.Binding(b))
	}
	return c
}

// routerFaults notes the faults that router.New joins; each begins with its path.
func (v *validation) routerFaults(err error) {
	faults := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		faults = joined.Unwrap()
	}
	for _, fault := range faults {
		path, reason, found := strings.Cut(fault.Error(), ": ")
		if !found {
			path, reason = "destinations", fault.Error()
		}
		v.fault(path, "", reason, "")
	}
}

// binding checks one entry of destinations.bindings. Its destination may end with a slash: then it is a prefix.
func (v *validation) binding(at string, b Binding) {
	route, err := v.router.Parse(strings.TrimSuffix(b.Destination, "/"), router.Send)
	switch {
	case b.Destination == "":
		v.fault(at+".destination", "", "is missing", "name a destination such as /queue/orders")
	case err != nil:
		v.fault(at+".destination", "", err.Error(), "")
	case route.Subject == "":
		v.faultQuoted(at+".destination", b.Destination, "never reaches NATS", "bind a topic, queue, command or query")
	}
	if b.Subject == "" && b.Stream == "" {
		v.fault(at, "", "binds to nothing", "set subject, stream or both")
	} else {
		v.bindingParts(at, b, route.Pattern)
	}
	if b.Consumer != "" && b.Stream == "" {
		v.faultQuoted(at+".consumer", b.Consumer, "has no stream", "name the stream that holds it")
	}
	if b.Subject != "" && !natsSubject(b.Subject) {
		v.faultQuoted(at+".subject", b.Subject, "is no NATS subject", "use tokens separated by dots, without blank and wildcard")
	}
	for _, name := range []struct{ key, value string }{{"stream", b.Stream}, {"consumer", b.Consumer}} {
		if strings.ContainsFunc(name.value, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`.*>/\`, r) }) {
			v.faultQuoted(at+"."+name.key, name.value, "is no JetStream name", `use no dot, blank, wildcard, "/" or "\"`)
		}
	}
}

// bindingParts checks that a binding has what its pattern needs, and nothing else.
func (v *validation) bindingParts(at string, b Binding, p router.Pattern) {
	prefix := strings.HasSuffix(b.Destination, "/")
	stored := p == router.Queues || p == router.Store
	switch {
	case b.Stream != "" && p != 0 && !stored:
		v.faultQuoted(at+".stream", b.Stream, "has no use: the destination is not stored", "bind a /queue or a /topic-store to a stream")
	case b.Stream == "" && p == router.Store:
		v.fault(at+".stream", "", "is missing", "name the stream that holds the messages")
	}
	switch {
	case b.Consumer != "" && prefix:
		v.faultQuoted(at+".consumer", b.Consumer, "cannot serve every destination below a prefix", "bind one destination to it")
	case b.Subject == "" && (prefix || p != 0 && !stored):
		v.fault(at+".subject", "", "is missing", "name the subject that stands for the destination")
	}
}

// natsSubject reports whether s can be published to.
func natsSubject(s string) bool {
	for token := range strings.SplitSeq(s, ".") {
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '*' || r == '>' }) {
			return false
		}
	}
	return len(s) <= 1024
}

// queueName checks a queue, named by its destination or by its channel in dot form.
func (v *validation) queueName(path, name string) {
	if !strings.HasPrefix(name, "/") {
		if reason := v.queueFault(name, name); reason != "" {
			v.fault(path, "", reason, "write /queue/orders/eu, or its channel orders.eu")
		}
		return
	}
	route, err := v.router.Parse(name, router.Send)
	switch {
	case err != nil:
		v.fault(path, "", err.Error(), "")
	case route.Pattern != router.Queues:
		v.faultQuoted(path, name, "is no queue", "write /queue/orders/eu, or its channel orders.eu")
	}
}

// queuePattern checks a channel in which tokens may be "*" and the last one ">".
func (v *validation) queuePattern(path, pattern string) {
	tokens := strings.Split(pattern, ".")
	for i, token := range tokens {
		if token == "*" || token == ">" && i == len(tokens)-1 {
			tokens[i] = "x"
		} else if strings.ContainsAny(token, "*>") || token == "#" {
			v.faultQuoted(path, pattern, "has a wildcard out of place", `"*" is one whole token and a last ">" the rest: orders.*`)
			return
		}
	}
	if reason := v.queueFault(pattern, strings.Join(tokens, ".")); reason != "" {
		v.fault(path, "", reason, `write a channel with dots, where "*" is one token and a last ">" the rest: orders.*`)
	}
}

// queueFault returns why a channel, with its wildcards replaced, names no queue, or "".
func (v *validation) queueFault(written, channel string) string {
	if channel == "" {
		return "is empty"
	}
	if strings.Contains(channel, "/") {
		return strconv.Quote(written) + " has a slash"
	}
	if _, err := v.router.Parse("/queue/"+channel, router.Send); err != nil {
		return err.Error()
	}
	return ""
}
