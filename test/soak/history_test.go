package soak_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/natstomp/natstomp/test/stompclient"
)

// history is what producers and consumers saw, over all lives of a server. It finds what must not be: a receipted
// message that reached nobody, a second delivery without redelivered:true. It is safe for concurrent use.
type history struct {
	mu        sync.Mutex
	receipted map[string]bool // guarded by mu; by body
	delivered map[string]int  // guarded by mu; deliveries by body
	receipts  int             // guarded by mu; since the last call of lap
	unflagged []string        // guarded by mu; faults
	commits   [][]string      // guarded by mu; bodies by transaction
}

func newHistory() *history {
	return &history{receipted: map[string]bool{}, delivered: map[string]int{}}
}

// receipt notes that a producer has the receipt of a message.
func (h *history) receipt(body string) {
	h.mu.Lock()
	h.receipted[body] = true
	h.receipts++
	h.mu.Unlock()
}

// deliver notes a frame that a consumer's socket gave.
func (h *history) deliver(f stompclient.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	body := string(f.Body)
	h.delivered[body]++
	if n := h.delivered[body]; n > 1 && f.Get("redelivered") != "true" {
		h.unflagged = append(h.unflagged, fmt.Sprintf("delivery %d without redelivered:true: %s", n, f))
	}
}

// lap returns the number of receipts so far since it was called last with reset.
func (h *history) lap(reset bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.receipts
	if reset {
		h.receipts = 0
	}
	return n
}

// begin notes the bodies of a transaction that is about to be committed.
func (h *history) begin(bodies []string) {
	h.mu.Lock()
	h.commits = append(h.commits, bodies)
	h.mu.Unlock()
}

// check fails the test for what must not be. It wants the queues to be drained, and some messages to have been
// delivered more than once: otherwise nothing was shown.
func (h *history) check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	again := 0
	for _, n := range h.delivered {
		if n > 1 {
			again++
		}
	}
	t.Logf("%d messages receipted, %d delivered, %d of them more than once", len(h.receipted), len(h.delivered), again)
	if again == 0 {
		t.Error("no message was delivered twice, so that nothing was shown")
	}
	var lost []string
	for body := range h.receipted {
		if h.delivered[body] == 0 {
			lost = append(lost, body)
		}
	}
	if len(lost) > 0 {
		t.Errorf("%d of %d receipted messages are lost, such as %q", len(lost), len(h.receipted), lost[0])
	}
	if len(h.unflagged) > 0 {
		t.Errorf("%d second deliveries lack their flag, such as %s", len(h.unflagged), h.unflagged[0])
	}
	for _, bodies := range h.commits {
		parts := 0
		for _, body := range bodies {
			parts += min(h.delivered[body], 1)
		}
		if parts != 0 && parts != len(bodies) {
			t.Errorf("of the transaction of %q %d parts of %d were stored", bodies[0], parts, len(bodies))
		}
	}
}
