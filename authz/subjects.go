package authz

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// rolePrefix begins the name of every role, and of no identity.
const rolePrefix = "role:"

// maxIdentity bounds identities and the names of roles, in octets.
const maxIdentity = 256

// ErrIdentity is what every error of Authorizer.Session wraps: nobody of this name is let in.
var ErrIdentity = errors.New("identity refused")

// checkIdentity refuses what could be taken for something else than an identity. The empty one is a session without a
// login: no rule but those for anybody and for the roles that it came with is about it.
func checkIdentity(identity string) error {
	switch {
	case len(identity) > maxIdentity:
		return fmt.Errorf("%w: it has %d octets, the limit is %d", ErrIdentity, len(identity), maxIdentity)
	case !utf8.ValidString(identity):
		return fmt.Errorf("%w: it is not valid UTF-8", ErrIdentity)
	case strings.ContainsFunc(identity, unicode.IsControl):
		return fmt.Errorf("%w: it has a control character", ErrIdentity)
	case strings.HasPrefix(identity, rolePrefix):
		return fmt.Errorf("%w: it begins with %q, as roles do", ErrIdentity, rolePrefix)
	case identity == anything:
		return fmt.Errorf("%w: it is %q, which stands for anybody", ErrIdentity, anything)
	}
	return nil
}

// subjects are whom the rules of one policy take a session for. It is immutable.
type subjects struct {
	identity string
	names    []string // The identity, then the roles: those it came with, then those that they have.
	set      map[string]struct{}
	sealed   bool // A deny rule with a placeholder could be about it, and it is not known about which channel.
}

// subjects returns whom the policy takes an identity with roles for.
func (p *compiled) subjects(identity string, roles []string) *subjects {
	s := &subjects{identity: identity, set: make(map[string]struct{}, len(roles)+1)}
	if identity != "" {
		s.add(identity)
	}
	for _, role := range roles {
		s.add(role)
	}
	for i := 0; i < len(s.names); i++ { // It grows.
		for _, role := range p.roles[s.names[i]] {
			s.add(role)
		}
	}
	if !isToken(identity) {
		s.sealed = p.seals[anything] || slices.ContainsFunc(s.names, func(name string) bool { return p.seals[name] })
	}
	return s
}

func (s *subjects) add(name string) {
	if _, known := s.set[name]; !known {
		s.set[name] = struct{}{}
		s.names = append(s.names, name)
	}
}

// has reports whether the session is whom a rule is for.
func (s *subjects) has(name string) bool {
	_, ok := s.set[name]
	return ok
}
