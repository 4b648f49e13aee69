package testserver

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Memory is a figure of the process's memory in octets, by its name in /proc, such as VmRSS. It is for Linux.
func (s *Server) Memory(tb testing.TB, name string) int64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		value, found := strings.CutPrefix(line, name+":")
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		return kib << 10
	}
	tb.Fatalf("no %s in the status of the process", name)
	return 0
}

// Descriptors is how many files and sockets the process has open. It is for Linux.
func (s *Server) Descriptors(tb testing.TB) int {
	tb.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
	if err != nil {
		tb.Fatal(err)
	}
	return len(entries)
}
