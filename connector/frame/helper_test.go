package frame_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

// none is a connection that has not agreed on a version.
const none = frame.Version(0)

var allVersions = []frame.Version{frame.V10, frame.V11, frame.V12}

// headers makes headers of names and values in turn.
func headers(namesAndValues ...string) []frame.Header {
	var h []frame.Header
	for i := 0; i < len(namesAndValues); i += 2 {
		h = append(h, frame.Header{Name: []byte(namesAndValues[i]), Value: []byte(namesAndValues[i+1])})
	}
	return h
}

// pieces gives one piece a read, then err.
type pieces struct {
	list [][]byte
	err  error
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.list) == 0 {
		return 0, p.err
	}
	n := copy(b, p.list[0])
	if p.list[0] = p.list[0][n:]; len(p.list[0]) == 0 {
		p.list = p.list[1:]
	}
	return n, nil
}

// octetByOctet cuts into single octets.
func octetByOctet(octets []byte) [][]byte {
	return slices.Collect(slices.Chunk(octets, 1))
}

// outcome is all that a decoder made of some input.
type outcome struct {
	frames []string // As render gives them.
	clones []frame.Frame
	rest   string // What the frame held when decoding ended.
	err    error
}

func (o outcome) String() string {
	return fmt.Sprintf("%s, then %s and %v", strings.Join(o.frames, " "), o.rest, o.err)
}

// decodeAll decodes until an error.
func decodeAll(v frame.Version, l frame.Limits, list [][]byte) outcome {
	d := frame.NewDecoder(&pieces{list: list, err: io.EOF}, l)
	if v != none {
		d.SetVersion(v)
	}
	var o outcome
	var f frame.Frame
	for {
		if o.err = d.Decode(&f); o.err != nil {
			o.rest = render(&f)
			return o
		}
		o.frames = append(o.frames, render(&f))
		o.clones = append(o.clones, f.Clone())
	}
}

// render shows a frame as SEND{"name":"value"}"body".
func render(f *frame.Frame) string {
	var b strings.Builder
	b.WriteString(f.Command.String())
	b.WriteByte('{')
	for i, h := range f.Headers {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%q:%q", h.Name, h.Value)
	}
	fmt.Fprintf(&b, "}%q", f.Body)
	return b.String()
}

// checkSplits decodes whole, octet by octet and cut in two at each place, and reports
// outcomes that differ from the first.
func checkSplits(t *testing.T, v frame.Version, l frame.Limits, octets []byte) outcome {
	t.Helper()
	want := decodeAll(v, l, [][]byte{octets})
	compare := func(how string, list [][]byte) {
		t.Helper()
		if got := decodeAll(v, l, list); got.String() != want.String() {
			t.Errorf("%s: got %v, want as read at once: %v", how, got, want)
		}
	}
	compare("octet by octet", octetByOctet(octets))
	for i := 1; i < len(octets); i++ {
		compare(fmt.Sprintf("cut at %d", i), [][]byte{octets[:i], octets[i:]})
	}
	return want
}
