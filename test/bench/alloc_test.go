//go:build !race

package bench_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// repeat gives the same octets for ever.
type repeat struct {
	octets []byte
	at     int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.octets[r.at:])
	r.at = (r.at + n) % len(r.octets)
	return n, nil
}

var _ io.Reader = (*repeat)(nil)

// TestScanAlloc shows that the raw readers leave no garbage, which would slow them down.
func TestScanAlloc(t *testing.T) {
	stomp := &repeat{octets: bytes.Repeat([]byte(messageFrame(7, "", string(body))), 100)}
	stompScan := newSTOMPScanner()
	lines := &repeat{octets: bytes.Repeat(fmt.Appendf(nil, "MSG a 1 %d\r\n%s\r\n", bodySize, body), 100)}
	lineScan := newNATSScanner()
	messages := 0
	allocations := testing.AllocsPerRun(1_000, func() {
		m, _, err := stompScan.fill(stomp)
		if err != nil {
			t.Fatal(err)
		}
		c, err := lineScan.fill(lines)
		if err != nil {
			t.Fatal(err)
		}
		messages += m + c.messages
	})
	if allocations > 0 || messages < 1_000 {
		t.Errorf("got %v allocations per read and %d messages, want 0 and many", allocations, messages)
	}
	if strings.Count(string(stomp.octets), message) != 100 {
		t.Error("the octets were written into")
	}
}
