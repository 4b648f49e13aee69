package frame

import "bytes"

// bad marks an octet that a version has no form for.
const bad = 0xff

// table says for each octet of a header name or value how a version writes it: 0 as it is, bad
// not at all, else as a backslash and that letter.
type table [256]byte

// STOMP 1.0 has no escapes, and a CR at the end of a value would read as part of the line end, so
// CR and LF cannot be written. The colon of a name would end the name.
var (
	names10  = table{0: bad, '\n': bad, '\r': bad, ':': bad}
	values10 = table{0: bad, '\n': bad, '\r': bad}
)

// STOMP 1.1, Value Encoding: \n, \c and \\. A CR has no escape and is not written raw.
var all11 = table{0: bad, '\r': bad, '\n': 'n', ':': 'c', '\\': '\\'}

// STOMP 1.2, Value Encoding: \r, \n, \c and \\. NUL has no escape; a raw one would end the frame
// for many receivers.
var all12 = table{0: bad, '\r': 'r', '\n': 'n', ':': 'c', '\\': '\\'}

// tables returns how v writes names and values. The zero Version is written like V10.
func (v Version) tables() (name, value *table) {
	switch v {
	case V11:
		return &all11, &all11
	case V12:
		return &all12, &all12
	default:
		return &names10, &values10
	}
}

// appendEscaped appends s as t writes it, and reports false, with an unspecified part of s
// appended, if t has no form for s.
func appendEscaped[T ~string | ~[]byte](dst []byte, t *table, s T) ([]byte, bool) {
	from := 0
	for i := range len(s) {
		c := t[s[i]]
		if c == 0 {
			continue
		}
		if c == bad {
			return dst, false
		}
		dst = append(dst, s[from:i]...)
		dst = append(dst, '\\', c)
		from = i + 1
	}
	return append(dst, s[from:]...), true
}

func writable[T ~string | ~[]byte](t *table, s T) bool {
	for i := range len(s) {
		if t[s[i]] == bad {
			return false
		}
	}
	return true
}

// escaped returns the octet that stands for a backslash and letter in v, V11 or V12, and whether
// there is one.
func (v Version) escaped(letter byte) (byte, bool) {
	switch letter {
	case '\\':
		return '\\', true
	case 'n':
		return '\n', true
	case 'c':
		return ':', true
	case 'r':
		return '\r', v == V12
	default:
		return 0, false
	}
}

// undefinedEscape returns the first escape in b that v does not define, a backslash and the octet
// behind it or a lone one at the end, and nil if there is none.
func undefinedEscape(b []byte, v Version) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		if i+1 == len(b) {
			return b[i:]
		}
		if _, ok := v.escaped(b[i+1]); !ok {
			return b[i : i+2]
		}
		i++
	}
	return nil
}

// unescape undoes the escapes in b, all of them defined, inside b's own memory and returns how
// many octets are left.
func unescape(b []byte) int {
	first := bytes.IndexByte(b, '\\')
	if first < 0 {
		return len(b)
	}
	w := first
	for r := first; r < len(b); r++ {
		c := b[r]
		if c == '\\' {
			r++
			c, _ = V12.escaped(b[r])
		}
		b[w] = c
		w++
	}
	return w
}
