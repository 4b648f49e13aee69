package bench_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

// cuts are ways to get the same octets in other reads.
var cuts = []struct {
	name string
	cut  func(io.Reader) io.Reader
}{
	{"at once", func(r io.Reader) io.Reader { return r }},
	{"octet by octet", iotest.OneByteReader},
	{"in halves", iotest.HalfReader},
	{"anywhere", func(r io.Reader) io.Reader { return &randomReader{r, rand.New(rand.NewPCG(1, 2))} }},
}

// randomReader reads 1 to 700 octets at a time.
type randomReader struct {
	r   io.Reader
	rnd *rand.Rand
}

func (r *randomReader) Read(p []byte) (int, error) {
	return r.r.Read(p[:min(len(p), 1+r.rnd.IntN(700))])
}

// messageFrame is a MESSAGE as a server may send it.
func messageFrame(number int, headers, body string) string {
	return fmt.Sprintf("MESSAGE\nsubscription:0\nmessage-id:1-%d\nack:1-%d\ndestination:/topic/a\n%scontent-length:%d\n\n%s\x00\n",
		number, number, headers, len(body), body)
}

func TestSTOMPScanner(t *testing.T) {
	fixed := strings.Repeat("x", bodySize)
	tricky := "\x00\nMESSAGE\ncontent-length:256\n\n\x00"
	var octets strings.Builder
	var ids []string
	const rounds = 1_100
	for n := range rounds {
		octets.WriteString(messageFrame(3*n, "", fixed))
		octets.WriteString("RECEIPT\nreceipt-id:1\n\n\x00\n\n\n") // Heart-beats behind it.
		octets.WriteString(messageFrame(3*n+1, "x:content-length\n", tricky))
		octets.WriteString(messageFrame(3*n+2, "", ""))
		ids = append(ids, fmt.Sprintf("1-%d", 3*n), fmt.Sprintf("1-%d", 3*n+1), fmt.Sprintf("1-%d", 3*n+2))
	}
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			scan := newSTOMPScanner()
			var got []string
			scan.onMessage = func(head []byte) { got = append(got, string(headerValue(head, "\nack:"))) }
			r := c.cut(strings.NewReader(octets.String()))
			messages, receipts := 0, 0
			for {
				m, n, err := scan.fill(r)
				messages, receipts = messages+m, receipts+n
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if messages != 3*rounds || receipts != rounds {
				t.Errorf("got %d messages and %d receipts, want %d and %d", messages, receipts, 3*rounds, rounds)
			}
			for i := range min(len(got), len(ids)) {
				if got[i] != ids[i] {
					t.Fatalf("message %d: got ack %q, want %q", i, got[i], ids[i])
				}
			}
		})
	}
}

func TestSTOMPScannerFaults(t *testing.T) {
	good := messageFrame(1, "", "body")
	for _, tt := range []struct{ name, octets string }{
		{"error", good + "ERROR\nmessage:no\ncontent-length:0\n\n\x00\n"},
		{"length too small", good + strings.Replace(good, "content-length:4", "content-length:3", 1)},
		{"length no number", good + strings.Replace(good, "content-length:4", "content-length:-", 1)},
		{"no length", good + strings.Replace(good, "content-length:4\n", "", 1)},
		{"too large", good + messageFrame(2, "", strings.Repeat("x", readSize))},
	} {
		scan := newSTOMPScanner()
		r := strings.NewReader(tt.octets)
		messages, err := 0, error(nil)
		for err == nil {
			var m int
			m, _, err = scan.fill(r)
			messages += m
		}
		if messages != 1 || errors.Is(err, io.EOF) {
			t.Errorf("%s: got %d messages and %v, want 1 and a fault", tt.name, messages, err)
		}
	}
}

func TestNATSScanner(t *testing.T) {
	fixed := strings.Repeat("x", bodySize)
	tricky := "\r\nMSG a 1 256\r\nPING\r\n"
	var octets strings.Builder
	octets.WriteString("INFO {\"x\":1}\r\n")
	const rounds = 1_100
	for n := range rounds {
		fmt.Fprintf(&octets, "MSG a 1 %d\r\n%s\r\n", len(fixed), fixed)
		fmt.Fprintf(&octets, "MSG a 1 %d\r\n%s\r\n", len(fixed), fixed)
		octets.WriteString("PING\r\n")
		fmt.Fprintf(&octets, "MSG a.%d 1 _INBOX.1 %d\r\n%s\r\n", n, len(tricky), tricky)
		octets.WriteString("MSG a 1 0\r\n\r\nPONG\r\n")
	}
	want := natsCount{messages: 4 * rounds, pings: rounds, pongs: rounds}
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			scan := newNATSScanner()
			r := c.cut(strings.NewReader(octets.String()))
			var got natsCount
			for {
				n, err := scan.fill(r)
				got.messages, got.pings, got.pongs = got.messages+n.messages, got.pings+n.pings, got.pongs+n.pongs
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	if _, err := newNATSScanner().fill(strings.NewReader("-ERR 'no'\r\n")); err == nil {
		t.Error("-ERR: got no error, want one")
	}
}

func TestSendFrames(t *testing.T) {
	frames := sendFrames(3, "/topic/a", "receipt:1\n")
	if n := bytes.Count(frames, []byte("SEND\ndestination:/topic/a\nreceipt:1\ncontent-length:256\n\n")); n != 3 || len(frames)%3 != 0 {
		t.Errorf("got %d frames in %d octets, want 3 of equal size", n, len(frames))
	}
}
