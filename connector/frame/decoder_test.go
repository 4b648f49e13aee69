package frame_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/natstomp/natstomp/connector/frame"
)

// decodeCase is one stream: the frames in it and the text of the error that ends it.
type decodeCase struct {
	name     string
	versions []frame.Version // Empty: none and all.
	in       string
	want     []string
	err      string // Empty: io.EOF.
}

func (c decodeCase) run(t *testing.T) {
	t.Helper()
	versions := c.versions
	if len(versions) == 0 {
		versions = append([]frame.Version{none}, allVersions...)
	}
	for _, v := range versions {
		t.Run(c.name+"/"+v.String(), func(t *testing.T) {
			got := checkSplits(t, v, frame.Limits{}, []byte(c.in))
			if !slices.Equal(got.frames, c.want) {
				t.Errorf("frames: got %q, want %q", got.frames, c.want)
			}
			want := c.err
			if want == "" {
				want = io.EOF.Error()
			}
			if got.err.Error() != want {
				t.Errorf("error: got %q, want %q", got.err, want)
			}
		})
	}
}

var (
	only11   = []frame.Version{frame.V11}
	only12   = []frame.Version{frame.V12}
	not12    = []frame.Version{frame.V10, frame.V11}
	escaping = []frame.Version{frame.V11, frame.V12}
	crlf     = []frame.Version{none, frame.V12}
	literal  = []frame.Version{none, frame.V10}
)

const nulFirst = "NUL where a command should begin: an empty frame, or a PROXY protocol header, which is not expected here"

func TestDecodeFrames(t *testing.T) {
	for _, c := range []decodeCase{
		{name: "nothing", in: ""},
		{name: "no header and no body", in: "SEND\n\n\x00", want: []string{`SEND{}""`}},
		{name: "headers and body", in: "SEND\na:1\nb:2\n\nhello\x00", want: []string{`SEND{"a":"1" "b":"2"}"hello"`}},
		{name: "two frames in one read", in: "SEND\n\na\x00SEND\n\nb\x00", want: []string{`SEND{}"a"`, `SEND{}"b"`}},
		{
			name: "every command",
			in: "CONNECT\n\n\x00STOMP\n\n\x00SEND\n\n\x00SUBSCRIBE\n\n\x00UNSUBSCRIBE\n\n\x00ACK\n\n\x00NACK\n\n\x00BEGIN\n\n\x00" +
				"COMMIT\n\n\x00ABORT\n\n\x00DISCONNECT\n\n\x00CONNECTED\n\n\x00MESSAGE\n\n\x00RECEIPT\n\n\x00ERROR\n\n\x00",
			want: []string{
				`CONNECT{}""`, `STOMP{}""`, `SEND{}""`, `SUBSCRIBE{}""`, `UNSUBSCRIBE{}""`, `ACK{}""`, `NACK{}""`, `BEGIN{}""`,
				`COMMIT{}""`, `ABORT{}""`, `DISCONNECT{}""`, `CONNECTED{}""`, `MESSAGE{}""`, `RECEIPT{}""`, `ERROR{}""`,
			},
		},
		{name: "only the first blank line ends the headers", in: "SEND\n\na\n\nb\n\nc\x00", want: []string{`SEND{}"a\n\nb\n\nc"`}},
		{name: "line feeds at both ends of a body are body", in: "SEND\n\n\n\nx\n\x00", want: []string{`SEND{}"\n\nx\n"`}},
		{name: "line feeds at the end of a sized body are body", in: "SEND\ncontent-length:3\n\nx\n\n\x00", want: []string{`SEND{"content-length":"3"}"x\n\n"`}},
		{name: "first colon splits", in: "SUBSCRIBE\nselector:k='x:1:2'\n\n\x00", want: []string{`SUBSCRIBE{"selector":"k='x:1:2'"}""`}},
		{name: "nothing is trimmed", in: "SEND\n a : b \t\n\n x \x00", want: []string{`SEND{" a ":" b \t"}" x "`}},
		{name: "empty value", in: "SEND\na:\n\n\x00", want: []string{`SEND{"a":""}""`}},
		{name: "repeated headers are all kept", in: "SEND\na:1\na:2\na:1\n\n\x00", want: []string{`SEND{"a":"1" "a":"2" "a":"1"}""`}},
		{name: "octets above 127", in: "SEND\nn\xc3\xa4\xff:\x80v\n\n\xfe\xff\x00", want: []string{`SEND{"nä\xff":"\x80v"}"\xfe\xff"`}},
		{name: "commands are case-sensitive", in: "send\n\n\x00", err: `unknown command "send"`},
	} {
		c.run(t)
	}
}

