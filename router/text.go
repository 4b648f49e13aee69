package router

import (
	"fmt"
	"unicode/utf8"
)

// checkText refuses what no destination and no subject may hold. Everything a NATS protocol line treats as the end
// of a word or of the line is among it. Nothing is decoded or normalised: what passes goes to NATS octet by octet.
func checkText(s string) error {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf {
			return checkRunes(s)
		}
		if c == ' ' {
			return errSpace
		}
		if c < ' ' || c == 0x7f {
			return controlError(rune(c))
		}
	}
	return nil
}

// checkRunes is checkText for a text that is not plain ASCII.
func checkRunes(s string) error {
	if !utf8.ValidString(s) {
		return errUTF8
	}
	for _, c := range s {
		switch {
		case c == ' ':
			return errSpace
		case c < ' ' || c >= 0x7f && c < 0xa0: // C0, DEL and C1.
			return controlError(c)
		case c == utf8.RuneError:
			// JetStream takes a stored subject with this character for a corrupt index when it starts.
			return errReplacement
		}
	}
	return nil
}

func controlError(c rune) error { return fmt.Errorf("it holds the control character %U", c) }
