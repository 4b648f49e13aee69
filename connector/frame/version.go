package frame

import "strings"

// Version is a version of the STOMP protocol. The zero value stands for a connection that has
// not agreed on one yet.
type Version uint8

// The versions this package speaks, in rising order.
const (
	V10 Version = iota + 1
	V11
	V12
)

// String returns the version as the version header spells it, "1.2" for example, and "none" for
// the zero value.
func (v Version) String() string {
	switch v {
	case V10:
		return "1.0"
	case V11:
		return "1.1"
	case V12:
		return "1.2"
	default:
		return "none"
	}
}

// Negotiate returns the highest version that acceptVersion, the value of an accept-version
// header, has in common with this package, and false if there is none. The versions may come in
// any order, with blanks around them; empty and unknown elements are passed over. A
// value without any element, which is also the value of a missing header, means 1.0.
func Negotiate(acceptVersion string) (Version, bool) {
	var best Version
	named := false
	for element := range strings.SplitSeq(acceptVersion, ",") {
		switch strings.Trim(element, " \t") {
		case "":
			continue
		case "1.0":
			best = max(best, V10)
		case "1.1":
			best = max(best, V11)
		case "1.2":
			best = max(best, V12)
		}
		named = true
	}
	if !named {
		return V10, true // STOMP 1.1, Protocol Negotiation: no header means 1.0.
	}
	return best, best != 0
}