func TestDecodeBetweenFrames(t *testing.T) {
	for _, c := range []decodeCase{
		{name: "heart-beats only", in: "\n\n\n"},
		{name: "line ends before, between and behind", in: "\n\r\nSEND\n\na\x00\n\n\r\n\nSEND\n\nb\x00\r\n\n", want: []string{`SEND{}"a"`, `SEND{}"b"`}},
		{name: "lone carriage return", in: "SEND\n\n\x00\rSEND\n\n\x00", want: []string{`SEND{}""`}, err: "carriage return without line feed between frames"},
		{name: "two carriage returns", in: "\r\r\n", err: "carriage return without line feed between frames"},
		{name: "carriage return at the end of the stream", in: "\n\r", err: io.ErrUnexpectedEOF.Error()},
		{name: "blank", in: " SEND\n\n\x00", err: `unknown command " SEND"`},
		{name: "second NUL", in: "SEND\n\n\x00\x00", want: []string{`SEND{}""`}, err: nulFirst},
	} {
		c.run(t)
	}
}

func TestDecodeLineEnds(t *testing.T) {
	for _, c := range []decodeCase{
		{
			name: "CRLF", versions: crlf, in: "SEND\r\na:1\r\nb: 2 \r\n\r\nx\r\n\x00\r\n",
			want: []string{`SEND{"a":"1" "b":" 2 "}"x\r\n"`},
		},
		{name: "CRLF and LF mixed", versions: crlf, in: "SEND\r\na:1\n\r\nx\x00", want: []string{`SEND{"a":"1"}"x"`}},
		{name: "CRLF on a CONNECT before the version", versions: []frame.Version{none}, in: "CONNECT\r\nhost:h\r\n\r\n\x00\r\n", want: []string{`CONNECT{"host":"h"}""`}},
		{name: "CR is data in a value", versions: not12, in: "SEND\na:1\r\nb:\r2\n\nx\x00", want: []string{`SEND{"a":"1\r" "b":"\r2"}"x"`}},
		{name: "CR is data in a value before the version", versions: []frame.Version{none}, in: "CONNECT\npasscode:a\rb\r\n\n\x00", want: []string{`CONNECT{"passcode":"a\rb"}""`}},
		{name: "command line", versions: not12, in: "SEND\r\n\r\n\x00", err: `unknown command "SEND\x0d"; CRLF line ends need STOMP 1.2`},
		{name: "blank line", versions: not12, in: "SEND\na:1\n\r\nx\x00", err: `header line "\x0d" of SEND has no colon; CRLF line ends need STOMP 1.2`},
		{name: "content-length", versions: not12, in: "SEND\ncontent-length:1\r\n\nx\x00", err: `content-length "1\x0d" of SEND is not a number of octets; CRLF line ends need STOMP 1.2`},
		{name: "raw CR in a value", versions: only12, in: "SEND\na:1\r2\n\n\x00", err: `raw carriage return in header "a" of SEND`},
		{name: "CR CR LF", versions: only12, in: "SEND\na:1\r\r\n\n\x00", err: `raw carriage return in header "a" of SEND`},
		{name: "raw CR in a name", versions: only12, in: "SEND\na\r:1\n\n\x00", err: `raw carriage return in header "a\x0d" of SEND`},
		{name: "escaped CR", versions: only12, in: "SEND\r\na:1\\r\r\n\r\n\x00", want: []string{`SEND{"a":"1\r"}""`}},
	} {
		c.run(t)
	}
}

