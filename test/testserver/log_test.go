package testserver

import (
	"io"
	"strings"
	"testing"
)

func TestCheckLog(t *testing.T) {
	for _, tt := range []struct{ log, want string }{
		{"ready\nall well\n", ""},
		{"ready\nWARNING: DATA RACE\nRead at\n", "DATA RACE"},
		{"ready\npanic: nil map\n", "panic: nil map"},
		{"{\"msg\":\"connection panicked\"}\n", "panicked"},
		{"no line end: fatal\ngoroutine 7 [running]:", "goroutine 7"},
	} {
		s := &Server{}
		s.record(io.NopCloser(strings.NewReader(tt.log)), make(chan string, 10))
		if got, want := s.Log(), tt.log; got != want {
			t.Errorf("log: got %q, want %q", got, want)
		}
		err := s.checkLog()
		if got := err == nil; got != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("log %q: got %v, want %q", tt.log, err, tt.want)
		}
	}
}

func TestListenLine(t *testing.T) {
	for _, tt := range []struct{ line, name, address string }{
		{"  tcp            127.0.0.1:61613\n", "tcp", "127.0.0.1:61613"},
		{"  admin          127.0.0.1:8161\n", "admin", "127.0.0.1:8161"},
		{"  nats clients   nats://127.0.0.1:4222\n", "nats", "127.0.0.1:4222"},
		{"  nats           embedded nats-server 2.15.3, store x\n", "", ""},
		{`{"msg":"tcp 127.0.0.1:1"}`, "", ""},
	} {
		m := listenLine.FindStringSubmatch(tt.line)
		if tt.name == "" {
			if m != nil {
				t.Errorf("%q: got %q, want none", tt.line, m)
			}
			continue
		}
		if m == nil || m[1] != tt.name || m[2] != tt.address {
			t.Errorf("%q: got %q, want %s %s", tt.line, m, tt.name, tt.address)
		}
	}
}
