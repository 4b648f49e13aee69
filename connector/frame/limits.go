package frame

import (
	"fmt"
	"math"
)

// Limits bounds what one frame may take; 0 means no bound. Lengths are octets as they stand on
// the wire, escapes and all, without the end of the line.
type Limits struct {
	// Headers is the number of headers, repeated ones counted.
	Headers int
	// HeaderLine is the length of one header line: name, colon and value. It is also the most
	// octets that are read and dropped between the blank line and the NUL of a frame that may
	// not carry a body.
	HeaderLine int
	// Passcode takes the place of HeaderLine on the passcode line of CONNECT and STOMP where it
	// is the larger of the two.
	Passcode int
	// Body is the length of the body.
	Body int
	// Frame is the length of the whole frame, NUL included. It is meant for the
	// time before CONNECT.
	Frame int
}

// The names of the limits in a [LimitError].
const (
	limitHeaders    = "headers"
	limitHeaderLine = "header_line"
	limitPasscode   = "passcode"
	limitBody       = "body"
	limitFrame      = "frame_before_connect"
)

// unlimited is the bound that no length reaches; a few octets can be added to it.
const unlimited = math.MaxInt / 2

// bounded returns the limits with unlimited in the place of 0, but for Passcode, which then is
// below HeaderLine and without effect.
func (l Limits) bounded() Limits {
	for _, p := range []*int{&l.Headers, &l.HeaderLine, &l.Body, &l.Frame} {
		if *p <= 0 || *p > unlimited {
			*p = unlimited
		}
	}
	l.Passcode = min(l.Passcode, unlimited)
	return l
}

// LimitError says that a frame is larger than one of the [Limits] allows. It is found before the
// octets in question are kept.
type LimitError struct {
	// Name is the limit as the configuration spells it: "headers", "header_line", "passcode",
	// "body" or "frame_before_connect".
	Name string
	// Max is the limit: headers for "headers", octets for all others.
	Max int
	// Got is what the frame has, in the same unit; 0 if it is not known.
	Got int
	// Bodiless is the command of a frame that carries no body, where the octets in question stand in the place of one;
	// else Unknown.
	Bodiless Command
}

// Error returns a text that is safe for a client and names the limit.
func (e *LimitError) Error() string {
	unit := "octets"
	if e.Name == limitHeaders {
		unit = "headers"
	}
	if e.Bodiless != Unknown {
		return fmt.Sprintf("limit %s exceeded: %s carries no body, at most %d %s before its NUL are dropped", e.Name, e.Bodiless, e.Max, unit)
	}
	if e.Got > 0 {
		return fmt.Sprintf("limit %s exceeded: %d %s, at most %d are allowed", e.Name, e.Got, unit, e.Max)
	}
	return fmt.Sprintf("limit %s exceeded: at most %d %s are allowed", e.Name, e.Max, unit)
}
