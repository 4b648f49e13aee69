package frame

import "strconv"

const nameContentLength = "content-length"

// Representable reports whether a header can be written in version v so that the
// receiver reads it back octet by octet. A CR cannot in 1.0 and 1.1, nor an LF, or the colon of a
// name, in 1.0; a NUL or an empty name never can. The zero Version and the headers of
// CONNECT, STOMP and CONNECTED follow the rules of V10.
func Representable[N, V ~string | ~[]byte](v Version, name N, value V) bool {
	names, values := v.tables()
	return len(name) > 0 && writable(names, name) && writable(values, value)
}

// AppendHeader appends one header line, escaped for version v, with its LF, and returns the
// extended slice. For the headers of CONNECT, STOMP and CONNECTED, which are never escaped, v is
// V10. A header that is not [Representable] is left out: dst comes back as it was.
func AppendHeader[N, V ~string | ~[]byte](dst []byte, v Version, name N, value V) []byte {
	if len(name) == 0 {
		return dst
	}
	names, values := v.tables()
	before := len(dst)
	dst, ok := appendEscaped(dst, names, name)
	if !ok {
		return dst[:before]
	}
	dst = append(dst, ':')
	if dst, ok = appendEscaped(dst, values, value); !ok {
		return dst[:before]
	}
	return append(dst, '\n')
}

// AppendBody appends what follows the other headers of a frame with a body: content-length, the
// blank line, the body, NUL and one LF.
func AppendBody(dst, body []byte) []byte {
	dst = append(dst, nameContentLength+":"...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, '\n', '\n')
	dst = append(dst, body...)
	return append(dst, 0, '\n')
}

// Append appends a whole frame in version v and returns the extended slice; nothing of f is kept.
// Headers that are not [Representable] are left out, those of CONNECT, STOMP and CONNECTED are
// not escaped. MESSAGE and ERROR always get a content-length, SEND gets one with a body;
// a content-length among f's headers is left out. The body of any other command is left out too.
// The frame ends with NUL and exactly one LF. Of an Unknown command nothing is appended.
func Append(dst []byte, v Version, f *Frame) []byte {
	c := f.Command
	if c == Unknown || int(c) >= len(commandNames) {
		return dst
	}
	if c.raw() {
		v = V10
	}
	dst = append(dst, commandNames[c]...)
	dst = append(dst, '\n')
	for i := range f.Headers {
		h := &f.Headers[i]
		if string(h.Name) != nameContentLength {
			dst = AppendHeader(dst, v, h.Name, h.Value)
		}
	}
	if c == Message || c == Error || (c == Send && len(f.Body) > 0) {
		return AppendBody(dst, f.Body)
	}
	return append(dst, '\n', 0, '\n')
}
