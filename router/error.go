package router

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// ErrDestination is what every error of Parse wraps: the destination is at fault, not the server.
var ErrDestination = errors.New("bad destination")

// Error is the error of Parse.
type Error struct {
	Text string // Text names the destination and its fault on one line. It is printable and safe to show to a client.
}

var _ error = (*Error)(nil)

// Error returns Text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns ErrDestination.
func (e *Error) Unwrap() error { return ErrDestination }

// shownOctets is how much of a destination beyond the limit an Error repeats.
const shownOctets = 64

func newError(destination string, fault error) *Error {
	return &Error{Text: fmt.Sprintf("destination %s: %v", shown(destination), fault)}
}

// shown quotes a destination so that it is printable, and cuts one that is over the limit.
func shown(destination string) string {
	if len(destination) <= maxDestination {
		return strconv.Quote(destination)
	}
	end := shownOctets
	for end > shownOctets-utf8.UTFMax && !utf8.RuneStart(destination[end]) {
		end--
	}
	return strconv.Quote(destination[:end]) + "..."
}

// The faults that need no further detail.
var (
	errEmpty        = errors.New("it is empty")
	errUTF8         = errors.New("it is not valid UTF-8")
	errSpace        = errors.New("it holds a space")
	errReplacement  = errors.New("it holds U+FFFD, the mark of text that was decoded wrongly")
	errEmptySegment = errors.New("it has an empty segment (two slashes together, or one at the end)")
	errEmptyToken   = errors.New("it has an empty token (two dots together, or one at an edge)")
	errTokens       = fmt.Errorf("it has more than %d tokens", maxTokens)

	errInside   = errors.New(`"*" and ">" must stand alone as a token and cannot be part of one`)
	errNotLast  = errors.New(`">", "**" and "#" stand for the rest of a channel and must be its last token`)
	errWildSend = errors.New("wildcards are for SUBSCRIBE only, a SEND names one channel")

	errComma    = errors.New("a comma (composite destinations) is not supported, use one frame for each destination")
	errOptions  = errors.New("a question mark (destination options) is not supported, use headers such as prefetch-count")
	errExchange = errors.New("/exchange/ is not supported, use /topic/<channel>")
	errAMQQueue = errors.New("/amq/queue/ is not supported, use /queue/<channel>")
	errReplyQ   = errors.New("/reply-queue/ is not supported, use /temp-queue/<name>")
	errDsub     = errors.New("/dsub/ is not supported, use /topic-store/<channel> with durable:true and an id")
	errUser     = errors.New("/user/ is not supported, use a /queue/ or /topic/ with the user's name in its channel")
)
