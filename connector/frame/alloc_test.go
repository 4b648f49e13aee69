package frame_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

func TestDecodeAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, test := range []struct {
		name   string
		octets []byte
	}{
		{"small", benchSend(16)},
		{"256", benchSend(256)},
		{"4096", benchSend(4096)},
		{"60000", benchSend(60000)},
		{"without content-length", []byte("SEND\ndestination:/topic/a\n\nbody\x00")},
		{"escapes", []byte("SEND\nx\\cy:a\\nb\\\\c\\rd\n\nbody\x00")},
		{"CRLF", []byte("SEND\r\na:1\r\n\r\nbody\x00\r\n")},
		{"mixed sizes", append(benchSend(10), append(benchSend(9000), "\n\nACK\nid:1\n\n\x00"...)...)},
		{"64 headers, then few", []byte("SEND\n" + string(bytes.Repeat([]byte("a:1\n"), 64)) + "\n\x00ACK\nid:1\n\n\x00")},
	} {
		for _, chunk := range []int{100, 1000, 1 << 20} {
			d := frame.NewDecoder(&counted{r: &endless{octets: test.octets}, n: chunk}, benchLimits)
			d.SetVersion(frame.V12)
			var f frame.Frame
			decode := func() {
				if err := d.Decode(&f); err != nil {
					t.Fatal(err)
				}
			}
			for range 2000 { // The buffer reaches its size.
				decode()
			}
			if got := testing.AllocsPerRun(1000, decode); got != 0 {
				t.Errorf("%s in reads of %d: got %v allocations a frame, want 0", test.name, chunk, got)
			}
		}
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	f := frame.Frame{
		Command: frame.Message,
		Headers: headers("subscription", "sub:0", "message-id", "m-1", "destination", "/topic/a", "odd", "a\\b\nc\rd"),
		Body:    make([]byte, 256),
	}
	buf := make([]byte, 0, 4096)
	subscription, id := "subscription", []byte("sub:0")
	for _, v := range allVersions {
		got := testing.AllocsPerRun(1000, func() {
			buf = frame.Append(buf[:0], v, &f)
			buf = frame.AppendHeader(buf, v, subscription, id)
			buf = frame.AppendHeader(buf, v, "message-id", subscription)
			buf = frame.AppendBody(buf, f.Body)
			if !frame.Representable(v, subscription, id) {
				t.Error("got not representable, want representable")
			}
		})
		if got != 0 {
			t.Errorf("%v: got %v allocations, want 0", v, got)
		}
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	f := frame.Frame{Headers: headers("a", "1", "receipt", strconv.Itoa(1234567))}
	got := testing.AllocsPerRun(1000, func() {
		if _, ok := f.Lookup("receipt"); !ok {
			t.Error("got no receipt, want one")
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}
