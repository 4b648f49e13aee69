package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// inFlight is how many receipts a producer waits for.
const inFlight = 40

// load is what producers and consumers of one queue know.
type load struct {
	queue string
	stop  atomic.Bool // for producers
	wg    sync.WaitGroup

	receipts atomic.Int64

	mu       sync.Mutex
	confirms map[string]bool     // guarded by mu; bodies whose RECEIPT came
	stored   map[string]uint64   // guarded by mu; body to its sequence in the stream
	finished bool                // guarded by mu; consumers may lose their connections
	errs     []error             // guarded by mu
	last     time.Time           // guarded by mu; when the latest RECEIPT came
	gap      time.Duration       // guarded by mu; the longest time between two RECEIPTs
	conns    []*stompclient.Conn // guarded by mu; of consumers
	sent     map[string]int      // guarded by mu; by producer
	doubles  int                 // guarded by mu; redeliveries
}

func newLoad(queue string) *load {
	return &load{queue: queue, confirms: map[string]bool{}, stored: map[string]uint64{}, sent: map[string]int{}, last: time.Now()}
}

func (l *load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) < 10 {
		l.errs = append(l.errs, fmt.Errorf(format, args...))
	}
}

// produce sends with receipts until it is told to stop, and waits for all of them.
func (l *load) produce(t *testing.T, srv *testserver.Server, name string) {
	t.Helper()
	c := rig.Connect(t, srv.TCPAddr)
	l.wg.Go(func() {
		n, open := 0, 0
		for {
			for ; open < inFlight && !l.stop.Load(); open++ {
				n++
				body := name + ":" + strconv.Itoa(n)
				if err := c.Send(rig.Send(l.queue, body, "receipt", body)); err != nil {
					l.fault("producer %s: %w", name, err)
					return
				}
			}
			if open == 0 {
				break
			}
			f, err := c.Read(rig.Patience)
			if err != nil || f.Command != "RECEIPT" {
				l.fault("producer %s: got %s (%w), want a RECEIPT", name, f, err)
				return
			}
			open--
			l.confirmed(f.Get("receipt-id"))
		}
		l.mu.Lock()
		l.sent[name] = n
		l.mu.Unlock()
	})
}

func (l *load) confirmed(body string) {
	l.receipts.Add(1)
	now := time.Now()
	l.mu.Lock()
	l.confirms[body] = true
	l.gap = max(l.gap, now.Sub(l.last))
	l.last = now
	l.mu.Unlock()
}

// consume takes messages and acknowledges each.
func (l *load) consume(t *testing.T, srv *testserver.Server) {
	t.Helper()
	c := rig.Connect(t, srv.TCPAddr)
	c.AskFrame(rig.Subscribe("s", l.queue, "ack", "client-individual"))
	l.mu.Lock()
	l.conns = append(l.conns, c.Conn)
	l.mu.Unlock()
	l.wg.Go(func() {
		for {
			f, err := c.Read(2 * rig.Patience)
			if err != nil && l.over() {
				return
			}
			if err != nil || f.Command != "MESSAGE" {
				l.fault("consumer: got %s (%w), want a MESSAGE", f, err)
				return
			}
			l.delivered(f)
			if err := c.Send(stompclient.New("ACK", "id", f.Get("ack"))); err != nil {
				if !l.over() {
					l.fault("consumer: %w", err)
				}
				return
			}
		}
	})
}

// over says whether the consumers may lose their connections.
func (l *load) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.finished
}

func (l *load) delivered(f stompclient.Frame) {
	seq, err := strconv.ParseUint(f.Get("x-seq"), 10, 64)
	if err != nil {
		l.fault("x-seq of %s: %w", f, err)
		return
	}
	body := string(f.Body)
	l.mu.Lock()
	before, again := l.stored[body]
	l.stored[body] = seq
	if again {
		l.doubles++
	}
	l.mu.Unlock()
	switch {
	case again && before != seq:
		l.fault("%s is stored twice: as %d and %d", body, before, seq)
	case again && f.Get("redelivered") != "true":
		l.fault("%s was delivered again without redelivered:true", body)
	}
}

// more waits for so many more receipts.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	want := l.receipts.Load() + n
	rig.Until(t, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if err := errors.Join(l.errs...); err != nil {
			t.Fatal(err)
		}
		if got := l.receipts.Load(); got < want {
			return fmt.Errorf("%d receipts, want %d", got, want)
		}
		return nil
	})
}

// finish ends the load and fails the test for anything that is lost, stored twice or unflagged.
func (l *load) finish(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	l.stop.Store(true)
	rig.Until(t, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if err := errors.Join(l.errs...); err != nil {
			t.Fatal(err)
		}
		missing := 0
		for body := range l.confirms {
			if _, ok := l.stored[body]; !ok {
				missing++
			}
		}
		open := 0
		for _, n := range l.sent {
			open += n
		}
		if missing > 0 || len(l.sent) == 0 || open != len(l.confirms) {
			return fmt.Errorf("%d of %d receipted messages were not delivered; %d were sent", missing, len(l.confirms), open)
		}
		return nil
	})
	l.mu.Lock()
	l.finished = true
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.errs...); err != nil {
		t.Error(err)
	}
	l.once(t, js)
	t.Logf("%d receipted, %d delivered again, longest time without a receipt %v", len(l.confirms), l.doubles, l.gap.Round(time.Millisecond))
}

// once fails the test if the stream has stored more than the messages that were sent, delivered or not. l.mu is held.
func (l *load) once(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	s, err := js.Stream(t.Context(), rig.QueueStream(strings.TrimPrefix(l.queue, "/queue/")))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.CachedInfo().State.LastSeq, uint64(len(l.stored)); got != want {
		t.Errorf("%d messages were stored, want the %d that were sent", got, want)
	}
}

// inOrder fails the test if the messages of a producer are not stored in the order in which they were sent.
func (l *load) inOrder(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	type entry struct {
		seq    uint64
		number int
	}
	byProducer := map[string][]entry{}
	for body, seq := range l.stored {
		name, text, _ := strings.Cut(body, ":")
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		byProducer[name] = append(byProducer[name], entry{seq, n})
	}
	for name, list := range byProducer {
		slices.SortFunc(list, func(a, b entry) int { return int(a.seq) - int(b.seq) })
		for i := 1; i < len(list); i++ {
			if list[i].number < list[i-1].number {
				t.Fatalf("producer %s: %d is stored before %d", name, list[i-1].number, list[i].number)
			}
		}
	}
}
