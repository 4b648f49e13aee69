package frame_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

// connection is what one client wrote on one connection, a piece for each read or WebSocket message.
type connection [][]byte

// captures reads testdata/c2s.tsv, recorded from real clients: name of the capture, seconds, kind,
// number of octets, the octets as a Go string. A new CONNECT or STOMP begins a connection.
func captures(t *testing.T) map[string][]connection {
	t.Helper()
	file, err := os.Open("testdata/c2s.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all := map[string][]connection{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if fields[0] == "capture" {
			continue
		}
		text, err := strconv.Unquote(fields[4])
		if err != nil || strconv.Itoa(len(text)) != fields[3] {
			t.Fatalf("%s: got %d octets, %v, want %s", fields[0], len(text), err, fields[3])
		}
		list := all[fields[0]]
		if len(list) == 0 || strings.HasPrefix(text, "CONNECT\n") || strings.HasPrefix(text, "STOMP\n") {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], []byte(text))
		all[fields[0]] = list
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// defaultLimits are those of a server out of the box, after CONNECT.
var defaultLimits = frame.Limits{Headers: 64, HeaderLine: 8 << 10, Passcode: 16 << 10, Body: 4 << 20}

// serve decodes as a server does: smaller limits before CONNECT, then the version agreed on, or,
// to look at the framing alone, none.
func serve(t *testing.T, list [][]byte, negotiate bool) outcome {
	t.Helper()
	limits := defaultLimits
	limits.Frame = 32 << 10
	d := frame.NewDecoder(&pieces{list: slices.Clone(list), err: io.EOF}, limits)
	var o outcome
	var f frame.Frame
	for {
		if o.err = d.Decode(&f); o.err != nil {
			o.rest = render(&f)
			return o
		}
		if f.Command == frame.Connect || f.Command == frame.Stomp {
			v, ok := frame.Negotiate(f.Get("accept-version"))
			if !ok || len(o.frames) > 0 {
				t.Errorf("got %s as frame %d, want a version in common in the first", render(&f), len(o.frames))
			}
			if negotiate {
				d.SetVersion(v)
			}
			d.SetLimits(defaultLimits)
		}
		o.frames = append(o.frames, render(&f))
		o.clones = append(o.clones, f.Clone())
	}
}

const (
	noColon   = `header line "f" of SEND has no colon`
	undefined = `undefined escape "\d" in header "x-bs" of SEND; STOMP `
)

// refused has the captures in which a SEND must be refused, and nothing before it: with the
// framing alone, and with the version that was agreed on. Their clients write a header value with
// a raw LF, or a raw backslash before it.
var refused = map[string]struct{ framing, negotiated string }{
	"gozirra-session":         {"", undefined + "1.1 was agreed on"},
	"netstomp-1.2-session":    {noColon, noColon},
	"netstomp-def-session":    {noColon, noColon},
	"phpext-1.2-session-lf":   {noColon, undefined + "1.2 was agreed on"},
	"phpext-def-session-nolf": {noColon, noColon},
	"rubystomp-1.0-session":   {noColon, noColon},
	"stompjs2-tcp-session":    {noColon, undefined + "1.1 was agreed on"},
	"stomppy8-1.0-session":    {noColon, noColon},
	"webstomp-ws-session":     {noColon, noColon},
	"webstomp-ws-v12-session": {noColon, undefined + "1.2 was agreed on"},
}

// reconnecting lists the captures with several connections.
var reconnecting = map[string]int{
	"netstomp-error": 2, "rubystomp-error-reliable": 2, "stompjs7-ws-connect-refused": 5, "stompjs7-ws-error": 2,
}

func TestReplayOfRealClients(t *testing.T) {
	all := captures(t)
	if len(all) != 62 {
		t.Errorf("got %d captures, want 62", len(all))
	}
	for name, list := range all {
		t.Run(name, func(t *testing.T) {
			if got, want := len(list), max(1, reconnecting[name]); got != want {
				t.Fatalf("got %d connections, want %d", got, want)
			}
			for _, c := range list {
				checkReplay(t, c, false, refused[name].framing)
				checkReplay(t, c, true, refused[name].negotiated)
			}
		})
	}
}

// checkReplay decodes as it came, whole and octet by octet, and asserts how it ends: with a
// SyntaxError of that text in a SEND, or, if it is empty, with every octet accounted for.
func checkReplay(t *testing.T, c connection, negotiate bool, text string) {
	t.Helper()
	octets := bytes.Join(c, nil)
	got := serve(t, c, negotiate)
	for _, cut := range [][][]byte{{octets}, octetByOctet(octets)} {
		if again := serve(t, cut, negotiate); again.String() != got.String() {
			t.Errorf("in %d pieces: got %v, want as it came: %v", len(cut), again, got)
		}
	}
	for _, f := range got.clones {
		if f.Command == frame.Send && f.Get("destination") == "" {
			t.Errorf("got %s, want a destination", render(&f))
		}
		if n, ok := f.Lookup("content-length"); ok && string(n) != strconv.Itoa(len(f.Body)) {
			t.Errorf("got a body of %d octets, want %s", len(f.Body), n)
		}
	}
	if text != "" {
		var syntax *frame.SyntaxError
		if !errors.As(got.err, &syntax) || syntax.Text != text || !strings.HasPrefix(got.rest, "SEND{") {
			t.Errorf("got %v, want %q in a SEND", got, text)
		}
		return
	}
	nuls := len(got.frames)
	for _, f := range got.clones {
		nuls += bytes.Count(f.Body, []byte{0})
	}
	if want := bytes.Count(octets, []byte{0}); !errors.Is(got.err, io.EOF) || nuls != want {
		t.Errorf("got %v after %d frames and NULs in bodies, want %v after %d", got.err, nuls, io.EOF, want)
	}
}