func TestDecodeEscapes(t *testing.T) {
	for _, c := range []decodeCase{
		{name: "all", versions: only12, in: `SEND` + "\n" + `a:\\ \n \r \c` + "\n\n\x00", want: []string{`SEND{"a":"\\ \n \r :"}""`}},
		{name: "all but CR", versions: only11, in: `SEND` + "\n" + `a:\\ \n \c` + "\n\n\x00", want: []string{`SEND{"a":"\\ \n :"}""`}},
		{name: "none", versions: literal, in: `SEND` + "\n" + `a:\\ \n \r \c \d \` + "\n\n\x00", want: []string{`SEND{"a":"\\\\ \\n \\r \\c \\d \\"}""`}},
		{name: "in names", versions: escaping, in: `SEND` + "\n" + `\ca\c\nb\\:1` + "\n\n\x00", want: []string{`SEND{":a:\nb\\":"1"}""`}},
		{name: "several headers", versions: escaping, in: "SEND\n" + `a\\:\c` + "\nb:c\n" + `\nd:e\\f` + "\n\n\x00", want: []string{`SEND{"a\\":":" "b":"c" "\nd":"e\\f"}""`}},
		{name: "backslash before a letter", versions: escaping, in: "SEND\n" + `a:\\n\\\n` + "\n\n\x00", want: []string{`SEND{"a":"\\n\\\n"}""`}},
		{name: "raw and escaped colons", versions: escaping, in: "SEND\n" + `a:b:c\cd` + "\n\n\x00", want: []string{`SEND{"a":"b:c:d"}""`}},
		{name: "bodies are not unescaped", versions: escaping, in: "SEND\n\n" + `\n\d\` + "\x00", want: []string{`SEND{}"\\n\\d\\"`}},
		{name: "CONNECT is exempt", in: "CONNECT\n" + `passcode:a\tb\c\` + "\n\n\x00", want: []string{`CONNECT{"passcode":"a\\tb\\c\\"}""`}},
		{name: "STOMP is exempt", in: "STOMP\n" + `passcode:a\tb\c` + "\n\n\x00", want: []string{`STOMP{"passcode":"a\\tb\\c"}""`}},
		{name: "CONNECTED is exempt", in: "CONNECTED\n" + `session:a\tb` + "\n\n\x00", want: []string{`CONNECTED{"session":"a\\tb"}""`}},
		{name: "undefined", versions: only12, in: "SEND\n" + `x:c\d` + "\n\n\x00", err: `undefined escape "\d" in header "x" of SEND; STOMP 1.2 was agreed on`},
		{name: "undefined behind a defined one", versions: only11, in: "ACK\n" + `a\cb:c\\\t` + "\n\n\x00", err: `undefined escape "\t" in header "a\cb" of ACK; STOMP 1.1 was agreed on`},
		{name: "CR in 1.1", versions: only11, in: "SEND\n" + `x:a\rb` + "\n\n\x00", err: `undefined escape "\r" in header "x" of SEND; STOMP 1.1 was agreed on`},
		{name: "lone backslash", versions: only12, in: "SEND\n" + `x:a\` + "\r\n\n\x00", err: `undefined escape "\" in header "x" of SEND; STOMP 1.2 was agreed on`},
		{name: "lone backslash of a name", versions: only11, in: "SEND\n" + `x\:a` + "\n\n\x00", err: `undefined escape "\:" in header "x\" of SEND; STOMP 1.1 was agreed on`},
		{name: "undefined octet", versions: only11, in: "SEND\nx:a\\\x07\n\n\x00", err: `undefined escape "\\x07" in header "x" of SEND; STOMP 1.1 was agreed on`},
		{name: "upper case", versions: only12, in: "SEND\n" + `x:\N` + "\n\n\x00", err: `undefined escape "\N" in header "x" of SEND; STOMP 1.2 was agreed on`},
	} {
		c.run(t)
	}
}

func TestDecodeHeaderFaults(t *testing.T) {
	long := strings.Repeat("n", 40)
	for _, c := range []decodeCase{
		{name: "no colon", in: "SEND\ndestination:/q\nx-nl\n\nbody\x00", err: `header line "x-nl" of SEND has no colon`},
		{name: "no name", in: "SEND\n:v\n\n\x00", err: `header line ":v" of SEND has no name`},
		{name: "long line is cut", in: "SEND\n" + long + "\n\n\x00", err: `header line "` + long[:32] + `..." of SEND has no colon`},
		{name: "control octets are not shown", in: "SEND\n\x1b[2J\x7f\xe2\x80\xae\xff\n\n\x00", err: `header line "\x1b[2J\x7f\xe2\x80\xae\xff" of SEND has no colon`},
		{name: "parts of a passcode are not shown", in: "CONNECT\npasscode:a\nsecret\n\n\x00", err: `a header line of CONNECT has no colon`},
		{name: "no name in STOMP", in: "STOMP\n:secret\n\n\x00", err: `a header line of STOMP has no name`},
		{name: "NUL instead of the blank line", in: "DISCONNECT\nreceipt:r1\n\x00\n", err: "DISCONNECT frame ended inside its headers, before a blank line"},
		{name: "NUL behind the command", in: "DISCONNECT\n\x00", err: "DISCONNECT frame ended inside its headers, before a blank line"},
		{name: "NUL in a header", in: "SEND\na:\x001\n\n\x00", err: "SEND frame ended inside its headers, before a blank line"},
		{name: "NUL in a later header", in: "SEND\na:1\nb\x00:\n\n\x00", err: "SEND frame ended inside its headers, before a blank line"},
		{name: "NUL in the command line", in: "SEND\x00", err: `frame ended inside its command line "SEND"`},
	} {
		c.run(t)
	}
}

func TestDecodeForeignProtocols(t *testing.T) {
	path := strings.Repeat("p", 60)
	for _, c := range []decodeCase{
		{name: "HTTP", in: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", versions: crlf, err: `unknown command "GET / HTTP/1.1"; this looks like an HTTP request on a listener for plain STOMP`},
		{name: "HTTP with a long path", in: "POST /" + path + " HTTP/1.1\r\n\r\n", err: `no command: the line "POST /` + path[:26] + `..." is longer than 32 octets; this looks like an HTTP request on a listener for plain STOMP`},
		{name: "TLS", in: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + path, err: `frame ended inside its command line "\x16\x03\x01\x02"; this looks like a TLS handshake on a listener without TLS`},
		{name: "TLS without an early NUL", in: "\x16\x03\x01\x02\x01" + path, err: `no command: the line "\x16\x03\x01\x02\x01` + path[:27] + `..." is longer than 32 octets; this looks like a TLS handshake on a listener without TLS`},
		{name: "PROXY 1", in: "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nSTOMP\n\n\x00", versions: crlf, err: `unknown command "PROXY TCP4 1.2.3.4 5.6.7.8 1 2"; this looks like a PROXY protocol header, which is not expected here`},
		{name: "PROXY 1 of usual length", in: "PROXY TCP4 192.168.100.100 192.168.100.101 56324 61613\r\n", err: `no command: the line "PROXY TCP4 192.168.100.100 192.1..." is longer than 32 octets; this looks like a PROXY protocol header, which is not expected here`},
		{name: "PROXY 2", in: "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c", err: nulFirst},
		{name: "garbage", in: strings.Repeat("\xff\xfe", 40), err: `no command: the line "` + strings.Repeat(`\xff\xfe`, 16) + `..." is longer than 32 octets`},
		{name: "32 octets are waited for", in: path[:32] + "\n", err: `unknown command "` + path[:32] + `"`},
		{name: "33 octets are not", in: path[:33], err: `no command: the line "` + path[:32] + `..." is longer than 32 octets`},
		{name: "the start of a command", in: "SUBS", err: io.ErrUnexpectedEOF.Error()},
	} {
		c.run(t)
	}
}

func TestDecodeContentLength(t *testing.T) {
	notANumber := func(v string) string {
		return `content-length "` + v + `" of SEND is not a number of octets`
	}
	for _, c := range []decodeCase{
		{name: "NULs in the body", in: "SEND\ncontent-length:5\n\na\x00b\x00c\x00", want: []string{`SEND{"content-length":"5"}"a\x00b\x00c"`}},
		{name: "zero", in: "SEND\ncontent-length:0\n\n\x00", want: []string{`SEND{"content-length":"0"}""`}},
		{name: "leading zeros", in: "SEND\ncontent-length:0000000000000000000000002\n\nab\x00", want: []string{`SEND{"content-length":"0000000000000000000000002"}"ab"`}},
		{name: "MESSAGE", in: "MESSAGE\ncontent-length:1\n\n\x00\x00", want: []string{`MESSAGE{"content-length":"1"}"\x00"`}},
		{name: "ERROR", in: "ERROR\ncontent-length:1\n\n\x00\x00", want: []string{`ERROR{"content-length":"1"}"\x00"`}},
		{name: "repeated, the first wins", in: "SEND\ncontent-length:2\ncontent-length:9\n\nab\x00", want: []string{`SEND{"content-length":"2" "content-length":"9"}"ab"`}},
		{name: "other headers of its length", in: "SEND\nxontent-length:9\ncontent-lengtx:9\nContent-Length:9\n\nab\x00", want: []string{`SEND{"xontent-length":"9" "content-lengtx":"9" "Content-Length":"9"}"ab"`}},
		{name: "without one the first NUL ends the body", in: "SEND\n\na\x00\nSEND\n\nb\x00", want: []string{`SEND{}"a"`, `SEND{}"b"`}},
		{name: "NUL counted in", in: "SEND\ncontent-length:6\n\nhello\x00SEND\n\n\x00", err: "SEND frame has no NUL after its body: its content-length of 6 is wrong"},
		{name: "too small", in: "SEND\ncontent-length:4\n\nhello\x00", err: "SEND frame has no NUL after its body: its content-length of 4 is wrong"},
		{name: "too large for the stream", in: "SEND\ncontent-length:9\n\nhello\x00", err: io.ErrUnexpectedEOF.Error()},
		{name: "negative", in: "SEND\ncontent-length:-1\n\nx\x00", err: notANumber("-1")},
		{name: "plus", in: "SEND\ncontent-length:+1\n\nx\x00", err: notANumber("+1")},
		{name: "blank before", in: "SEND\ncontent-length: 1\n\nx\x00", err: notANumber(" 1")},
		{name: "blank behind", in: "SEND\ncontent-length:1 \n\nx\x00", err: notANumber("1 ")},
		{name: "empty", in: "SEND\ncontent-length:\n\nx\x00", err: notANumber("")},
		{name: "hexadecimal", in: "SEND\ncontent-length:0x1\n\nx\x00", err: notANumber("0x1")},
		{name: "exponent", in: "SEND\ncontent-length:1e9\n\nx\x00", err: notANumber("1e9")},
		{name: "underscore", in: "SEND\ncontent-length:1_0\n\nx\x00", err: notANumber("1_0")},
		{name: "other digits", in: "SEND\ncontent-length:٣\n\nx\x00", err: notANumber("٣")},
		{name: "bad one first", in: "SEND\ncontent-length:x\ncontent-length:1\n\nx\x00", err: notANumber("x")},
		{name: "2^63", in: "SEND\ncontent-length:9223372036854775808\n\nx\x00", err: `content-length "9223372036854775808" of SEND is too large`},
		{name: "2^63-1", in: "SEND\ncontent-length:9223372036854775807\n\nx\x00", err: `content-length "9223372036854775807" of SEND is too large`},
		{name: "2^64+1", in: "SEND\ncontent-length:18446744073709551617\n\nx\x00", err: `content-length "18446744073709551617" of SEND is too large`},
		{name: "without a body to count", in: "ACK\ncontent-length:5\n\n\x00SEND\n\n\x00", want: []string{`ACK{"content-length":"5"}""`, `SEND{}""`}},
		{name: "bad without a body to count", in: "ACK\ncontent-length:-x\n\n\x00", want: []string{`ACK{"content-length":"-x"}""`}},
		{name: "body of a frame without one is dropped", in: "RECEIPT\ncontent-length:1\n\nabc\n\x00\nACK\n\n\x00", want: []string{`RECEIPT{"content-length":"1"}""`, `ACK{}""`}},
	} {
		c.run(t)
	}
}

func TestDecodeUnexpectedEnd(t *testing.T) {
	in := "SEND\na:1\ncontent-length:2\n\nxy\x00"
	for i := 1; i < len(in); i++ {
		got := decodeAll(frame.V12, frame.Limits{}, [][]byte{[]byte(in[:i])})
		if !errors.Is(got.err, io.ErrUnexpectedEOF) || len(got.frames) > 0 {
			t.Errorf("end after %q: got %v, want %v and no frame", in[:i], got, io.ErrUnexpectedEOF)
		}
	}
}

func TestDecodeErrorKeepsWhatIsDecoded(t *testing.T) {
	for _, test := range []struct {
		name, in, want string
		limits         frame.Limits
	}{
		{"nothing", "\n", `unknown{}""`, frame.Limits{}},
		{"bad command", "XYZ\n", `unknown{}""`, frame.Limits{}},
		{"end inside the second header", "SEND\nreceipt:1\nx", `SEND{"receipt":"1"}""`, frame.Limits{}},
		{"line without colon", "SEND\nreceipt:1\nx\n\n\x00", `SEND{"receipt":"1"}""`, frame.Limits{}},
		{"undefined escape", "SEND\nrec\\\\eipt:1\nx:\\d\n\n\x00", `SEND{"rec\\eipt":"1"}""`, frame.Limits{}},
		{"content-length", "SEND\ncontent-length:x\nreceipt:1\n\nhello\x00", `SEND{"content-length":"x" "receipt":"1"}""`, frame.Limits{}},
		{"body limit", "SEND\ncontent-length:9\nreceipt:1\n\n", `SEND{"content-length":"9" "receipt":"1"}""`, frame.Limits{Body: 8}},
		{"no NUL", "SEND\ncontent-length:1\nreceipt:1\n\nab\x00", `SEND{"content-length":"1" "receipt":"1"}""`, frame.Limits{}},
		{"end where no body may be", "ACK\nreceipt:1\n\nab", `ACK{"receipt":"1"}""`, frame.Limits{}},
		{"end inside the body", "SEND\nreceipt:1\n\nab", `SEND{"receipt":"1"}""`, frame.Limits{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := checkSplits(t, frame.V12, test.limits, []byte("ACK\nid:1\n\n\x00"+test.in))
			if got.rest != test.want {
				t.Errorf("got %s with %v, want %s", got.rest, got.err, test.want)
			}
		})
	}
}

func TestDecodeStaysFailed(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct {
		name string
		in   string
		err  error // Of the reader.
	}{
		{"syntax", "SEND\nreceipt:1\nx\n\n\x00SEND\n\n\x00", io.EOF},
		{"limit", "SEND\nreceipt:1\ncontent-length:99\n\n\x00SEND\n\n\x00", io.EOF},
		{"end", "", io.EOF},
		{"end inside a frame", "SEND\nreceipt:1\n", io.EOF},
		{"reader", "SEND\nreceipt:1\n", broken},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &pieces{list: [][]byte{[]byte(test.in)}, err: test.err}
			if test.in == "" {
				r.list = nil
			}
			d := frame.NewDecoder(r, frame.Limits{Body: 50})
			var f frame.Frame
			first := d.Decode(&f)
			if first == nil {
				t.Fatalf("got %s, want an error", render(&f))
			}
			held := render(&f)
			r.list = [][]byte{[]byte("SEND\n\n\x00")} // Nothing may come of it.
			d.SetVersion(frame.V10)
			d.SetLimits(frame.Limits{})
			f = frame.Frame{}
			if again := d.Decode(&f); !errors.Is(again, first) || render(&f) != held {
				t.Errorf("second call: got %v with %s, want %v with %s", again, render(&f), first, held)
			}
		})
	}
}

