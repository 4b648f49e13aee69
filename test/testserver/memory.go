package testserver

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Resident is the resident memory of the process in octets. It is for Linux.
func (s *Server) Resident(tb testing.TB) int64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		value, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		return kib << 10
	}
	tb.Fatal("no resident memory in the status of the process")
	return 0
}
