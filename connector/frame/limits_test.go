package frame_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/frame"
)

func TestLimits(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, test := range []struct {
		name    string
		version frame.Version
		limits  frame.Limits
		in      string
		want    *frame.LimitError // Nil: io.EOF.
	}{
		{"headers at the limit", frame.V12, frame.Limits{Headers: 2}, "SEND\na:1\na:2\n\n\x00", nil},
		{"headers above", frame.V12, frame.Limits{Headers: 2}, "SEND\na:1\na:2\na:3\n\n\x00", &frame.LimitError{Name: "headers", Max: 2, Got: 3}},
		{"header line at the limit", frame.V10, frame.Limits{HeaderLine: 9}, "SEND\nnam:" + x(5) + "\n\n\x00", nil},
		{"header line above", frame.V10, frame.Limits{HeaderLine: 9}, "SEND\nnam:" + x(6) + "\n\n\x00", &frame.LimitError{Name: "header_line", Max: 9}},
		{"header line without an end", frame.V10, frame.Limits{HeaderLine: 9}, "SEND\n" + x(10), &frame.LimitError{Name: "header_line", Max: 9}},
		{"header line above, with a NUL behind the limit", frame.V10, frame.Limits{HeaderLine: 9}, "SEND\n" + x(10) + "\x00\n", &frame.LimitError{Name: "header_line", Max: 9}},
		{"the CR of a CRLF does not count", frame.V12, frame.Limits{HeaderLine: 9}, "SEND\r\nnam:" + x(5) + "\r\n\r\n\x00", nil},
		{"a CR that is data counts", frame.V11, frame.Limits{HeaderLine: 9}, "SEND\nnam:" + x(5) + "\r\n\n\x00", &frame.LimitError{Name: "header_line", Max: 9}},
		{"a CR without LF counts", frame.V12, frame.Limits{HeaderLine: 9}, "SEND\nnam:" + x(5) + "\rx", &frame.LimitError{Name: "header_line", Max: 9}},
		{"escapes count as they stand", frame.V12, frame.Limits{HeaderLine: 9}, "SEND\nnam:" + `\c\c\c` + "\n\n\x00", &frame.LimitError{Name: "header_line", Max: 9}},
		{"limits as large as can be", frame.V12, frame.Limits{Headers: math.MaxInt, HeaderLine: math.MaxInt, Passcode: math.MaxInt, Body: math.MaxInt, Frame: math.MaxInt}, "CONNECT\npasscode:1\n\n\x00SEND\ncontent-length:1\n\nx\x00", nil},
		{"a passcode limit as large as can be", none, frame.Limits{HeaderLine: 9, Passcode: math.MaxInt}, "CONNECT\npasscode:1234\n\n\x00", nil},
		{"every line", frame.V12, frame.Limits{HeaderLine: 9}, "SEND\na:1\nb:" + x(7) + "\nc:" + x(8) + "\n\n\x00", &frame.LimitError{Name: "header_line", Max: 9}},
		{"passcode at the limit", none, frame.Limits{HeaderLine: 10, Passcode: 20}, "CONNECT\npasscode:" + x(11) + "\n\n\x00", nil},
		{"passcode above", none, frame.Limits{HeaderLine: 10, Passcode: 20}, "STOMP\npasscode:" + x(12) + "\n\n\x00", &frame.LimitError{Name: "passcode", Max: 20}},
		{"passcode without an end", none, frame.Limits{HeaderLine: 10, Passcode: 20}, "CONNECT\npasscode:" + x(12), &frame.LimitError{Name: "passcode", Max: 20}},
		{"a smaller passcode limit does not matter", none, frame.Limits{HeaderLine: 20, Passcode: 10}, "CONNECT\npasscode:" + x(12) + "\n\n\x00", &frame.LimitError{Name: "header_line", Max: 20}},
		{"passcode limit is for the passcode only", none, frame.Limits{HeaderLine: 10, Passcode: 20}, "CONNECT\npasscodes:" + x(1) + "\n\n\x00", &frame.LimitError{Name: "header_line", Max: 10}},
		{"passcode limit is for CONNECT only", frame.V12, frame.Limits{HeaderLine: 10, Passcode: 20}, "SEND\npasscode:" + x(2) + "\n\n\x00", &frame.LimitError{Name: "header_line", Max: 10}},
		{"passcode limit where the line limit is below its name", none, frame.Limits{HeaderLine: 4, Passcode: 20}, "CONNECT\npasscode:" + x(2) + "\npassword:" + x(2) + "\n\n\x00", &frame.LimitError{Name: "header_line", Max: 4}},
		{"sized body at the limit", frame.V12, frame.Limits{Body: 5}, "SEND\ncontent-length:5\n\n12345\x00", nil},
		{"sized body above, without the body", frame.V12, frame.Limits{Body: 5}, "SEND\ncontent-length:6\n\n", &frame.LimitError{Name: "body", Max: 5, Got: 6}},
		{"1e8 octets", frame.V12, frame.Limits{Body: 5}, "SEND\ncontent-length:100000000\n\n", &frame.LimitError{Name: "body", Max: 5, Got: 1e8}},
		{"2^63 octets", frame.V12, frame.Limits{Body: 5}, "SEND\ncontent-length:9223372036854775808\n\n", &frame.LimitError{Name: "body", Max: 5}},
		{"body at the limit", frame.V12, frame.Limits{Body: 5}, "SEND\n\n12345\x00", nil},
		{"body above", frame.V12, frame.Limits{Body: 5}, "SEND\n\n123456\x00", &frame.LimitError{Name: "body", Max: 5}},
		{"body without an end", frame.V12, frame.Limits{Body: 5}, "SEND\n\n123456", &frame.LimitError{Name: "body", Max: 5}},
		{"body of MESSAGE", frame.V12, frame.Limits{Body: 5}, "MESSAGE\n\n123456", &frame.LimitError{Name: "body", Max: 5}},
		{"dropped octets at the limit", frame.V12, frame.Limits{HeaderLine: 5, Body: 9}, "ACK\n\n12345\x00", nil},
		{"dropped octets above", frame.V12, frame.Limits{HeaderLine: 5, Body: 9}, "ACK\n\n123456\x00", &frame.LimitError{Name: "header_line", Max: 5, Bodiless: frame.Ack}},
		{"frame at the limit", none, frame.Limits{Frame: 14}, "\n\nSEND\na:1\n\n123\x00", nil},
		{"frame above", none, frame.Limits{Frame: 14}, "SEND\na:1\n\n1234\x00", &frame.LimitError{Name: "frame_before_connect", Max: 14}},
		{"frame without an end", none, frame.Limits{Frame: 14}, "SEND\na:12345678", &frame.LimitError{Name: "frame_before_connect", Max: 14}},
		{"frame without an end that fills the limit", none, frame.Limits{Frame: 14}, "SEND\na:1234567", &frame.LimitError{Name: "frame_before_connect", Max: 14}},
		{"frame full of headers", none, frame.Limits{Frame: 14}, "SEND\n" + strings.Repeat("a:1\n", 9), &frame.LimitError{Name: "frame_before_connect", Max: 14}},
		{"frame of a sized body, without the body", none, frame.Limits{Frame: 40}, "SEND\ncontent-length:17\n\n", &frame.LimitError{Name: "frame_before_connect", Max: 40, Got: 42}},
		{"frame of a sized body, one octet above", none, frame.Limits{Frame: 40}, "SEND\ncontent-length:16\n\n", &frame.LimitError{Name: "frame_before_connect", Max: 40, Got: 41}},
		{"frame of a sized body at the limit", none, frame.Limits{Frame: 40}, "SEND\ncontent-length:15\n\n" + x(15) + "\x00", nil},
		{"line ends between frames are of no frame", none, frame.Limits{Frame: 14}, strings.Repeat("\n", 99) + "SEND\n\n\x00" + strings.Repeat("\r\n", 99), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := checkSplits(t, test.version, test.limits, []byte(test.in))
			if test.want == nil {
				if !errors.Is(got.err, io.EOF) {
					t.Errorf("got %v, want no error", got.err)
				}
				return
			}
			var limit *frame.LimitError
			if !errors.As(got.err, &limit) || *limit != *test.want {
				t.Errorf("got %v, want %v", got.err, test.want)
			}
		})
	}
}