func TestDecodeReaderErrors(t *testing.T) {
	broken := errors.New("broken")
	in := "SEND\n\na\x00SEND\n\nb\x00"
	t.Run("octets and error in one read", func(t *testing.T) {
		d := frame.NewDecoder(iotest.DataErrReader(strings.NewReader(in)), frame.Limits{})
		var f frame.Frame
		for _, want := range []string{`SEND{}"a"`, `SEND{}"b"`} {
			if err := d.Decode(&f); err != nil || render(&f) != want {
				t.Errorf("got %s, %v, want %s", render(&f), err, want)
			}
		}
		if err := d.Decode(&f); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want %v", err, io.EOF)
		}
	})
	for _, cut := range []int{0, 3, len(in) / 2, len(in)} {
		d := frame.NewDecoder(io.MultiReader(strings.NewReader(in[:cut]), iotest.ErrReader(broken)), frame.Limits{})
		var f frame.Frame
		var err error
		for err == nil {
			err = d.Decode(&f)
		}
		if !errors.Is(err, broken) {
			t.Errorf("error after %d octets: got %v, want %v", cut, err, broken)
		}
	}
	t.Run("error with the last octets of a frame", func(t *testing.T) {
		reads := 0
		d := frame.NewDecoder(readerFunc(func(p []byte) (int, error) {
			reads++
			return copy(p, in[:len(in)/2]), broken
		}), frame.Limits{})
		var f frame.Frame
		if err := d.Decode(&f); err != nil || render(&f) != `SEND{}"a"` {
			t.Errorf("got %s, %v, want the frame before the error", render(&f), err)
		}
		if err := d.Decode(&f); !errors.Is(err, broken) || reads != 1 {
			t.Errorf("got %v after %d reads, want %v after 1", err, reads, broken)
		}
	})
	t.Run("reads of nothing", func(t *testing.T) {
		d := frame.NewDecoder(&pieces{}, frame.Limits{}) // It returns 0, nil for ever.
		var f frame.Frame
		if err := d.Decode(&f); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("got %v, want %v", err, io.ErrNoProgress)
		}
		d = frame.NewDecoder(&pieces{list: [][]byte{{}, {}, []byte("SEND\n"), {}, []byte("\n\x00")}}, frame.Limits{})
		if err := d.Decode(&f); err != nil {
			t.Errorf("a few of them: got %v, want nil", err)
		}
	})
}

