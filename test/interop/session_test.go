package interop_test

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
)

// session is one running scenario.
type session struct {
	label   string
	began   time.Time
	kill    func()      // Ends the client at once, without a word to the server.
	process *os.Process // Of a client that is a process.

	mu      sync.Mutex
	events  events        // Guarded by mu.
	changed chan struct{} // Closed and replaced with each event; guarded by mu.
	err     error         // Valid after ended.

	ended chan struct{}
}

func newSession(t *testing.T, label string, kill func()) *session {
	s := &session{
		label: label, began: time.Now(), kill: kill,
		changed: make(chan struct{}), ended: make(chan struct{}),
	}
	t.Cleanup(func() {
		s.kill()
		<-s.ended
	})
	return s
}

// now is the session's time, in milliseconds as in its events. Only go-stomp's have this very clock.
func (s *session) now() float64 {
	return float64(time.Since(s.began).Microseconds()) / 1000
}

// add records an event.
func (s *session) add(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// end records how the scenario ended.
func (s *session) end(err error) {
	s.err = err
	close(s.ended)
}

// seen returns what was reported so far.
func (s *session) seen() events {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// await returns once there are count events of the kind.
func (s *session) await(t *testing.T, kind string, count int) events {
	t.Helper()
	timeout := time.NewTimer(rig.Patience)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		found, changed := s.events.of(kind, ""), s.changed
		s.mu.Unlock()
		if len(found) >= count {
			return found
		}
		select {
		case <-changed:
		case <-s.ended:
			t.Fatalf("%s ended (%v) with %d of %d events %s; all:\n%s", s.label, s.err, len(found), count, kind, s.seen())
		case <-timeout.C:
			t.Fatalf("%s: %d of %d events %s after %v; all:\n%s", s.label, len(found), count, kind, rig.Patience, s.seen())
		}
	}
}

// finish waits for the end of the scenario and returns all its events. A scenario that could not go on fails the test.
func (s *session) finish(t *testing.T) events {
	t.Helper()
	timeout := time.NewTimer(2 * rig.Patience)
	defer timeout.Stop()
	select {
	case <-s.ended:
	case <-timeout.C:
		t.Fatalf("%s: not done after %v; so far:\n%s", s.label, 2*rig.Patience, s.seen())
	}
	if s.err != nil {
		t.Fatalf("%s: %v; seen:\n%s", s.label, s.err, s.seen())
	}
	return s.seen()
}