func TestLimitErrorText(t *testing.T) {
	for _, test := range []struct {
		err  frame.LimitError
		want string
	}{
		{frame.LimitError{Name: "headers", Max: 64, Got: 65}, "limit headers exceeded: 65 headers, at most 64 are allowed"},
		{frame.LimitError{Name: "body", Max: 10, Got: 11}, "limit body exceeded: 11 octets, at most 10 are allowed"},
		{frame.LimitError{Name: "header_line", Max: 10}, "limit header_line exceeded: at most 10 octets are allowed"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestLimitsCountPerFrame sends far more than each limit, spread over frames that keep to it.
func TestLimitsCountPerFrame(t *testing.T) {
	one := "SEND\naa:1\nbb:2\n\n12345\x00\n"
	l := frame.Limits{Headers: 2, HeaderLine: 4, Body: 5, Frame: len(one) - 1}
	got := decodeAll(frame.V12, l, octetByOctet([]byte(strings.Repeat(one, 100))))
	if !errors.Is(got.err, io.EOF) || len(got.frames) != 100 {
		t.Errorf("got %d frames and %v, want 100 and %v", len(got.frames), got.err, io.EOF)
	}
}

func TestSetLimitsBetweenFrames(t *testing.T) {
	d := frame.NewDecoder(strings.NewReader("CONNECT\na:1\n\n\x00SEND\na:1\n\n12345\x00SEND\na:1\n\n12345\x00"), frame.Limits{Frame: 14})
	var f frame.Frame
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	d.SetLimits(frame.Limits{Body: 5})
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	d.SetLimits(frame.Limits{Body: 4})
	var limit *frame.LimitError
	if err := d.Decode(&f); !errors.As(err, &limit) || limit.Name != "body" {
		t.Errorf("got %v, want the body limit", err)
	}
}

// counted counts what is read from an endless reader and gives n octets at most in one read.
type counted struct {
	r    io.Reader
	n    int
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p[:min(len(p), c.n)])
	c.read += n
	return n, err
}

// TestHostileStreamsReadLittle sends what never ends: no more is read than the limit and 4 KiB,
// and no more memory is held.
func TestHostileStreamsReadLittle(t *testing.T) {
	limits := frame.Limits{Headers: 64, HeaderLine: 8 << 10, Passcode: 16 << 10, Body: 1 << 20}
	before := limits
	before.Frame = 32 << 10
	for _, test := range []struct {
		name   string
		limits frame.Limits
		start  string
		repeat string
		limit  int
		want   string
	}{
		{"command", limits, "", "A", 0, ""},
		{"header line", limits, "SEND\na:", "A", 8 << 10, "header_line"},
		{"passcode", limits, "CONNECT\npasscode:", "A", 16 << 10, "passcode"},
		{"headers", limits, "SEND\n", "a:1\n", 64 * 4, "headers"},
		{"long headers", limits, "SEND\n", "a:" + strings.Repeat("1", 8000) + "\n", 64 * 10 << 10, "headers"},
		{"long headers before CONNECT", before, "CONNECT\n", "a:" + strings.Repeat("1", 8000) + "\n", 32 << 10, "frame_before_connect"},
		{"body", limits, "SEND\n\n", "A", 1 << 20, "body"},
		{"body before CONNECT", before, "CONNECT\n\n", "A", 8 << 10, "header_line"},
		{"body of SEND before CONNECT", before, "SEND\n\n", "A", 32 << 10, "frame_before_connect"},
		{"dropped body", limits, "ACK\n\n", "A", 8 << 10, "header_line"},
		{"stated gigabyte", limits, "SEND\ncontent-length:1000000000\n\n", "A", 0, "body"},
	} {
		for _, chunk := range []int{1, 1000, 1 << 30} {
			if chunk == 1 && test.limit > 64<<10 {
				continue // It reads the same, slowly.
			}
			r := &counted{r: io.MultiReader(strings.NewReader(test.start), &endless{octets: []byte(test.repeat)}), n: chunk}
			d := frame.NewDecoder(r, test.limits)
			var f frame.Frame
			err := d.Decode(&f)
			var limit *frame.LimitError
			var syntax *frame.SyntaxError
			if test.want == "" && !errors.As(err, &syntax) {
				t.Errorf("%s: got %v, want a SyntaxError", test.name, err)
			}
			if test.want != "" && (!errors.As(err, &limit) || limit.Name != test.want) {
				t.Errorf("%s: got %v, want limit %q", test.name, err, test.want)
			}
			most := max(test.limit, len(test.start)) + 4<<10
			if r.read > most {
				t.Errorf("%s in reads of %d: read %d octets, want at most %d", test.name, chunk, r.read, most)
			}
			if d.BufferSize() > most {
				t.Errorf("%s in reads of %d: holds %d octets, want at most %d", test.name, chunk, d.BufferSize(), most)
			}
		}
	}
}

// TestStatedLengthAllocatesNothing states a length that is allowed and sends little of it.
func TestStatedLengthAllocatesNothing(t *testing.T) {
	for _, l := range []frame.Limits{{}, {Body: 1 << 30}} {
		for _, sent := range []int{0, 5000, 100_000} {
			in := io.MultiReader(strings.NewReader("SEND\ncontent-length:250000000\n\n"), bytes.NewReader(make([]byte, sent)))
			d := frame.NewDecoder(in, l)
			var f frame.Frame
			if err := d.Decode(&f); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("got %v, want %v", err, io.ErrUnexpectedEOF)
			}
			if got, most := d.BufferSize(), max(4<<10, 2*sent+4<<10); got > most {
				t.Errorf("%d octets sent, %v: holds %d octets, want at most %d", sent, l, got, most)
			}
		}
	}
}

// TestNothingKeepsTheLastFrame: while a frame is read, what the one before was in is free, whoever still has that frame.
func TestNothingKeepsTheLastFrame(t *testing.T) {
	var in bytes.Buffer
	in.WriteString("SEND\na:b\n\nx\x00SEND\n\n" + strings.Repeat("x", 100_000))
	d := frame.NewDecoder(&in, frame.Limits{})
	var f frame.Frame
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	headers := f.Headers
	if err := d.Decode(&f); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if headers[0].Name != nil || headers[0].Value != nil || f.Body != nil {
		t.Errorf("%q and %q are kept", headers, f.Body)
	}
}

// TestEndlessHeartbeats sends nothing but line ends: they take time, and no memory.
func TestEndlessHeartbeats(t *testing.T) {
	for _, eol := range []string{"\n", "\r\n"} {
		r := io.MultiReader(io.LimitReader(&endless{octets: []byte(eol)}, 10<<20), strings.NewReader("ACK\n\n\x00"))
		d := frame.NewDecoder(r, frame.Limits{Frame: 100})
		var f frame.Frame
		if err := d.Decode(&f); err != nil || f.Command != frame.Ack {
			t.Errorf("%q: got %s, %v, want the ACK behind them", eol, render(&f), err)
		}
		if got := d.BufferSize(); got != 4<<10 {
			t.Errorf("%q: holds %d octets, want %d", eol, got, 4<<10)
		}
	}
}

// TestOctetByOctetIsLinear reads large frames in crumbs. A decoder that looks again at what it has
// seen would take minutes for them.
func TestOctetByOctetIsLinear(t *testing.T) {
	if raceEnabled {
		t.Skip("times under the race detector say nothing")
	}
	const large = 2 << 20
	var in bytes.Buffer
	in.WriteString("SEND\na:" + strings.Repeat("v", large) + "\n" + strings.Repeat("a:"+strings.Repeat("v", 100)+"\n", 10_000))
	in.WriteString("\n" + strings.Repeat("b", large) + "\x00")
	in.WriteString("SEND\ncontent-length:2097152\n\n" + strings.Repeat("b", large) + "\x00")
	begun := time.Now()
	d := frame.NewDecoder(&counted{r: &in, n: 1}, frame.Limits{})
	var f frame.Frame
	for range 2 {
		if err := d.Decode(&f); err != nil || len(f.Body) != large {
			t.Fatalf("got %d octets of body and %v, want %d", len(f.Body), err, large)
		}
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("took %v, want a time that grows with the length only", took)
	}
}
