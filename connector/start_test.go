package connector

import (
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge"
)

func TestParseStart(t *testing.T) {
	at := func(text string) bridge.Start {
		when, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return bridge.Start{Kind: bridge.StartTime, Time: when}
	}
	age := func(d time.Duration) bridge.Start { return bridge.Start{Kind: bridge.StartAge, Age: d} }
	seq := func(n uint64) bridge.Start { return bridge.Start{Kind: bridge.StartSequence, Sequence: n} }
	for _, tt := range []struct {
		value, spelt string // spelt is how the start is written again; empty: the value is bad.
		want         bridge.Start
	}{
		{"new", "new", bridge.Start{}},
		{"first", "first", bridge.Start{Kind: bridge.StartFirst}},
		{"last", "last", bridge.Start{Kind: bridge.StartLast}},
		{"last-per-channel", "last-per-channel", bridge.Start{Kind: bridge.StartLastPerChannel}},
		{"seq:1", "seq:1", seq(1)},
		{"seq:007", "seq:7", seq(7)},
		{"seq:9223372036854775807", "seq:9223372036854775807", seq(9223372036854775807)},
		{"seq:9223372036854775808", "", bridge.Start{}},
		{"seq:0", "", bridge.Start{}},
		{"seq:-1", "", bridge.Start{}},
		{"seq:+1", "", bridge.Start{}},
		{"seq:", "", bridge.Start{}},
		{"seq", "", bridge.Start{}},
		{"seq:1:2", "", bridge.Start{}},
		{"time:2026-01-02T03:04:05Z", "time:2026-01-02T03:04:05Z", at("2026-01-02T03:04:05Z")},
		{"time:2026-01-02T03:04:05.25+01:00", "time:2026-01-02T02:04:05.25Z", at("2026-01-02T02:04:05.25Z")},
		{"time:2026-01-02", "", bridge.Start{}},
		{"time:1000-01-01T00:00:00Z", "", bridge.Start{}},
		{"time:9999-01-01T00:00:00Z", "", bridge.Start{}},
		{"time:", "", bridge.Start{}},
		{"age:90m", "age:1h30m0s", age(90 * time.Minute)},
		{"age:1500", "age:1.5s", age(1500 * time.Millisecond)},
		{"age:0", "age:0s", age(0)},
		{"age:1d", "age:24h0m0s", age(24 * time.Hour)},
		{"age:2d6h", "age:54h0m0s", age(54 * time.Hour)},
		{"age:d", "", bridge.Start{}},
		{"age:1d2", "", bridge.Start{}},
		{"age:-1d", "", bridge.Start{}},
		{"age:99999999d", "", bridge.Start{}},
		{"age:107000d", "", bridge.Start{}},
		{"age:-1s", "", bridge.Start{}},
		{"age:-1", "", bridge.Start{}},
		{"age:9223372036854775807", "", bridge.Start{}},
		{"age:2540400h10m", "", bridge.Start{}},
		{"age:", "", bridge.Start{}},
		{"", "", bridge.Start{}},
		{"New", "", bridge.Start{}},
		{" new", "", bridge.Start{}},
		{"newest", "", bridge.Start{}},
	} {
		got, ok := parseStart(tt.value)
		if ok != (tt.spelt != "") {
			t.Errorf("%q: got %v, %t, want accepted %t", tt.value, got, ok, tt.spelt != "")
			continue
		}
		if !ok {
			continue
		}
		if !got.Time.Equal(tt.want.Time) {
			t.Errorf("%q: got %v, want %v", tt.value, got.Time, tt.want.Time)
		}
		got.Time, tt.want.Time = time.Time{}, time.Time{}
		again, _ := parseStart(tt.value)
		if got != tt.want || again.String() != tt.spelt {
			t.Errorf("%q: got %+v, spelt %q, want %+v, %q", tt.value, got, again.String(), tt.want, tt.spelt)
		}
		if back, ok := parseStart(tt.spelt); !ok || back.String() != tt.spelt {
			t.Errorf("%q: got %q of its own spelling %q", tt.value, back.String(), tt.spelt)
		}
	}
}

func FuzzParseStart(f *testing.F) {
	for _, v := range []string{"new", "seq:5", "time:2026-01-02T03:04:05Z", "age:1d", "age:5", "last-per-channel"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		s, ok := parseStart(v)
		if !ok {
			return
		}
		if back, ok := parseStart(s.String()); !ok || back.String() != s.String() {
			t.Errorf("%q is spelt %q, which gives %q, %t", v, s.String(), back.String(), ok)
		}
	})
}
