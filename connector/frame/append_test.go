package frame_test

import (
	"slices"
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

func TestRepresentableAndAppendHeader(t *testing.T) {
	for _, test := range []struct {
		name, key, value string
		want             [3]string // In 1.0, 1.1 and 1.2; empty: not representable.
	}{
		{"plain", "a", "b", [3]string{"a:b", "a:b", "a:b"}},
		{"empty value", "a", "", [3]string{"a:", "a:", "a:"}},
		{"blanks", " a ", "\tb ", [3]string{" a :\tb ", " a :\tb ", " a :\tb "}},
		{"octets above 127", "\xff", "é\x80", [3]string{"\xff:é\x80", "\xff:é\x80", "\xff:é\x80"}},
		{"control octets", "\x01", "\x1b\x7f", [3]string{"\x01:\x1b\x7f", "\x01:\x1b\x7f", "\x01:\x1b\x7f"}},
		{"colon in the value", "a", "b:c", [3]string{"a:b:c", `a:b\cc`, `a:b\cc`}},
		{"colon in the name", "a:", "b", [3]string{"", `a\c:b`, `a\c:b`}},
		{"backslash", `a\`, `\b\n`, [3]string{`a\:\b\n`, `a\\:\\b\\n`, `a\\:\\b\\n`}},
		{"LF in the value", "a", "\nb\n", [3]string{"", `a:\nb\n`, `a:\nb\n`}},
		{"LF in the name", "a\n", "b", [3]string{"", `a\n:b`, `a\n:b`}},
		{"CR in the value", "a", "b\r", [3]string{"", "", `a:b\r`}},
		{"CR in the name", "\ra", "b", [3]string{"", "", `\ra:b`}},
		{"NUL in the value", "a", "b\x00", [3]string{"", "", ""}},
		{"NUL in the name", "\x00", "b", [3]string{"", "", ""}},
		{"empty name", "", "b", [3]string{"", "", ""}},
	} {
		for i, v := range allVersions {
			want := "start;"
			if test.want[i] != "" {
				want += test.want[i] + "\n"
			}
			if got := string(frame.AppendHeader([]byte("start;"), v, test.key, test.value)); got != want {
				t.Errorf("%s in %v: got %q, want %q", test.name, v, got, want)
			}
			if got := string(frame.AppendHeader([]byte("start;"), v, []byte(test.key), []byte(test.value))); got != want {
				t.Errorf("%s in %v, as octets: got %q, want %q", test.name, v, got, want)
			}
			if got := frame.Representable(v, test.key, test.value); got != (test.want[i] != "") {
				t.Errorf("%s in %v: got Representable %t, want %t", test.name, v, got, !got)
			}
		}
	}
}

func TestAppend(t *testing.T) {
	odd := headers("a:", "1", "b", "x\ny", "c", "x\rz", "d", `\:`, "", "e", "f", "\x00", "g", "2")
	for _, test := range []struct {
		name string
		f    frame.Frame
		want [3]string // In 1.0, 1.1 and 1.2.
	}{
		{
			"odd headers",
			frame.Frame{Command: frame.Receipt, Headers: odd},
			[3]string{
				"RECEIPT\nd:\\:\ng:2\n\n\x00\n",
				"RECEIPT\na\\c:1\nb:x\\ny\nd:\\\\\\c\ng:2\n\n\x00\n",
				"RECEIPT\na\\c:1\nb:x\\ny\nc:x\\rz\nd:\\\\\\c\ng:2\n\n\x00\n",
			},
		},
		{"CONNECT is not escaped", frame.Frame{Command: frame.Connect, Headers: odd}, same("CONNECT\nd:\\:\ng:2\n\n\x00\n")},
		{"STOMP is not escaped", frame.Frame{Command: frame.Stomp, Headers: odd}, same("STOMP\nd:\\:\ng:2\n\n\x00\n")},
		{"CONNECTED is not escaped", frame.Frame{Command: frame.Connected, Headers: odd}, same("CONNECTED\nd:\\:\ng:2\n\n\x00\n")},
		{"MESSAGE with a body", frame.Frame{Command: frame.Message, Headers: headers("a", "1"), Body: []byte("x\x00\n")}, same("MESSAGE\na:1\ncontent-length:3\n\nx\x00\n\x00\n")},
		{"MESSAGE without a body", frame.Frame{Command: frame.Message}, same("MESSAGE\ncontent-length:0\n\n\x00\n")},
		{"ERROR without a body", frame.Frame{Command: frame.Error}, same("ERROR\ncontent-length:0\n\n\x00\n")},
		{"SEND with a body", frame.Frame{Command: frame.Send, Body: []byte("x")}, same("SEND\ncontent-length:1\n\nx\x00\n")},
		{"SEND without a body", frame.Frame{Command: frame.Send, Headers: headers("content-length", "9")}, same("SEND\n\n\x00\n")},
		{
			"content-length is replaced",
			frame.Frame{Command: frame.Message, Headers: headers("content-length", "9", "a", "1", "content-length", "8"), Body: []byte("x")},
			same("MESSAGE\na:1\ncontent-length:1\n\nx\x00\n"),
		},
		{"no body where none may be", frame.Frame{Command: frame.Ack, Headers: headers("content-length", "1"), Body: []byte("x")}, same("ACK\n\n\x00\n")},
		{"repeated headers", frame.Frame{Command: frame.Ack, Headers: headers("a", "1", "a", "2")}, same("ACK\na:1\na:2\n\n\x00\n")},
		{"unknown command", frame.Frame{Headers: headers("a", "1"), Body: []byte("x")}, same("")},
		{"no command at all", frame.Frame{Command: 200}, same("")},
	} {
		for i, v := range allVersions {
			if got, want := string(frame.Append([]byte("start;"), v, &test.f)), "start;"+test.want[i]; got != want {
				t.Errorf("%s in %v: got %q, want %q", test.name, v, got, want)
			}
		}
		if got, want := string(frame.Append(nil, none, &test.f)), test.want[0]; got != want {
			t.Errorf("%s before a version: got %q, want as in 1.0, %q", test.name, got, want)
		}
	}
}

func same(s string) [3]string { return [3]string{s, s, s} }

// TestAppendToFullSlice leaves out a header that moved the slice before it was found odd.
func TestAppendToFullSlice(t *testing.T) {
	for room := range 12 {
		dst := append(make([]byte, 0, 2+room), "ab"...)
		got := frame.AppendHeader(dst, frame.V11, "name", "\n\n\n\r")
		if !slices.Equal(got, []byte("ab")) {
			t.Errorf("with room for %d: got %q, want %q", room, got, "ab")
		}
	}
}

func TestAppendBody(t *testing.T) {
	if got, want := string(frame.AppendBody([]byte("MESSAGE\n"), []byte("a\x00b"))), "MESSAGE\ncontent-length:3\n\na\x00b\x00\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