func TestSetVersionBetweenFrames(t *testing.T) {
	in := "CONNECT\r\npasscode:a\\c\r\n\r\n\x00\r\nSEND\na:\\c\n\n\x00"
	for _, test := range []struct {
		version frame.Version
		want    string
	}{
		{none, `SEND{"a":"\\c"}""`},
		{frame.V10, `SEND{"a":"\\c"}""`},
		{frame.V11, `SEND{"a":":"}""`},
		{frame.V12, `SEND{"a":":"}""`},
	} {
		d := frame.NewDecoder(strings.NewReader(in), frame.Limits{})
		var f frame.Frame
		if err := d.Decode(&f); err != nil || f.Get("passcode") != `a\c` {
			t.Fatalf("CONNECT: got %s, %v, want the passcode unchanged", render(&f), err)
		}
		if test.version != none {
			d.SetVersion(test.version)
		}
		if err := d.Decode(&f); err != nil || render(&f) != test.want {
			t.Errorf("%v: got %s, %v, want %s", test.version, render(&f), err, test.want)
		}
	}
}

func TestFrameSlicesHaveNoRoom(t *testing.T) {
	d := frame.NewDecoder(strings.NewReader("SEND\na:1\nb:2\n\nx\x00ACK\n\n\x00"), frame.Limits{})
	var f frame.Frame
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	_ = append(f.Headers[0].Name, "****"...)
	_ = append(f.Headers[0].Value, "****"...)
	_ = append(f.Headers, frame.Header{})
	_ = append(f.Body, "****"...)
	if got, want := render(&f), `SEND{"a":"1" "b":"2"}"x"`; got != want {
		t.Errorf("after appends to its slices: got %s, want %s", got, want)
	}
	if err := d.Decode(&f); err != nil || f.Command != frame.Ack {
		t.Errorf("next frame: got %s, %v, want ACK", render(&f), err)
	}
}
