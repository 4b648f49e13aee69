package frame

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// SyntaxError says that the octets read are not a STOMP frame.
type SyntaxError struct {
	// Text names what is wrong and in which command and header. It is safe for a client: octets
	// of the peer stand in it cut short and without control characters.
	Text string
}

// Error returns the text.
func (e *SyntaxError) Error() string { return e.Text }

func syntaxErrorf(format string, args ...any) *SyntaxError {
	return &SyntaxError{Text: fmt.Sprintf(format, args...)}
}

// maxShown is how many octets of the peer's are shown in a text.
const maxShown = 32

// show returns b in quotes, cut to maxShown octets; what is not printable UTF-8 is shown as \xHH.
func show(b []byte) string {
	cut := len(b) > maxShown
	if cut {
		b = b[:maxShown]
	}
	out := []byte{'"'}
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if (r == utf8.RuneError && size == 1) || !strconv.IsPrint(r) {
			for _, c := range b[:size] {
				out = fmt.Appendf(out, `\x%02x`, c)
			}
		} else {
			out = append(out, b[:size]...)
		}
		b = b[size:]
	}
	if cut {
		out = append(out, "..."...)
	}
	return string(append(out, '"'))
}

// carriageReturnHint explains a fault in a line of 1.0 or 1.1 that ends in CR.
const carriageReturnHint = "; CRLF line ends need STOMP 1.2"

// foreignHint tells the owner of a misdirected client what its first octets look like.
func foreignHint(line []byte) string {
	switch {
	case len(line) > 1 && line[0] == 0x16 && line[1] == 3:
		return "; this looks like a TLS handshake on a listener without TLS"
	case bytes.HasPrefix(line, []byte("PROXY ")):
		return "; this looks like a PROXY protocol header, which is not expected here"
	}
	for _, method := range []string{"GET ", "HEAD ", "POST ", "PUT ", "OPTIONS ", "CONNECT ", "DELETE ", "PATCH ", "PRI "} {
		if bytes.HasPrefix(line, []byte(method)) {
			return "; this looks like an HTTP request on a listener for plain STOMP"
		}
	}
	return ""
}
