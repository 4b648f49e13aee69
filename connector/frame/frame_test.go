package frame_test

import (
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

func TestLookup(t *testing.T) {
	f := frame.Frame{Headers: headers("a", "1", "b", "", "a", "2")}
	for _, test := range []struct {
		name, want string
		found      bool
	}{
		{"a", "1", true},
		{"b", "", true},
		{"c", "", false},
		{"A", "", false},
		{"", "", false},
	} {
		value, found := f.Lookup(test.name)
		if string(value) != test.want || found != test.found {
			t.Errorf("Lookup(%q): got %q, %t, want %q, %t", test.name, value, found, test.want, test.found)
		}
		if got := f.Get(test.name); got != test.want {
			t.Errorf("Get(%q): got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestClone(t *testing.T) {
	d := frame.NewDecoder(strings.NewReader("SEND\na:1\nb:\n\nbody\x00ACK\nxx:yyyyyyyy\n\nzzzzzzzz\x00"), frame.Limits{})
	var f frame.Frame
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	c := f.Clone()
	want := render(&f)
	for _, h := range f.Headers {
		clear(h.Name)
		clear(h.Value)
	}
	clear(f.Body)
	clear(f.Headers)
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	if got := render(&c); got != want {
		t.Errorf("after the next Decode: got %s, want %s", got, want)
	}
	_ = append(c.Headers[0].Name, "****"...)
	_ = append(c.Headers[0].Value, "****"...)
	if got := render(&c); got != want {
		t.Errorf("after appends to its slices: got %s, want %s", got, want)
	}
	empty := frame.Frame{Command: frame.Ack}
	if got, want := render(new(empty.Clone())), `ACK{}""`; got != want {
		t.Errorf("without headers: got %s, want %s", got, want)
	}
}

func TestCommandString(t *testing.T) {
	for c, want := range map[frame.Command]string{frame.Unknown: "unknown", frame.Connect: "CONNECT", frame.Error: "ERROR", frame.Error + 1: "unknown", 255: "unknown"} {
		if got := c.String(); got != want {
			t.Errorf("%d: got %q, want %q", c, got, want)
		}
	}
}
