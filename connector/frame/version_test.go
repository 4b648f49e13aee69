package frame_test

import (
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

// negotiateCases has the value of accept-version and what comes of it; none means no version in common.
var negotiateCases = []struct {
	value string
	want  frame.Version
}{
	{"", frame.V10},
	{"  ", frame.V10},
	{",", frame.V10},
	{"1.0", frame.V10},
	{"1.1", frame.V11},
	{"1.2", frame.V12},
	{"1.0,1.1,1.2", frame.V12},
	{"1.2,1.1,1.0", frame.V12},
	{"1.1,1.0", frame.V11},
	{"1.0,1.2", frame.V12},
	{" 1.0 , 1.1\t", frame.V11},
	{"1.0,,1.1,", frame.V11},
	{"1.3,2.0,1.1,x", frame.V11},
	{"1.1,1.1", frame.V11},
	{"1.3", none},
	{"2.0,0.9", none},
	{",2.0,", none},
	{"1.00", none},
	{"1", none},
	{"1.2.1", none},
	{"1.0 1.1", none},
	{"1.0;1.1", none},
	{"v1.2", none},
	{"1.2\r", none},
}

func TestNegotiate(t *testing.T) {
	for _, test := range negotiateCases {
		got, ok := frame.Negotiate(test.value)
		if got != test.want || ok != (test.want != none) {
			t.Errorf("%q: got %v, %t, want %v", test.value, got, ok, test.want)
		}
	}
}

func TestVersionString(t *testing.T) {
	for v, want := range map[frame.Version]string{none: "none", frame.V10: "1.0", frame.V11: "1.1", frame.V12: "1.2", 99: "none"} {
		if got := v.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
