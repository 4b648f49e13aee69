package auth

import (
	"math"
	"strings"
	"time"
)

// maxRoles is how many roles a client may have.
const maxRoles = 256

// claims are those of a token that was verified.
type claims map[string]any

// time returns a claim that checkTimes has seen.
func (c claims) time(name string) time.Time {
	seconds, _ := c[name].(float64)
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9))
}

// name returns the identity: the first of some claims that is there. That claim must be good; another is not asked then.
func (c claims) name(from []string) (string, error) {
	if c.refreshes() {
		return "", refuse(CodeIdentity, "token: it is for the issuer, not for us")
	}
	for _, claim := range from {
		value, ok := c[claim]
		if !ok || value == nil {
			continue
		}
		name, ok := value.(string)
		if !ok {
			return "", refuse(CodeIdentity, "token: the identity is no text")
		}
		if err := CheckName(name); err != nil {
			return "", refuse(CodeIdentity, "token: the identity "+err.Error())
		}
		return name, nil
	}
	return "", refuse(CodeIdentity, "token: no claim names the client")
}

// refreshes says whether a token calls itself one with which others are got or ended. Issuers sign those with the same
// keys; they live long, and are not meant to be shown to anybody else.
func (c claims) refreshes() bool {
	for _, name := range []string{"typ", "token_use"} { // Keycloak; Cognito.
		kind, _ := c[name].(string)
		switch strings.ToLower(kind) {
		case "refresh", "offline", "logout":
			return true
		}
	}
	return false
}

// roles returns the roles of a claim: a list of texts, or one text with blanks between them, as scope is (RFC 8693, 4.2).
// An empty list, null and no claim are no roles. What cannot be understood is refused: a rule may deny the role.
func (c claims) roles(claim string) ([]string, error) {
	value, ok := c.lookup(claim)
	if !ok || value == nil || claim == "" {
		return nil, nil
	}
	var roles []string
	switch v := value.(type) {
	case string:
		roles = strings.FieldsFunc(v, func(r rune) bool { return r == ' ' })
	case []any:
		for _, one := range v {
			role, ok := one.(string)
			if !ok {
				return nil, refuse(CodeClaims, "token: a role is no text")
			}
			roles = append(roles, role)
		}
	default:
		return nil, refuse(CodeClaims, "token: the roles are neither a list nor a text")
	}
	if len(roles) > maxRoles {
		return nil, refuse(CodeClaims, "token: there are more than 256 roles")
	}
	for _, role := range roles {
		if err := checkText(role); err != nil {
			return nil, refuse(CodeClaims, "token: a role "+err.Error())
		}
	}
	return roles, nil
}

// lookup finds a claim by its name, else by the path that it is: realm_access.roles is roles in realm_access.
func (c claims) lookup(claim string) (any, bool) {
	if value, ok := c[claim]; ok {
		return value, true
	}
	name, rest, ok := strings.Cut(claim, ".")
	if !ok {
		return nil, false
	}
	inner, ok := c[name].(map[string]any)
	if !ok {
		return nil, false
	}
	return claims(inner).lookup(rest)
}
