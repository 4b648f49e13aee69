//go:build !race

package frame_test

// raceEnabled says whether the race detector makes allocations of its own.
const raceEnabled = false
