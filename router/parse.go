package router

import (
	"fmt"
	"strings"
)

// Bounds of a destination. Those of NATS are wider; these keep policies, logs and control lines small.
const (
	maxDestination = 512 // Octets of the raw value.
	maxTokens      = 32  // Tokens of the channel.
)

// Parse reads the value of a destination header, as it stands after the frame's unescaping. The error is an *Error
// that wraps ErrDestination.
func (r *Router) Parse(destination string, use Use) (Route, error) {
	route, err := r.parse(destination, use)
	if err != nil {
		return Route{}, newError(destination, err)
	}
	return route, nil
}

func (r *Router) parse(destination string, use Use) (Route, error) {
	if len(destination) > maxDestination {
		return Route{}, fmt.Errorf("it has %d octets, the limit is %d", len(destination), maxDestination)
	}
	if err := checkText(destination); err != nil {
		return Route{}, err
	}
	path := strings.TrimPrefix(destination, "/")
	if path == "" {
		return Route{}, errEmpty
	}
	if path[0] == '/' || path[len(path)-1] == '/' || strings.Contains(path, "//") {
		return Route{}, errEmptySegment
	}
	if err := checkForeign(path); err != nil {
		return Route{}, err
	}
	pattern, path, err := r.selectPattern(path)
	if err != nil {
		return Route{}, err
	}
	return r.route(pattern, path, use)
}

// checkForeign refuses by name what other brokers understand and we do not: taken for a channel of the default
// pattern it would lose messages without a word.
func checkForeign(path string) error {
	if strings.IndexByte(path, ',') >= 0 {
		return errComma
	}
	if strings.IndexByte(path, '?') >= 0 {
		return errOptions
	}
	first, rest, more := strings.Cut(path, "/")
	if !more {
		return nil
	}
	switch first {
	case "exchange":
		return errExchange
	case "amq":
		if strings.HasPrefix(rest, "queue/") {
			return errAMQQueue
		}
	case "reply-queue":
		return errReplyQ
	case "dsub":
		return errDsub
	case "user":
		return errUser
	}
	return nil
}

// selectPattern returns the pattern that the first segment names and the segments after it, or the default pattern
// and the whole path.
func (r *Router) selectPattern(path string) (Pattern, string, error) {
	first, rest, _ := strings.Cut(path, "/")
	pattern := r.fallback
	switch first {
	case "topic", "events":
		pattern = Events
	case "topic-store", "store", "events-store":
		pattern = Store
	case "queue", "queues":
		pattern = Queues
	case "command", "commands":
		pattern = Commands
	case "query", "queries":
		pattern = Queries
	case "reply":
		pattern = Reply
	case "temp-queue":
		pattern = TempQueue
	case "temp-topic":
		pattern = TempTopic
	default:
		if pattern == 0 {
			return 0, "", fmt.Errorf("%q is no known prefix such as /topic/ or /queue/ (setting destinations.default_pattern)", first)
		}
		return pattern, path, nil
	}
	if rest == "" {
		return 0, "", fmt.Errorf("no channel follows /%s", first)
	}
	return pattern, rest, nil
}

// route makes the Route of a path, whose tokens are separated by slashes and dots alike.
func (r *Router) route(pattern Pattern, path string, use Use) (Route, error) {
	prefix := r.subjects[pattern]
	var b strings.Builder // The subject, of which the channel is the tail: one allocation for both.
	b.Grow(len(prefix) + len(path))
	b.WriteString(prefix)
	wildcard := false
	for n, more := 1, true; more; n++ {
		if n > maxTokens {
			return Route{}, errTokens
		}
		var token string
		token, path, more = cutToken(path)
		if token == "" {
			return Route{}, errEmptyToken
		}
		if wild := wildcardOf(token); wild != "" {
			if err := checkWildcard(pattern, use, wild, more); err != nil {
				return Route{}, err
			}
			token, wildcard = wild, true
		} else if strings.IndexByte(token, '*') >= 0 || strings.IndexByte(token, '>') >= 0 {
			return Route{}, errInside
		}
		b.WriteString(token)
		if more {
			b.WriteByte('.')
		}
	}
	subject := b.String()
	route := Route{Pattern: pattern, Channel: subject[len(prefix):], Subject: subject, Wildcard: wildcard}
	switch pattern {
	case Reply, TempQueue, TempTopic:
		route.Subject = ""
		return route, nil
	case Events:
		if err := r.checkReserved(subject); err != nil {
			return Route{}, err
		}
		route.Wide = subject[0] == '*' || subject[0] == '>'
	}
	if !r.bind(&route) && pattern == Events {
		r.store(&route)
	}
	return route, nil
}

// cutToken splits path at its first separator and reports whether there was one.
func cutToken(path string) (token, rest string, more bool) {
	for i := 0; i < len(path); i++ {
		if path[i] == '.' || path[i] == '/' {
			return path[:i], path[i+1:], true
		}
	}
	return path, "", false
}

// wildcardOf returns "*" or ">", NATS's spelling, for a token that is a wildcard, else "".
func wildcardOf(token string) string {
	switch token {
	case "*":
		return "*"
	case ">", "**", "#":
		return ">"
	}
	return ""
}

// checkWildcard refuses a wildcard token where it has no meaning; more says that tokens follow it.
func checkWildcard(pattern Pattern, use Use, wild string, more bool) error {
	switch {
	case use != Subscribe:
		return errWildSend
	case !pattern.wildcards():
		return fmt.Errorf("wildcards are not supported on %s, only on /topic/ and /topic-store/", patterns[pattern].prefix)
	case wild == ">" && more:
		return errNotLast
	}
	return nil
}
