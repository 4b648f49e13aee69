package field_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

// piece is what a client wrote at once: to a TCP socket, or as one WebSocket message.
type piece struct {
	kind   string // tcp, text or binary
	octets []byte
}

// stream is what a client wrote on one connection.
type stream struct {
	name   string
	pieces []piece
}

func (s *stream) octets() []byte {
	var all []byte
	for _, p := range s.pieces {
		all = append(all, p.octets...)
	}
	return all
}

// streams reads the recordings of real clients (connector/frame replays them through the decoder alone): name of the
// capture, seconds, kind, number of octets, the octets as a Go string. A new CONNECT or STOMP begins a connection.
func streams(t *testing.T) []*stream {
	t.Helper()
	file, err := os.Open("../../connector/frame/testdata/c2s.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list []*stream
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if fields[0] == "capture" {
			continue
		}
		text, err := strconv.Unquote(fields[4])
		if err != nil {
			t.Fatalf("%s: %v", fields[0], err)
		}
		begins := strings.HasPrefix(text, "CONNECT\n") || strings.HasPrefix(text, "STOMP\n")
		if last := len(list) - 1; last < 0 || list[last].name != fields[0] || begins {
			list = append(list, &stream{name: fields[0]})
		}
		s := list[len(list)-1]
		s.pieces = append(s.pieces, piece{fields[2], []byte(text)})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// answer is a frame by which the server answers, other than a MESSAGE.
type answer struct{ command, about string }

// expected is what a stream asks for: the answers in their order, the bodies that may come back in theirs, whether it
// ends with a DISCONNECT, and the transactions' SENDs at their COMMIT. It reads the stream with the decoder, which has
// tests of its own.
type expected struct {
	answers      []answer
	sent         []string // bodies to the destination that it subscribes to
	disconnects  bool
	acked        int // how many messages its ACKs settle
	explicitAcks bool
}

func expect(t *testing.T, octets []byte) expected {
	t.Helper()
	d := frame.NewDecoder(bytes.NewReader(octets), frame.Limits{})
	var e expected
	var f frame.Frame
	open := map[string][]string{}
	subscribed := ""
	for {
		err := d.Decode(&f)
		var syntax *frame.SyntaxError
		switch {
		case errors.As(err, &syntax):
			e.answers = append(e.answers, answer{"ERROR", syntax.Text})
			return e
		case errors.Is(err, io.EOF):
			return e
		case err != nil:
			t.Fatal(err)
		}
		switch f.Command {
		case frame.Connect, frame.Stomp:
			v, _ := frame.Negotiate(f.Get("accept-version"))
			d.SetVersion(v)
			e.answers = append(e.answers, answer{"CONNECTED", v.String()})
			continue
		case frame.Subscribe:
			subscribed = f.Get("destination")
			e.explicitAcks = f.Get("ack") != "" && f.Get("ack") != "auto"
		case frame.Send:
			if id, in := f.Lookup("transaction"); in {
				open[string(id)] = append(open[string(id)], string(f.Body))
			} else if subscribed == "" || f.Get("destination") == subscribed {
				e.sent = append(e.sent, string(f.Body))
			}
		case frame.Commit:
			e.sent = append(e.sent, open[f.Get("transaction")]...)
		case frame.Ack:
			e.acked++
		case frame.Disconnect:
			e.disconnects = true
		default:
		}
		if id, asked := f.Lookup("receipt"); asked {
			e.answers = append(e.answers, answer{"RECEIPT", string(id)})
		}
	}
}

// settling finds ACK and NACK frames, each at the start of a frame.
var settling = regexp.MustCompile(`(?:^|\x00\n*)(N?ACK\n[^\x00]*\x00)`)

// recorded finds the ids that the recorder gave to its one message.
var recorded = regexp.MustCompile(`(\n(?:id|message-id|ack):)[am]-1\b`)

// segment is a part of a stream that begins where the client must have got a message before.
type segment struct {
	settles int // the segment begins with the settling of that message, counted from 1; 0: of none
	pieces  []piece
}

// segments cuts a stream in front of each ACK and NACK.
func (s *stream) segments() []segment {
	octets := s.octets()
	cuts := []int{0}
	for _, m := range settling.FindAllSubmatchIndex(octets, -1) {
		cuts = append(cuts, m[2])
	}
	list := make([]segment, len(cuts))
	at := 0
	for _, p := range s.pieces {
		for len(p.octets) > 0 {
			n := len(cuts) - 1
			for cuts[n] > at {
				n--
			}
			size := len(p.octets)
			if n+1 < len(cuts) {
				size = min(size, cuts[n+1]-at)
			}
			list[n].settles = n
			list[n].pieces = append(list[n].pieces, piece{p.kind, p.octets[:size]})
			p.octets = p.octets[size:]
			at += size
		}
	}
	return list
}

// settlingWith returns the segment with the id that the server has given to the message.
func (s segment) settlingWith(id string) segment {
	if s.settles == 0 {
		return s
	}
	// The frame may lie in several pieces: it is put into the first one whole.
	var all []byte
	for _, p := range s.pieces {
		all = append(all, p.octets...)
	}
	end := bytes.IndexByte(all, 0) + 1
	head := recorded.ReplaceAll(all[:end], []byte("${1}"+id))
	out := segment{settles: s.settles, pieces: []piece{{s.pieces[0].kind, head}}}
	for _, p := range s.pieces {
		skip := min(end, len(p.octets))
		end -= skip
		if rest := p.octets[skip:]; len(rest) > 0 {
			out.pieces = append(out.pieces, piece{p.kind, rest})
		}
	}
	return out
}

// inWholes joins the pieces of each kind that follow each other; singly cuts them into octets.
func inWholes(pieces []piece) []piece {
	var out []piece
	for _, p := range pieces {
		if last := len(out) - 1; last >= 0 && out[last].kind == p.kind {
			out[last].octets = append(out[last].octets, p.octets...)
		} else {
			out = append(out, piece{p.kind, bytes.Clone(p.octets)})
		}
	}
	return out
}

func singly(pieces []piece) []piece {
	var out []piece
	for _, p := range pieces {
		for _, b := range p.octets {
			kind := p.kind
			if kind == "text" && b >= 0x80 {
				kind = "binary" // A text message is UTF-8.
			}
			out = append(out, piece{kind, []byte{b}})
		}
	}
	return out
}

func asRecorded(pieces []piece) []piece { return pieces }
