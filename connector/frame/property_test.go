package frame_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

// readBack is what a decoder in version v must make of f as Append writes it: the headers that v
// can represent, a content-length where there is one to be, no body where none may be.
func readBack(v frame.Version, f frame.Frame) frame.Frame {
	switch f.Command {
	case frame.Connect, frame.Stomp, frame.Connected:
		v = frame.V10
	}
	want := frame.Frame{Command: f.Command}
	for _, h := range f.Headers {
		if string(h.Name) != "content-length" && frame.Representable(v, h.Name, h.Value) {
			want.Headers = append(want.Headers, h)
		}
	}
	switch {
	case f.Command == frame.Message, f.Command == frame.Error, f.Command == frame.Send && len(f.Body) > 0:
		want.Headers = append(want.Headers, headers("content-length", strconv.Itoa(len(f.Body)))...)
		want.Body = f.Body
	}
	return want
}

// randomOctets draws octets that matter to the codec more often than others.
func randomOctets(rng *rand.Rand, most int) []byte {
	const odd = "\\\\\\nrc::\n\r\x00 \t\xff\xc3"
	b := make([]byte, rng.IntN(most+1))
	plain := rng.IntN(2) == 0
	for i := range b {
		switch {
		case plain:
			b[i] = 'a' + byte(rng.IntN(26))
		case rng.IntN(3) == 0:
			b[i] = byte(rng.IntN(256))
		default:
			b[i] = odd[rng.IntN(len(odd))]
		}
	}
	return b
}

func randomFrame(rng *rand.Rand) frame.Frame {
	f := frame.Frame{Command: frame.Connect + frame.Command(rng.IntN(int(frame.Error)))}
	for range rng.IntN(6) {
		f.Headers = append(f.Headers, frame.Header{Name: randomOctets(rng, 8), Value: randomOctets(rng, 20)})
	}
	f.Body = randomOctets(rng, 50)
	if rng.IntN(50) == 0 {
		f.Body = randomOctets(rng, 200_000)
	}
	return f
}

// randomCuts cuts octets into pieces of random lengths.
func randomCuts(rng *rand.Rand, octets []byte) [][]byte {
	var list [][]byte
	for len(octets) > 0 {
		n := 1 + rng.IntN(min(len(octets), 1<<rng.IntN(18)))
		list = append(list, octets[:n])
		octets = octets[n:]
	}
	return list
}

func TestDecodeUndoesAppend(t *testing.T) {
	for _, v := range append([]frame.Version{none}, allVersions...) {
		t.Run(v.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(v), 2026))
			left, kept := 0, 0
			for range 300 {
				var octets []byte
				var want []string
				for range 1 + rng.IntN(10) {
					f := randomFrame(rng)
					octets = frame.Append(octets, v, &f)
					back := readBack(v, f)
					want = append(want, render(&back))
					left += len(f.Headers)
					kept += len(back.Headers)
				}
				got := decodeAll(v, frame.Limits{}, randomCuts(rng, octets))
				if !errors.Is(got.err, io.EOF) || len(got.frames) != len(want) {
					t.Fatalf("got %d frames and %v, want %d and %v, of %q", len(got.frames), got.err, len(want), io.EOF, octets)
				}
				for i := range want {
					if got.frames[i] != want[i] {
						t.Fatalf("got %s, want %s", got.frames[i], want[i])
					}
				}
			}
			if kept < left/4 {
				t.Errorf("%d of %d headers were written, want enough for the test to mean something", kept, left)
			}
		})
	}
}
