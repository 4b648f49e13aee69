package pressure_test

import (
	"math"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/connector/internal/pressure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a guard of 1,000 octets whose memory the test sets.
type rig struct {
	*pressure.Guard
	now     time.Time
	asked   []uint64
	changes []bool

	mu       sync.Mutex // guards what follows
	used     uint64
	garbage  uint64
	queued   uint64
	gathered int
}

func newRig() *rig {
	r := &rig{now: time.Now()}
	r.Guard = pressure.New(pressure.Config{
		Limit: 1000,
		Shed: func(octets uint64) uint64 {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.asked = append(r.asked, octets)
			n := min(octets, r.queued)
			r.queued -= n
			r.garbage += n
			return n
		},
		Changed: func(paused bool, _ uint64) { r.changes = append(r.changes, paused) },
	})
	r.Fake(func() uint64 {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.used
	}, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.gathered++
		r.used -= r.garbage
		r.garbage = 0
	})
	return r
}

// look sets the memory in use and looks once.
func (r *rig) look(used uint64) {
	r.used = used
	r.again()
}

// again looks once, 50 ms after the last time.
func (r *rig) again() {
	r.now = r.now.Add(50 * time.Millisecond)
	r.Look(r.now)
	r.Gathered()
}

func TestPauseBeginsAtTheHighMark(t *testing.T) {
	r := newRig()
	r.look(699)
	if got := r.Paused(); got {
		t.Error("paused below the mark")
	}
	r.look(700)
	if got := r.Paused(); !got {
		t.Error("not paused at the mark")
	}
	r.look(650) // Between the marks it stays.
	if got := r.Paused(); !got {
		t.Error("resumed above the low mark")
	}
	r.look(599)
	if got := r.Paused(); got {
		t.Error("still paused below the low mark")
	}
	if len(r.changes) != 2 || !r.changes[0] || r.changes[1] {
		t.Errorf("got changes %v, want a pause and its end", r.changes)
	}
	if len(r.asked) != 0 {
		t.Errorf("something was let go: %v", r.asked)
	}
}

func TestGarbageIsCollectedFirst(t *testing.T) {
	r := newRig()
	r.garbage = 300
	r.look(720)
	r.again()
	if got := r.Paused(); got || r.gathered != 1 || len(r.asked) != 0 {
		t.Errorf("got paused %v, %d collections, let go %v; want the end of the pause after one collection", got, r.gathered, r.asked)
	}
}

func TestCollectionsAreNotTooMany(t *testing.T) {
	r := newRig()
	for range 11 { // 0.55 s
		r.look(720)
	}
	if got, want := r.gathered, 3; got != want {
		t.Errorf("got %d collections, want %d", got, want)
	}
}

func TestNearTheLimitQueuesAreLetGoAtOnce(t *testing.T) {
	r := newRig()
	r.queued = 500
	r.look(800)
	if got, want := len(r.asked), 1; got != want {
		t.Fatalf("asked %d times, want %d", got, want)
	}
	if got, want := r.asked[0], uint64(200); got != want {
		t.Errorf("asked for %d octets, want %d", got, want)
	}
	r.again() // Collects at once what was let go, and does not ask again before.
	if got, want := len(r.asked), 1; got != want {
		t.Errorf("asked %d times, want %d", got, want)
	}
	if got, want := r.used, uint64(600); got != want {
		t.Errorf("got %d in use, want %d", got, want)
	}
}

func TestWhatGrowsMeanwhileIsLetGoToo(t *testing.T) {
	r := newRig()
	r.queued = 500
	r.look(800)
	r.look(850)
	if got, want := len(r.asked), 2; got != want {
		t.Errorf("asked %d times, want %d", got, want)
	}
}

func TestAPauseWithoutEffectLetsQueuesGo(t *testing.T) {
	r := newRig()
	for range 20 { // Until 0.95 s after it began.
		r.look(710)
	}
	if len(r.asked) != 0 {
		t.Fatalf("something was let go after less than a second: %v", r.asked)
	}
	r.look(710)
	if got, want := len(r.asked), 1; got != want {
		t.Errorf("asked %d times, want %d", got, want)
	}
}

func TestWait(t *testing.T) {
	r := newRig()
	over := make(chan struct{})
	if got := r.Wait(over); !got {
		t.Error("waited without a pause")
	}
	r.look(710)
	waits := func() <-chan bool {
		result := make(chan bool)
		go func() { result <- r.Wait(over) }()
		return result
	}
	first := waits()
	r.look(100)
	if got := <-first; !got {
		t.Error("the end of the pause was taken for the end of the session")
	}
	r.look(710)
	second := waits()
	close(over)
	if got := <-second; got {
		t.Error("the end of the session was taken for the end of the pause")
	}
	r.look(100)
}

func TestNilGuard(t *testing.T) {
	var g *pressure.Guard
	if got := g.Paused(); got {
		t.Error("a nil guard paused")
	}
	if got := g.Wait(nil); !got {
		t.Error("a nil guard made somebody wait")
	}
	g.Stop()
}

func TestLimitOfTheRuntime(t *testing.T) {
	const before = int64(math.MaxInt64)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(before)) // The process may have one of its own.
	g := pressure.New(pressure.Config{
		Limit: 1 << 30, Shed: func(uint64) uint64 { return 0 }, Changed: func(bool, uint64) {},
	})
	g.Start()
	if got, limit := debug.SetMemoryLimit(-1), int64(1<<30); got >= limit || got < limit/2 {
		t.Errorf("got a limit of %d, want one below %d", got, limit)
	}
	g.Stop()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("got a limit of %d after Stop, want %d", got, before)
	}
}
