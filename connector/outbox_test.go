package connector

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/natstomp/natstomp/bridge"
)

// add appends one frame and returns where it ends.
func (o *outbox) add(text string) uint64 {
	o.keep(append(o.tail(len(text)), text...))
	return o.appended
}

// flush takes and writes one burst.
func (o *outbox) flush() (text string, settled []autoAck) {
	burst := o.take(nil)
	var b bytes.Buffer
	for _, c := range burst {
		b.Write(c.data)
	}
	return b.String(), o.done(burst)
}

func TestOutboxKeepsOrderAndCounts(t *testing.T) {
	var o outbox
	want := ""
	for i := range 10_000 {
		text := fmt.Sprintf("frame %d;", i)
		o.add(text)
		want += text
	}
	if got := o.pending(); got != len(want) {
		t.Errorf("pending is %d, want %d", got, len(want))
	}
	got := ""
	for o.pending() > 0 {
		text, _ := o.flush()
		got += text
	}
	if got != want {
		t.Error("what was taken is not what was added")
	}
}

func TestOutboxBurstEndsWithWholeFrame(t *testing.T) {
	var o outbox
	body := bytes.Repeat([]byte{'b'}, burstSize)
	for range 3 {
		o.keep(append(o.tail(5), "head "...))
		o.join(body)
	}
	for i := range 3 {
		text, _ := o.flush()
		if want := "head " + string(body); text != want {
			t.Fatalf("burst %d has %d octets, want %d", i, len(text), len(want))
		}
	}
	if o.pending() != 0 {
		t.Errorf("%d octets left", o.pending())
	}
}

func TestOutboxNeverWritesIntoSharedOctets(t *testing.T) {
	var o outbox
	shared := append(make([]byte, 0, 100), "shared"...)
	o.keep(append(o.tail(2), "a "...))
	o.join(shared)
	o.add("b")
	if text, _ := o.flush(); text != "a sharedb" {
		t.Errorf("got %q", text)
	}
	o.add("overwrite?")
	if string(shared[:cap(shared)][:16]) != "shared\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("shared octets changed: %q", shared[:cap(shared)])
	}
}

func TestOutboxSettlesWhatIsWritten(t *testing.T) {
	var o outbox
	for i := range 3 {
		end := o.add("frame")
		o.autos = append(o.autos, autoAck{end: end, d: bridge.Delivery{Sequence: uint64(i)}})
	}
	burst := o.take(nil)
	o.autos = append(o.autos, autoAck{end: o.add("late"), d: bridge.Delivery{Sequence: 3}})
	if settled := o.done(burst); len(settled) != 3 || settled[2].d.Sequence != 2 {
		t.Errorf("settled %v, want the first three", settled)
	}
	if lost := o.discard(); len(lost) != 1 || lost[0].d.Sequence != 3 || o.pending() != 0 {
		t.Errorf("lost %v, want the fourth; %d octets pending", lost, o.pending())
	}
}
