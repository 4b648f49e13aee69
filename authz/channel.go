package authz

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of a channel, those of package router.
const (
	maxChannel = 512
	maxTokens  = 32
)

// placeholder is the token of a rule that stands for the identity of the session.
const placeholder = "{sub}"

// denies marks the channel of a rule that denies, on its way through Casbin to chanMatch, which is told nothing else of
// the rule. No channel begins with it.
const denies = "\x00"

// chanMatch reports whether a rule is about a channel. A subscription's channel may have wildcards: a rule that allows
// has to cover all that it matches, one that denies (see denies) must have something in common with it.
func chanMatch(channel, rule, identity string) bool {
	if pattern, ok := strings.CutPrefix(rule, denies); ok {
		return match(pattern, channel, identity, true)
	}
	return match(rule, channel, identity, false)
}

// match reports whether pattern and channel meet, or, unless meet is asked for, whether the pattern covers the channel.
// It does not allocate.
func match(pattern, channel, identity string, meet bool) bool {
	for {
		p, patternRest, patternMore := strings.Cut(pattern, ".")
		c, channelRest, channelMore := strings.Cut(channel, ".")
		switch {
		case p == ">":
			return true
		case c == ">":
			return meet // It may be as long as the pattern, and longer.
		case p == "*":
		case p == placeholder && !isToken(identity):
			if !meet {
				return false
			} // Which channel it is for is not known: any.
		case p == placeholder && c == identity, p != placeholder && c == p:
		case c != "*" || !meet:
			return false
		}
		if !patternMore || !channelMore {
			return patternMore == channelMore
		}
		pattern, channel = patternRest, channelRest
	}
}

// isToken reports whether a text can be one token of a channel that says what it says: no wildcard, no separator.
func isToken(s string) bool {
	return s != "" && len(s) <= maxChannel && !strings.ContainsAny(s, "./*>") && checkText(s) == nil
}

// isChannel reports whether a text is the channel of a SEND or a SUBSCRIBE as package router writes it. It does not
// allocate.
func isChannel(s string) bool {
	if s == "" || len(s) > maxChannel || checkText(s) != nil {
		return false
	}
	for n, more := 1, true; more; n++ {
		var token string
		token, s, more = strings.Cut(s, ".")
		if token == "" || n > maxTokens || strings.IndexByte(token, '/') >= 0 || checkWildcard(token, more) != nil {
			return false
		}
	}
	return true
}

// CheckChannel says what is wrong with a channel that somebody wrote for Allowed or Explain; what package router returns
// is always right.
func CheckChannel(a Action, channel string) error {
	if err := checkPattern(channel); err != nil {
		return err
	}
	if a == Write && strings.ContainsAny(channel, "*>") {
		return errors.New("has a wildcard, and only Read may")
	}
	return nil
}

// CheckResource says what is wrong with the name of a resource.
func CheckResource(resource string) error {
	if !slices.Contains(resources, resource) {
		return fmt.Errorf("resource %s is not one of %s", shown(resource), strings.Join(resources, ", "))
	}
	return nil
}

// checkPattern refuses what can never be the channel of a rule, with what to write instead.
func checkPattern(pattern string) error {
	switch {
	case len(pattern) > maxChannel:
		return fmt.Errorf("has %d octets, the limit is %d", len(pattern), maxChannel)
	case strings.IndexByte(pattern, '/') >= 0:
		return errors.New("has a slash: write the channel without prefix and with dots, orders.eu for /topic/orders/eu")
	}
	if err := checkText(pattern); err != nil {
		return err
	}
	for n, more, rest := 1, true, pattern; more; n++ {
		var token string
		token, rest, more = strings.Cut(rest, ".")
		switch {
		case n > maxTokens:
			return fmt.Errorf("has more than %d tokens", maxTokens)
		case token == "":
			return errors.New("has an empty token (two dots together, or one at an edge)")
		case token == "#", token == "**":
			return fmt.Errorf("has %s: the wildcard for the rest is >", token)
		case token == placeholder:
		case strings.Contains(token, placeholder):
			return fmt.Errorf("has %s inside a token: it is always a whole one", placeholder)
		case token[0] == '{' && token[len(token)-1] == '}':
			return fmt.Errorf("has %s: the only placeholder is %s", token, placeholder)
		}
		if err := checkWildcard(token, more); err != nil {
			return err
		}
	}
	return nil
}

// checkWildcard refuses a wildcard that has no meaning; more says that tokens follow.
func checkWildcard(token string, more bool) error {
	switch {
	case token == "*", token == ">" && !more:
		return nil
	case token == ">":
		return errors.New("has > elsewhere than at its end")
	case strings.ContainsAny(token, "*>"):
		return errors.New("has a wildcard inside a token: * and > are whole tokens")
	}
	return nil
}

// checkText refuses characters that no destination has.
func checkText(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("is not valid UTF-8")
	}
	for _, c := range s {
		switch {
		case c == ' ':
			return errors.New("has a space")
		case unicode.IsControl(c):
			return fmt.Errorf("has the control character %U", c)
		case c == ',', c == '?', c == utf8.RuneError:
			return fmt.Errorf("has %q, which no destination has", c)
		}
	}
	return nil
}
