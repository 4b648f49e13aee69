package frame

import (
	"math"
	"strings"
)

// Heartbeat is the value of a heart-beat header, seen from the side that sent it. Both
// figures are milliseconds, 0 means none.
type Heartbeat struct {
	Out int // Out is the longest pause the sender promises between two of its own octets.
	In  int // In is the longest pause the sender wishes to see from its peer.
}

// ParseHeartbeat reads the value of a heart-beat header: two decimal numbers joined by one comma,
// without sign or blank, each at most 2147483647. Anything else, the value of a missing header
// included, counts as 0,0.
func ParseHeartbeat(value string) Heartbeat {
	before, after, _ := strings.Cut(value, ",")
	out, ok := parseMilliseconds(before)
	if !ok {
		return Heartbeat{}
	}
	in, ok := parseMilliseconds(after)
	if !ok {
		return Heartbeat{}
	}
	return Heartbeat{Out: out, In: in}
}

// parseMilliseconds reads 1 to 10 digits.
func parseMilliseconds(s string) (int, bool) {
	if len(s) == 0 || len(s) > len("2147483647") {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return int(n), n <= math.MaxInt32
}
