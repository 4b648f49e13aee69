package connector

import (
	"strconv"
	"strings"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
)

// startValues tells what x-start may be.
const startValues = "new, first, last, last-per-channel, seq:<n> from 1, time:<RFC 3339>, or age:<duration> such as age:90m"

// startOf reads where a subscription to stored topics begins: x-start, or RabbitMQ's x-stream-offset. nil: neither is
// there.
func startOf(f *frame.Frame) (*bridge.Start, error) {
	v, ok := f.Lookup("x-start")
	offset, also := f.Lookup("x-stream-offset")
	switch {
	case ok && also:
		return nil, refuse("headers x-start and x-stream-offset say the same: give one of them")
	case also:
		return offsetStart(string(offset))
	case !ok:
		return nil, nil
	}
	s, ok := parseStart(string(v))
	if !ok {
		return nil, refuse("header x-start: %q is none of %s", printable(string(v)), startValues)
	}
	return &s, nil
}

// offsetStart reads x-stream-offset. RabbitMQ's numbers and times count in its own streams.
func offsetStart(v string) (*bridge.Start, error) {
	kind := bridge.StartNew
	switch {
	case v == "next":
	case v == "first":
		kind = bridge.StartFirst
	case v == "last":
		kind = bridge.StartLast
	case strings.HasPrefix(v, "offset="):
		return nil, refuse("header x-stream-offset: %q is not supported, use x-start:seq:<n> with the x-seq of a message", printable(v))
	case strings.HasPrefix(v, "timestamp="):
		return nil, refuse("header x-stream-offset: %q is not supported, use x-start:time:<RFC 3339>", printable(v))
	default:
		return nil, refuse("header x-stream-offset: %q is none of first, last and next; x-start knows more", printable(v))
	}
	return &bridge.Start{Kind: kind}, nil
}

func parseStart(v string) (s bridge.Start, ok bool) {
	switch v {
	case "new":
		return s, true
	case "first":
		return bridge.Start{Kind: bridge.StartFirst}, true
	case "last":
		return bridge.Start{Kind: bridge.StartLast}, true
	case "last-per-channel":
		return bridge.Start{Kind: bridge.StartLastPerChannel}, true
	}
	kind, value, _ := strings.Cut(v, ":")
	switch kind {
	case "seq":
		n, err := strconv.ParseUint(value, 10, 63)
		return bridge.Start{Kind: bridge.StartSequence, Sequence: n}, err == nil && n > 0 && value[0] != '+'
	case "time":
		t, err := time.Parse(time.RFC3339Nano, value)
		return bridge.Start{Kind: bridge.StartTime, Time: t}, err == nil && t.Year() >= 1678 && t.Year() < 2262 // Nanoseconds in 64 bits.
	case "age":
		age, ok := parseAge(value)
		return bridge.Start{Kind: bridge.StartAge, Age: age}, ok
	}
	return s, false
}

// parseAge reads a duration with units, days included, or a number of milliseconds.
func parseAge(v string) (time.Duration, bool) {
	if ms, err := strconv.ParseInt(v, 10, 64); err == nil {
		return time.Duration(ms) * time.Millisecond, ms >= 0 && ms <= maxAge.Milliseconds()
	}
	days := time.Duration(0)
	if before, after, ok := strings.Cut(v, "d"); ok {
		const day = 24 * time.Hour
		n, err := strconv.ParseUint(before, 10, 32)
		if err != nil || n > uint64(maxAge/day) {
			return 0, false
		}
		days = time.Duration(n) * day
		if v = after; v == "" {
			return days, true
		}
	}
	d, err := time.ParseDuration(v)
	return days + d, err == nil && d >= 0 && d <= maxAge-days
}

// maxAge bounds age:<duration>, which is so long that it means everything.
const maxAge = 100 * 365 * 24 * time.Hour
