package frame_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/natstomp/natstomp/connector/frame"
)

// FuzzDecode asserts that cuts change nothing, that texts are safe, and that what was decoded is
// read back after Append.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"CONNECT\r\naccept-version:1.2\r\npasscode:a\\tb\r\n\r\n\x00\r\n",
		"SEND\ndestination:/queue/a\ncontent-length:5\nx:a\\cb\\\\\\n\\r\n\na\x00b\x00c\x00\n\nSEND\n\nbody\n\x00",
		"SEND\ncontent-length:6\n\nhello\x00",
		"SEND\ncontent-length:1\ncontent-length:2\n\nx\x00\x00",
		"SEND\nx:c\\d\n\n\x00",
		"SEND\nx:a\r\nb:\r\n\r\n\x00",
		"ACK\nmessage-id:m-1\ncontent-length:5\n\n\x00\rACK\n\n\x00",
		"DISCONNECT\nreceipt:r1\n\x00\n",
		"MESSAGE\na:1\na:2\n:\nb\n\n\x00",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00",
		"\r\n\r\n\x00\r\nQUIT\n",
		"ERROR\nmessage:\xff\xfe\n\n\x80\x00",
		strings.Repeat("SEND\nheader:value\n\nbody\x00", 8),
		strings.Repeat("STOMP\npasscode:0123456789012345678901234567890123456789\n", 3),
	} {
		for v := range byte(4) {
			f.Add([]byte(s), v, v%2 == 0, uint64(len(s)))
		}
	}
	f.Fuzz(func(t *testing.T, octets []byte, version byte, limited bool, seed uint64) {
		v := frame.Version(version % 4)
		var limits frame.Limits
		if limited {
			limits = frame.Limits{Headers: 3, HeaderLine: 20, Passcode: 30, Body: 40, Frame: 100}
		}
		got := decodeAll(v, limits, [][]byte{octets})
		for _, list := range [][][]byte{octetByOctet(octets), randomCuts(rand.New(rand.NewPCG(seed, 0)), octets)} {
			if cut := decodeAll(v, limits, list); cut.String() != got.String() {
				t.Errorf("cut: got %v, want as read at once: %v", cut, got)
			}
		}
		checkError(t, got.err, limited)
		for _, f := range got.clones {
			want := readBack(v, f)
			back := decodeAll(v, frame.Limits{}, [][]byte{frame.Append(nil, v, &f)})
			if !errors.Is(back.err, io.EOF) || !slices.Equal(back.frames, []string{render(&want)}) {
				t.Errorf("read back: got %v, want %s", back, render(&want))
			}
		}
	})
}

// checkError asserts that err is one of those that Decode names, and fit for a client.
func checkError(t *testing.T, err error, limited bool) {
	t.Helper()
	var syntax *frame.SyntaxError
	var limit *frame.LimitError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	case errors.As(err, &syntax):
		unsafe := func(r rune) bool { return r != ' ' && (!unicode.IsPrint(r) || r == unicode.ReplacementChar) }
		if syntax.Text == "" || len(syntax.Text) > 400 || strings.ContainsFunc(syntax.Text, unsafe) {
			t.Errorf("got text %q, want one that is safe and short", syntax.Text)
		}
	case errors.As(err, &limit):
		if !limited || limit.Max <= 0 || (limit.Got != 0 && limit.Got <= limit.Max) {
			t.Errorf("got %+v, limited %t, want a limit that was set and exceeded", limit, limited)
		}
	default:
		t.Errorf("got %v, want one of the package's errors", err)
	}
}

