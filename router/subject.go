package router

import (
	"fmt"
	"slices"
	"strings"
)

// Reserved reports whether subject belongs to NATS, to natstomp or to another pattern than Events: its first token
// begins with "$" or "_", or is the first token of another pattern's subject prefix ("stomp" by default). A Wide
// subscription must drop such a message before any other work. It does not allocate.
func (r *Router) Reserved(subject string) bool {
	if topic := r.subjects[Events]; topic != "" && strings.HasPrefix(subject, topic) {
		return false
	}
	return subject != "" && (subject[0] == '$' || subject[0] == '_') || slices.Contains(r.roots, firstToken(subject))
}

// checkReserved refuses the subject of a topic channel that would reach into reserved space.
func (r *Router) checkReserved(subject string) error {
	if !r.Reserved(subject) {
		return nil
	}
	first := firstToken(subject)
	if first[0] == '$' || first[0] == '_' {
		return fmt.Errorf(`topic channels beginning with %q are reserved (setting destinations.subjects)`, first[:1])
	}
	return fmt.Errorf("topic channels with the first token %q are reserved (setting destinations.subjects)", first)
}

// Destination returns what the destination header of a MESSAGE says for a message that arrived on subject: the
// primary prefix of p and the tokens of the channel joined with slashes. It is false if p has no subjects, if subject
// is not under the prefix of p, or if no destination can stand for it: a native publisher may use octets that a
// destination cannot hold, more than 512 of them, or a slash inside a token, which would name another channel.
// Whatever Parse accepts for a SEND is shown, in up to 525 octets where an alias or a bare channel was shorter than
// the primary prefix. So is a native subject that Parse would refuse for another reason, such as a comma.
func (r *Router) Destination(p Pattern, subject string) (string, bool) {
	if p < Events || p > Queries {
		return "", false
	}
	channel, ok := strings.CutPrefix(subject, r.subjects[p])
	if !ok {
		return "", false
	}
	return destination(p, channel)
}

// Shown is Destination for a message that a wildcard subscription of route received. Below a bound prefix the
// destination is made from the binding; of a stored topic it begins with /topic/, and is false where the channel is
// none.
func (r *Router) Shown(route Route, subject string) (string, bool) {
	switch {
	case route.Bound != nil:
		b := r.boundTo(route.Bound)
		rest, ok := strings.CutPrefix(subject, route.Bound.Subject)
		if b == nil || !ok || rest == "" || rest[0] != '.' {
			return "", false
		}
		return destination(b.pattern, b.channel+rest)
	case route.Topic:
		channel, ok := strings.CutPrefix(subject, r.subjects[Store])
		if !ok || !r.stored.has(channel) {
			return "", false
		}
		return destination(Events, channel)
	}
	return r.Destination(route.Pattern, subject)
}

// destination writes a channel as a destination, false if none can stand for it.
func destination(p Pattern, channel string) (string, bool) {
	if !tokensFilled(channel) || strings.IndexByte(channel, '/') >= 0 || len(channel) > maxDestination || checkText(channel) != nil {
		return "", false
	}
	prefix := patterns[p].prefix
	var b strings.Builder
	b.Grow(len(prefix) + len(channel))
	b.WriteString(prefix)
	for i := 0; i < len(channel); i++ {
		if c := channel[i]; c == '.' {
			b.WriteByte('/')
		} else {
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// tokensFilled reports whether a channel in dot form has a token, and no empty one.
func tokensFilled(channel string) bool {
	return channel != "" && channel[0] != '.' && channel[len(channel)-1] != '.' && !strings.Contains(channel, "..")
}

func firstToken(subject string) string {
	first, _, _ := strings.Cut(subject, ".")
	return first
}
