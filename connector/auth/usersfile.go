package auth

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// maxCost is the largest cost of a hash: above it one check takes longer than clients wait.
const maxCost = 15

// user is one line of the users file.
type user struct {
	hash  []byte
	roles []string
}

func (u user) identity(name string) Identity {
	sum := sha256.Sum256(u.hash)
	return Identity{Name: name, Roles: u.roles, Source: Password, line: [8]byte(sum[:8])}
}

// parseUsers reads a users file: lines of name:bcrypt hash:role,role, where roles may be left out; empty lines and lines
// that begin with # are skipped. The error has a line for each fault, with the file's name, and shows no hash.
func parseUsers(file string, text []byte) (map[string]user, error) {
	users := make(map[string]user)
	lines := make(map[string]int)
	var faults []error
	for i, line := range bytes.Split(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
			continue
		}
		name, u, err := parseUser(string(line))
		if first, twice := lines[name]; err == nil && twice {
			err = fmt.Errorf("names a user of line %d again", first)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: line %d: %w", file, i+1, err))
			continue
		}
		users[name], lines[name] = u, i+1
	}
	if len(users) == 0 && len(faults) == 0 {
		faults = append(faults, fmt.Errorf("%s: line 1: there is no user", file))
	}
	return users, errors.Join(faults...)
}

func parseUser(line string) (string, user, error) {
	parts := strings.Split(line, ":")
	if len(parts) != 2 && len(parts) != 3 {
		return "", user{}, errors.New("is not name:bcrypt hash:role,role")
	}
	if err := CheckName(parts[0]); err != nil {
		return "", user{}, fmt.Errorf("the name %w", err)
	}
	u := user{hash: []byte(parts[1])}
	cost, err := bcrypt.Cost(u.hash)
	switch {
	case err != nil || len(parts[1]) != 60:
		return "", user{}, errors.New("the second field is no bcrypt hash; make one with: htpasswd -nB -C 10 NAME")
	case cost > maxCost:
		return "", user{}, fmt.Errorf("the hash has cost %d, more than %d: a login would take seconds", cost, maxCost)
	}
	if len(parts) == 3 && parts[2] != "" {
		u.roles = strings.Split(parts[2], ",")
	}
	for _, role := range u.roles {
		if err := checkText(role); err != nil {
			return "", user{}, fmt.Errorf("a role %w", err)
		}
		if role != strings.TrimSpace(role) {
			return "", user{}, errors.New("a role has blanks around it")
		}
	}
	return parts[0], u, nil
}