// defined has the escapes by version, as the specifications list them.
var defined = map[frame.Version]map[string]string{
	frame.V10: {},
	frame.V11: {`\n`: "\n", `\c`: ":", `\\`: `\`},
	frame.V12: {`\r`: "\r", `\n`: "\n", `\c`: ":", `\\`: `\`},
}

var pair = regexp.MustCompile(`(?s)\\.?`)

// unescape is a second reading of the escapes, slow and plain.
func unescape(v frame.Version, s string) (string, bool) {
	ok := true
	if v == frame.V10 {
		return s, true
	}
	plain := pair.ReplaceAllStringFunc(s, func(p string) string {
		c, found := defined[v][p]
		ok = ok && found
		return c
	})
	return plain, ok
}

// FuzzEscape asserts that a header is read back if it is representable and left out if it
// is not, and that unescaping does what a plain reading of the specifications does.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"plain", `\\`, `\n\c\r`, `\`, `a\`, `\d`, `\\n`, "a:b", "a\nb", "a\rb", "\x00", "\\\xff", `c\\d\c\\\n`, "é\\c"} {
		f.Add(s, "value")
		f.Add("name", s)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, v := range allVersions {
			line := frame.AppendHeader(nil, v, name, value)
			representable := name != "" && !strings.Contains(name+value, "\x00") &&
				(v == frame.V12 || !strings.Contains(name+value, "\r")) &&
				(v != frame.V10 || !strings.Contains(name, ":") && !strings.Contains(name+value, "\n"))
			if got := frame.Representable(v, name, value); got != representable || (len(line) > 0) != representable {
				t.Errorf("%v: got Representable %t and line %q, want %t", v, got, line, representable)
			}
			if representable {
				want := outcome{frames: []string{"RECEIPT{" + strconv.Quote(name) + ":" + strconv.Quote(value) + `}""`}, rest: `unknown{}""`, err: io.EOF}
				if got := decodeAll(v, frame.Limits{}, [][]byte{[]byte("RECEIPT\n"), line, []byte("\n\x00")}); got.String() != want.String() {
					t.Errorf("%v: got %v, want %v", v, got, want)
				}
			}
			if raw := "x:" + value; !strings.ContainsAny(value, "\x00\n\r") {
				plain, ok := unescape(v, value)
				d := frame.NewDecoder(strings.NewReader("RECEIPT\n"+raw+"\n\n\x00"), frame.Limits{})
				d.SetVersion(v)
				var f frame.Frame
				err := d.Decode(&f)
				if (err == nil) != ok || (ok && f.Get("x") != plain) {
					t.Errorf("%v: line %q: got %q, %v, want %q, %t", v, raw, f.Get("x"), err, plain, ok)
				}
			}
		}
	})
}

var heartbeat = regexp.MustCompile(`^([0-9]{1,10}),([0-9]{1,10})$`)

// FuzzHeartbeat compares with a reading by regular expression.
func FuzzHeartbeat(f *testing.F) {
	for _, c := range heartbeatCases {
		f.Add(c.value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		var want frame.Heartbeat
		if m := heartbeat.FindStringSubmatch(value); m != nil {
			out, outErr := strconv.ParseInt(m[1], 10, 32)
			in, inErr := strconv.ParseInt(m[2], 10, 32)
			if outErr == nil && inErr == nil {
				want = frame.Heartbeat{Out: int(out), In: int(in)}
			}
		}
		if got := frame.ParseHeartbeat(value); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	})
}

// FuzzNegotiate compares with a reading by regular expression.
func FuzzNegotiate(f *testing.F) {
	for _, c := range negotiateCases {
		f.Add(c.value)
	}
	empty := regexp.MustCompile(`^[ \t,]*$`)
	element := map[frame.Version]*regexp.Regexp{}
	for _, v := range allVersions {
		element[v] = regexp.MustCompile(`(^|,)[ \t]*` + regexp.QuoteMeta(v.String()) + `[ \t]*(,|$)`)
	}
	f.Fuzz(func(t *testing.T, value string) {
		want := none
		for _, v := range allVersions {
			if element[v].MatchString(value) {
				want = v
			}
		}
		if empty.MatchString(value) {
			want = frame.V10
		}
		if got, ok := frame.Negotiate(value); got != want || ok != (want != none) {
			t.Errorf("%q: got %v, %t, want %v", value, got, ok, want)
		}
	})
}
