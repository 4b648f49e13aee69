package frame_test

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

const kib = 1 << 10

// sendOf is a SEND with a sized body of n octets.
func sendOf(n int) []byte {
	return []byte("SEND\ncontent-length:" + strconv.Itoa(n) + "\n\n" + strings.Repeat("b", n) + "\x00\n")
}

// source gives what it is told to, as much of it as there is room for, one piece a read.
type source struct{ pieces }

func (s *source) add(octets []byte) { s.list = append(s.list, octets) }

func decodeNext(t *testing.T, d *frame.Decoder, f *frame.Frame, body int) {
	t.Helper()
	if err := d.Decode(f); err != nil {
		t.Fatal(err)
	}
	if len(f.Body) != body {
		t.Fatalf("got a body of %d octets, want %d", len(f.Body), body)
	}
}

func TestBufferGrowsForBulkAndShrinksWhenIdle(t *testing.T) {
	s := &source{}
	d := frame.NewDecoder(s, frame.Limits{})
	var f frame.Frame
	if got := d.BufferSize(); got != 4*kib {
		t.Errorf("at the start: got %d octets, want %d", got, 4*kib)
	}
	s.add([]byte(strings.Repeat(string(sendOf(100)), 3000)))
	for range 3000 {
		decodeNext(t, d, &f, 100)
	}
	if got := d.BufferSize(); got != 64*kib {
		t.Errorf("after 400 KiB in full reads: got %d octets, want %d", got, 64*kib)
	}
	for i := range 20 {
		s.add(sendOf(10))
		decodeNext(t, d, &f, 10)
		if got := d.BufferSize(); i < 5 && got != 64*kib {
			t.Errorf("after %d small reads: got %d octets, want still %d", i+1, got, 64*kib)
		}
	}
	if got := d.BufferSize(); got != 4*kib {
		t.Errorf("after 20 small reads: got %d octets, want %d", got, 4*kib)
	}
}

func TestBufferStaysSmallForSmallReads(t *testing.T) {
	s := &source{}
	d := frame.NewDecoder(s, frame.Limits{})
	var f frame.Frame
	for range 1000 {
		s.add(sendOf(3000))
		decodeNext(t, d, &f, 3000)
	}
	if got := d.BufferSize(); got != 4*kib {
		t.Errorf("got %d octets, want %d", got, 4*kib)
	}
}

func TestBufferShrinksAfterALargeFrame(t *testing.T) {
	s := &source{}
	d := frame.NewDecoder(s, frame.Limits{})
	var f frame.Frame
	for _, large := range []int{100 * kib, 1 << 20, 3_333_333} {
		s.add(sendOf(large))
		decodeNext(t, d, &f, large)
		if got := d.BufferSize(); got < large || got > large+8*kib {
			t.Errorf("with a frame of %d: got %d octets, want little more than the frame", large, got)
		}
		s.add(sendOf(10))
		decodeNext(t, d, &f, 10)
		if got := d.BufferSize(); got > 64*kib {
			t.Errorf("after a frame of %d: got %d octets, want at most %d", large, got, 64*kib)
		}
	}
	for range 10 {
		s.add([]byte("\n"))
	}
	s.add(sendOf(10))
	decodeNext(t, d, &f, 10)
	if got := d.BufferSize(); got != 4*kib {
		t.Errorf("after heart-beats: got %d octets, want %d", got, 4*kib)
	}
}

// TestBufferShrinksBeforeItWaits lets a decoder wait for the frame behind a large one.
func TestBufferShrinksBeforeItWaits(t *testing.T) {
	s := &source{}
	s.err = io.EOF
	s.add(sendOf(1 << 20))
	room := 0
	d := frame.NewDecoder(readerFunc(func(p []byte) (int, error) {
		room = len(p)
		return s.Read(p)
	}), frame.Limits{})
	var f frame.Frame
	decodeNext(t, d, &f, 1<<20)
	if err := d.Decode(&f); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if room > 64*kib || d.BufferSize() > 64*kib {
		t.Errorf("waits with %d octets, %d of them free, want at most %d", d.BufferSize(), room, 64*kib)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestHeaderRoomIsGivenBack(t *testing.T) {
	s := &source{}
	d := frame.NewDecoder(s, frame.Limits{})
	var f frame.Frame
	s.add([]byte("SEND\n" + strings.Repeat("a:1\n", 5000) + "\n\x00"))
	decodeNext(t, d, &f, 0)
	if got := len(f.Headers); got != 5000 {
		t.Fatalf("got %d headers, want 5000", got)
	}
	s.add(sendOf(1))
	decodeNext(t, d, &f, 1)
	if got := d.HeaderRoom(); got > 64 {
		t.Errorf("after 5000 headers: got room for %d, want at most 64", got)
	}
}
