package broker

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

func TestGatherPassesEverythingOn(t *testing.T) {
	ours, theirs := net.Pipe()
	c := gather(ours)
	want := make([]byte, 3<<20)
	for i := range want {
		want[i] = byte(i * 7)
	}
	go func() {
		for b := want; len(b) > 0; {
			n, err := theirs.Write(b[:min(len(b), 500)])
			if err != nil {
				return
			}
			b = b[n:]
		}
		_ = theirs.Close() // A pipe's close does not fail.
	}()
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d octets, %v, want %d", len(got), err, len(want))
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestGatherHoldsSoMuchAndNoMore(t *testing.T) {
	ours, theirs := net.Pipe()
	c := gather(ours).(*gatherer)
	written := 0
	for {
		if err := theirs.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := theirs.Write(make([]byte, 16<<10))
		written += n
		if err != nil {
			break
		}
	}
	if most := gatherMost + 3*32<<10; written > most {
		t.Errorf("%d octets were taken from the writer, want at most %d", written, most)
	}
	if _, err := io.ReadFull(c, make([]byte, written)); err != nil {
		t.Error(err)
	}
	if most := 4 * gatherMost; cap(c.buf) > most {
		t.Errorf("the buffer has %d octets, want at most %d", cap(c.buf), most)
	}
	_ = c.Close() // A pipe's close does not fail.
}

func TestGatherClose(t *testing.T) {
	ours, _ := net.Pipe()
	c := gather(ours)
	read := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-read; !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a read under way ended with %v", err)
	}
}
