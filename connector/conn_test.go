package connector

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// session is a conn on an in-memory socket, of a server that has no NATS: whatever reaches for it panics.
func session(t *testing.T) (*conn, net.Conn) {
	t.Helper()
	r, err := router.New(router.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{cfg: DefaultConfig(), log: slog.New(slog.DiscardHandler), router: r, conns: map[*conn]struct{}{}}
	s.audit = s.log
	s.metrics = s.newMetrics()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() }) // It may be closed already.
	return newConn(s, ours, "", false), theirs
}

// run serves c until the test has read everything from its peer.
func run(t *testing.T, c *conn, peer net.Conn) string {
	t.Helper()
	ended := make(chan struct{})
	go func() { defer close(ended); c.serve() }()
	if err := peer.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(peer)
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	return string(got)
}

func TestPanicEndsOneSessionWithAnError(t *testing.T) {
	c, peer := session(t)
	go func() { _, _ = io.WriteString(peer, "CONNECT\nreceipt:1\n\n\x00") }() // A failed write shows in what is read.
	got := run(t, c, peer)
	if !strings.HasPrefix(got, "ERROR\nmessage:internal error\n") || !strings.Contains(got, "\n\ninternal error\x00\n") {
		t.Errorf("got %q", got)
	}
}

func TestPanicInDeliveryCutsTheConnection(t *testing.T) {
	c, _ := session(t)
	s := &subscription{conn: c, mode: ackIndividual}
	c.srv = nil
	s.DeliverTopic([]byte("x"), false, "")
	if !c.failed.Load() {
		t.Error("the connection goes on")
	}
	if !c.mu.TryLock() {
		t.Error("the connection is locked")
	}
}

func TestConnectTimeoutIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := session(t)
		c.srv.cfg.Limits.ConnectTimeout = 50 * time.Millisecond
		c.read.until = time.Now().Add(c.srv.cfg.Limits.ConnectTimeout)
		go func() { _, _ = io.WriteString(peer, "CONNECT\n") }() // See above.
		if got := run(t, c, peer); !strings.Contains(got, "limits.connect_timeout (50ms)") {
			t.Errorf("got %q", got)
		}
	})
}

func TestSilentProbeGetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := session(t)
		c.read.until = time.Now().Add(20 * time.Millisecond)
		if got := run(t, c, peer); got != "" {
			t.Errorf("got %q", got)
		}
	})
}

func TestReceiptsLeaveInOrder(t *testing.T) {
	c, _ := session(t)
	c.version = frame.V12
	var numbers []uint64
	for _, id := range []string{"a", "", "b", "c"} {
		numbers = append(numbers, c.reserve(id, 10, nil))
	}
	read := func() string {
		text, _ := c.out.flush()
		return strings.NewReplacer("RECEIPT\nreceipt-id:", "", "\n\n\x00\n", " ").Replace(text)
	}
	for _, step := range []struct {
		fill int
		want string
	}{{2, ""}, {0, "a "}, {1, "b "}, {3, "c "}} {
		c.settle(numbers[step.fill], nil)
		if got := read(); got != step.want {
			t.Errorf("after slot %d: got %q, want %q", step.fill, got, step.want)
		}
	}
	if c.receipts.open() != 0 || c.receipts.size != 0 {
		t.Errorf("%d slots, %d octets left", c.receipts.open(), c.receipts.size)
	}
}

func TestFailedFrameEndsTheReceipts(t *testing.T) {
	c, _ := session(t)
	c.version, c.connected = frame.V12, true
	a, b, d := c.reserve("a", 0, nil), c.reserve("b", 0, nil), c.reserve("d", 0, nil)
	c.settle(d, nil)
	c.settle(b, errQueueFull)
	c.settle(a, nil)
	text, _ := c.out.flush()
	want := "RECEIPT\nreceipt-id:a\n\n\x00\nERROR\nmessage:queue full\ncontent-type:text/plain;charset=utf-8\nreceipt-id:b\n" +
		"content-length:10\n\nqueue full\x00\n"
	if text != want {
		t.Errorf("got  %q\nwant %q", text, want)
	}
	if !c.out.closed {
		t.Error("the outbox is open after an ERROR")
	}
	c.settle(d, nil) // Late answers of a failed session change nothing.
	if c.out.pending() != 0 {
		t.Error("octets after the ERROR")
	}
}

func TestReserveWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := session(t)
		c.srv.cfg.Limits.PublishWindow = 2
		first := c.reserve("", 0, nil)
		c.reserve("", 0, nil)
		third := make(chan uint64, 1)
		go func() { third <- c.reserve("", 0, nil) }()
		synctest.Wait()
		select {
		case <-third:
			t.Error("a third frame waits for NATS, the window is 2")
		default:
		}
		c.settle(first, nil)
		<-third
	})
}

func TestReceiptsForgetWhatIsAnswered(t *testing.T) {
	c, _ := session(t)
	c.version = frame.V12
	c.srv.cfg.Limits.PublishWindow = 10
	open := []uint64{c.reserve("", 0, nil)}
	for range 100_000 {
		open = append(open, c.reserve("", 0, nil))
		c.settle(open[0], nil)
		open = open[1:]
	}
	if n := cap(c.receipts.slots); n > 8_192 {
		t.Errorf("the FIFO has grown to %d slots", n)
	}
}

func TestErrorTexts(t *testing.T) {
	for _, tt := range []struct {
		err   error
		want  string
		known bool
	}{
		{errSlowConsumer, "slow consumer", true},
		{&frame.LimitError{Name: "body", Max: 10, Got: 11}, "body too large: limits.body is 10 (got 11)", true},
		{&frame.SyntaxError{Text: "no colon"}, "no colon", true},
		{errors.New("dial tcp 10.0.0.1: secret"), "internal error", false},
	} {
		e, known := clientError(tt.err)
		if e.Text != tt.want || known != tt.known {
			t.Errorf("%v: got %q, %t, want %q, %t", tt.err, e.Text, known, tt.want, tt.known)
		}
	}
	long := errorFrame(frame.V12, true, refuse("a\r\nb\x00\x1b[31m\u2028%s", strings.Repeat("x", 10_000)), "r\n1")
	if n := strings.Count(string(long), "\x00"); n != 1 || len(long) > 1_500 || strings.Contains(string(long), "\x1b") {
		t.Errorf("not one clean frame of bounded size: %q", long)
	}
}

func TestTopicWindow(t *testing.T) {
	var w topicWindow
	last := uint64(3_000)
	for n := uint64(1); n <= last; n++ {
		w.issue(n)
	}
	if !w.settle(5, last, false) {
		t.Error("a message too old to know is refused")
	}
	if !w.settle(2_990, last, false) || w.settle(2_990, last, false) {
		t.Error("a message can be settled once")
	}
	if !w.settle(2_995, last, true) || w.settle(2_500, last, false) || !w.settle(2_996, last, false) {
		t.Error("cumulative: everything up to the message, nothing after it")
	}
}
