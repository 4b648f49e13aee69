package bench_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// slice is how long a peer works at a time.
	slice = 200 * time.Millisecond
	// smokeSlice is the same where nothing is measured.
	smokeSlice = 10 * time.Millisecond
	// leastRounds is how often each peer works in one benchmark.
	leastRounds = 9
)

// smoke says that -benchtime is a number of iterations: it is only to be shown that the benchmarks work.
func smoke() bool {
	f := flag.Lookup("test.benchtime")
	return f != nil && strings.HasSuffix(f.Value.String(), "x")
}

// rounds calls round as often as -benchtime asks for, often enough for a median, with the length of one slice.
func rounds(b *testing.B, round func(time.Duration)) {
	// An operation is a round, its length was chosen.
	defer func() { b.ReportMetric(0, "ns/op") }()
	if smoke() {
		for b.Loop() {
			round(smokeSlice)
		}
		return
	}
	n := 0
	for b.Loop() {
		round(slice)
		n++
	}
	for ; n < leastRounds; n++ {
		round(slice)
	}
}

// median returns the middle one of values, 0 if there is none.
func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile returns the smallest of values that at least the share q of them do not exceed, 0 if there is none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	i := int(q*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// reportRatio reports over/under unless under is not known, or nothing is measured.
func reportRatio(b *testing.B, over, under float64, unit string) {
	if under > 0 && !smoke() {
		b.ReportMetric(over/under, unit)
	}
}

// clockTick is the unit of CPU time in /proc on every Linux that Go runs on.
const clockTick = time.Second / 100

// cpuTime returns how much CPU time a process has used, 0 where the system does not tell.
func cpuTime(pid int) time.Duration {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is the program's name in brackets and may hold anything.
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0
	}
	ticks := 0
	for _, field := range [][]byte{fields[user], fields[system]} {
		n, err := strconv.Atoi(string(field))
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, tt := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{nil, 0.5, 0},
		{[]float64{3}, 0.99, 3},
		{[]float64{5, 1, 3}, 0.5, 3},
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
	} {
		if got := quantile(tt.values, tt.q); got != tt.want {
			t.Errorf("quantile %v of %d values: got %v, want %v", tt.q, len(tt.values), got, tt.want)
		}
	}
}
