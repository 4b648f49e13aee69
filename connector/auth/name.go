package auth

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxName is the octets of a name (DESIGN section 6).
	maxName = 256
	// rolePrefix sets roles apart from names in a policy.
	rolePrefix = "role:"
)

// CheckName returns why a text cannot be a client's name: it is empty, longer than 256 octets, no UTF-8, begins with
// role:, is nothing but a wildcard, or has control characters or the replacement character, which stands for something
// that was lost.
func CheckName(name string) error {
	if err := checkText(name); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(name, rolePrefix):
		return fmt.Errorf("begins with %s, which is for roles", rolePrefix)
	case name == "*" || name == ">":
		return errors.New("is a wildcard")
	}
	return nil
}

// checkText is CheckName for roles, which may begin with anything: their prefix is set before them.
func checkText(text string) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case len(text) > maxName:
		return errors.New("has more than 256 octets")
	case !utf8.ValidString(text):
		return errors.New("is no UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("has a control character")
	case strings.ContainsRune(text, utf8.RuneError):
		return errors.New("has the replacement character")
	}
	return nil
}

// Session returns the printable form of the name, for the header session: what is outside [A-Za-z0-9_-] becomes _, and
// of a long name the first 256 octets count. Without a name it is stomp- and 128 random bits in hex, anew at each call.
// Several names may have one form: nothing may be keyed by it.
func (i Identity) Session() string {
	if i.Name == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // Never fails.
		return "stomp-" + hex.EncodeToString(b[:])
	}
	return strings.Map(func(r rune) rune {
		if plain(r) {
			return r
		}
		return '_'
	}, i.Name[:min(len(i.Name), maxName)])
}

// plain says whether a character is in [A-Za-z0-9_-].
func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}
