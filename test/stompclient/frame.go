package stompclient

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Header is one header line, unescaped.
type Header struct{ Name, Value string }

// Frame is one STOMP frame. The zero value has no command and cannot be sent.
type Frame struct {
	Command string
	Headers []Header
	Body    []byte
}

// New returns a frame with the given command and headers; nameValue alternates names and values and panics if it is
// of odd length.
func New(command string, nameValue ...string) Frame {
	if len(nameValue)%2 != 0 {
		panic("stompclient: a header name without a value")
	}
	f := Frame{Command: command}
	for i := 0; i < len(nameValue); i += 2 {
		f.Headers = append(f.Headers, Header{nameValue[i], nameValue[i+1]})
	}
	return f
}

// WithBody returns a copy of f with the body and a content-length header that states its length.
func (f Frame) WithBody(body []byte) Frame {
	headers := append([]Header(nil), f.Headers...)
	f.Headers = append(headers, Header{"content-length", strconv.Itoa(len(body))})
	f.Body = body
	return f
}

// Lookup returns the value of the first header with that name and whether there is one.
func (f Frame) Lookup(name string) (string, bool) {
	for _, h := range f.Headers {
		if h.Name == name {
			return h.Value, true
		}
	}
	return "", false
}

// Get returns the value of the first header with that name, or "".
func (f Frame) Get(name string) string {
	v, _ := f.Lookup(name)
	return v
}

// String returns the frame for a test's message: command and headers quoted as Go strings, a long body cut.
func (f Frame) String() string {
	var b strings.Builder
	b.WriteString(f.Command)
	for _, h := range f.Headers {
		fmt.Fprintf(&b, " %q", h.Name+":"+h.Value)
	}
	switch {
	case len(f.Body) > 256:
		fmt.Fprintf(&b, " | %q... (%d octets)", f.Body[:256], len(f.Body))
	case len(f.Body) > 0:
		fmt.Fprintf(&b, " | %q", f.Body)
	}
	return b.String()
}

// Encode returns the octets of the frame in the given version ("1.0", "1.1" or "1.2"; anything else counts as 1.0).
// Headers are escaped as the version has it, those of CONNECT and STOMP never. Nothing is added: neither a
// content-length nor an EOL behind the NUL.
func (f Frame) Encode(version string) []byte {
	var b bytes.Buffer
	b.WriteString(f.Command)
	b.WriteByte('\n')
	escape := escaper(version)
	if plain(f.Command) {
		escape = strings.NewReplacer()
	}
	for _, h := range f.Headers {
		b.WriteString(escape.Replace(h.Name))
		b.WriteByte(':')
		b.WriteString(escape.Replace(h.Value))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	b.Write(f.Body)
	b.WriteByte(0)
	return b.Bytes()
}

// plain reports whether the headers of that command are never escaped.
func plain(command string) bool {
	return command == "CONNECT" || command == "STOMP" || command == "CONNECTED"
}

func escaper(version string) *strings.Replacer {
	switch version {
	case "1.2":
		return strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, ":", `\c`)
	case "1.1":
		return strings.NewReplacer(`\`, `\\`, "\n", `\n`, ":", `\c`)
	default:
		return strings.NewReplacer()
	}
}

// unescape undoes the escaping of a header name or value; an undefined pair is an error.
func unescape(version, s string) (string, error) {
	if version != "1.1" && version != "1.2" {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch {
		case i == len(s):
			return "", fmt.Errorf("%q ends within an escape", s)
		case s[i] == '\\':
			b.WriteByte('\\')
		case s[i] == 'n':
			b.WriteByte('\n')
		case s[i] == 'c':
			b.WriteByte(':')
		case s[i] == 'r' && version == "1.2":
			b.WriteByte('\r')
		default:
			return "", fmt.Errorf("undefined escape %q in STOMP %s", s[i-1:i+1], version)
		}
	}
	return b.String(), nil
}
