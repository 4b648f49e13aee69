package router

import "strings"

// channels is a set of channels, written as NATS subjects with wildcards and split into tokens.
type channels [][]string

// has reports whether a channel without wildcards belongs to the set. It does not allocate.
func (cs channels) has(channel string) bool {
	for _, pattern := range cs {
		if matches(pattern, channel) {
			return true
		}
	}
	return false
}

// covers reports whether everything that pattern matches is matched by one member of the set.
func (cs channels) covers(pattern string) bool {
	tokens := strings.Split(pattern, ".")
	for _, c := range cs {
		if both, ok := intersect(c, tokens); ok && strings.Join(both, ".") == pattern {
			return true
		}
	}
	return false
}

// within returns patterns for what the set and pattern have in common, no two of which match the same channel. Where
// that would take more than leaving out the narrower ones it returns pattern itself. It is empty if there is nothing in
// common.
func (cs channels) within(pattern string) []string {
	tokens := strings.Split(pattern, ".")
	var parts channels
	for _, c := range cs {
		if both, ok := intersect(c, tokens); ok && !parts.covers(strings.Join(both, ".")) {
			parts = append(parts.without(both), both)
		}
	}
	list := make([]string, len(parts))
	for i, part := range parts {
		for _, earlier := range parts[:i] {
			if _, overlap := intersect(part, earlier); overlap {
				return []string{pattern}
			}
		}
		list[i] = strings.Join(part, ".")
	}
	return list
}

// without returns the set without the members that wider covers.
func (cs channels) without(wider []string) channels {
	rest := make(channels, 0, len(cs))
	for _, c := range cs {
		if !(channels{wider}).covers(strings.Join(c, ".")) {
			rest = append(rest, c)
		}
	}
	return rest
}

// intersect returns the pattern that matches what both a and b match, false if that is nothing.
func intersect(a, b []string) ([]string, bool) {
	both := make([]string, 0, max(len(a), len(b)))
	for i := 0; ; i++ {
		switch {
		case i == len(a) || i == len(b):
			return both, len(a) == len(b)
		case a[i] == ">":
			return append(both, b[i:]...), true
		case b[i] == ">":
			return append(both, a[i:]...), true
		case a[i] == b[i] || b[i] == "*":
			both = append(both, a[i])
		case a[i] == "*":
			both = append(both, b[i])
		default:
			return nil, false
		}
	}
}

// Match reports whether a channel, or a subject, without wildcards is matched by a pattern in which * is one token and a
// last > is one or more.
func Match(pattern, channel string) bool { return matches(strings.Split(pattern, "."), channel) }

func matches(pattern []string, channel string) bool {
	for i, token := range pattern {
		if token == ">" {
			return true // There is a token left, or the one before had ended the channel.
		}
		first, rest, more := strings.Cut(channel, ".")
		if token != "*" && token != first || more == (i == len(pattern)-1) {
			return false
		}
		channel = rest
	}
	return true
}
