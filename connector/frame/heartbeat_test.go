package frame_test

import (
	"testing"

	"github.com/natstomp/natstomp/connector/frame"
)

var heartbeatCases = []struct {
	value string
	want  frame.Heartbeat
}{
	{"0,0", frame.Heartbeat{}},
	{"10000,5000", frame.Heartbeat{Out: 10000, In: 5000}},
	{"0,1", frame.Heartbeat{In: 1}},
	{"1,0", frame.Heartbeat{Out: 1}},
	{"007,08", frame.Heartbeat{Out: 7, In: 8}},
	{"2147483647,2147483647", frame.Heartbeat{Out: 2147483647, In: 2147483647}},
	{"2147483648,1", frame.Heartbeat{}},
	{"1,2147483648", frame.Heartbeat{}},
	{"9999999999,1", frame.Heartbeat{}},
	{"00000000001,1", frame.Heartbeat{}},
	{"18446744073709551617,1", frame.Heartbeat{}},
	{"", frame.Heartbeat{}},
	{",", frame.Heartbeat{}},
	{"1", frame.Heartbeat{}},
	{"1,", frame.Heartbeat{}},
	{",1", frame.Heartbeat{}},
	{"1,2,", frame.Heartbeat{}},
	{"1,2,3", frame.Heartbeat{}},
	{"-1,1", frame.Heartbeat{}},
	{"+1,1", frame.Heartbeat{}},
	{"1, 1", frame.Heartbeat{}},
	{" 1,1", frame.Heartbeat{}},
	{"1,1 ", frame.Heartbeat{}},
	{"1.5,1", frame.Heartbeat{}},
	{"1e3,1", frame.Heartbeat{}},
	{"0x1,1", frame.Heartbeat{}},
	{"1,a", frame.Heartbeat{}},
	{"١,1", frame.Heartbeat{}},
	{"1;1", frame.Heartbeat{}},
	{"1,1\r", frame.Heartbeat{}},
}

func TestParseHeartbeat(t *testing.T) {
	for _, test := range heartbeatCases {
		if got := frame.ParseHeartbeat(test.value); got != test.want {
			t.Errorf("%q: got %v, want %v", test.value, got, test.want)
		}
	}
}
