package soak_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	delayKills  = 6
	delayQueues = 3
	// longestDelay is of the delayed messages, in ms.
	longestDelay = 5_000
	// moverSilence is after what time a message comes that was with a mover when the server was killed.
	moverSilence = 31 * time.Second
)

// schedule is what is known of delayed messages, by body. It is safe for concurrent use.
type schedule struct {
	mu       sync.Mutex
	due      map[string]time.Time // not before
	receipts map[string]bool
	places   map[string]string // the queue's x-seq
	faults   []string
}

func (s *schedule) sent(body string, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[body] = due
}

func (s *schedule) receipt(bodies ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, body := range bodies {
		s.receipts[body] = true
	}
}

// deliver checks that a message is not early, and that it was stored once.
func (s *schedule) deliver(f stompclient.Frame) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	body := string(f.Body)
	if due := s.due[body]; now.Before(due) {
		s.faults = append(s.faults, fmt.Sprintf("%q came %s early", body, due.Sub(now)))
	}
	if place, ok := s.places[body]; ok && place != f.Get("x-seq") {
		s.faults = append(s.faults, fmt.Sprintf("%q was stored twice, at %s and %s", body, place, f.Get("x-seq")))
	}
	s.places[body] = f.Get("x-seq")
}

// missing is how many receipted messages have not come.
func (s *schedule) missing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for body := range s.receipts {
		if _, ok := s.places[body]; !ok {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d of %d receipted messages have not come", n, len(s.receipts))
	}
	return nil
}

// TestDelayKill ends the process by SIGKILL again and again while delayed messages are sent, wait and become due: each
// that was receipted comes, none early, and none is stored twice.
func TestDelayKill(t *testing.T) {
	srv := testserver.Start(t)
	s := &schedule{due: make(map[string]time.Time), receipts: make(map[string]bool), places: make(map[string]string)}
	for life := range delayKills {
		team := &crew{}
		for q := range delayQueues {
			queue := fmt.Sprint("/queue/delay/kill/", q)
			name := fmt.Sprintf("life %d queue %d", life, q)
			r := rand.New(rand.NewPCG(uint64(life), uint64(q)))
			team.launch(func() error { return ended(produceDelayed(srv, s, queue, name, r)) })
			team.launch(func() error { return ended(consumeDelayed(srv, s, queue)) })
		}
		time.Sleep(time.Second + time.Duration(life*317)*time.Millisecond) // When it hits is the point.
		srv.Kill()
		if err := team.wait(); err != nil {
			t.Fatal(err)
		}
		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	for q := range delayQueues {
		c := rig.Connect(t, srv.TCPAddr)
		go func() { _ = consumeFrom(c.Conn, s, fmt.Sprint("/queue/delay/kill/", q)) }() // Ends with the connection.
	}
	deadline := time.Now().Add(longestDelay*time.Millisecond + moverSilence + rig.Patience)
	for s.missing() != nil && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	if err := s.missing(); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d messages receipted, %d came", len(s.receipts), len(s.places))
	if len(s.receipts) < 1000 {
		t.Errorf("only %d messages were receipted", len(s.receipts))
	}
	if len(s.faults) > 0 {
		t.Errorf("%d faults: %s", len(s.faults), strings.Join(s.faults[:min(len(s.faults), 10)], "\n"))
	}
}

// produceDelayed sends delayed messages, some with an id, some in transactions, until the connection ends.
func produceDelayed(srv *testserver.Server, s *schedule, queue, name string, r *rand.Rand) error {
	c, err := rig.Open(srv.TCPAddr)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := 0; ; n++ {
		var bodies []string
		var frames []byte
		one := func(nameValue ...string) {
			body := fmt.Sprintf("%s message %d.%d", name, n, len(bodies))
			delay := r.IntN(longestDelay) + 1
			s.sent(body, time.Now().Add(time.Duration(delay)*time.Millisecond))
			bodies = append(bodies, body)
			nameValue = append(nameValue, "x-delay", strconv.Itoa(delay))
			frames = append(frames, rig.Send(queue, []byte(body), nameValue...).Encode("1.2")...)
		}
		receipt := fmt.Sprint("r", n)
		switch n % 4 {
		case 0:
			frames = stompclient.New("BEGIN", "transaction", "t").Encode("1.2")
			for range 3 {
				one("transaction", "t")
			}
			frames = append(frames, stompclient.New("COMMIT", "transaction", "t", "receipt", receipt).Encode("1.2")...)
			// The delay counts from COMMIT, which is not before now.
		case 1:
			one("receipt", receipt, "x-dedup-id", name+receipt)
		default:
			one("receipt", receipt, "expiration", "3600000")
		}
		if err := c.Write(frames); err != nil {
			return err
		}
		f, err := c.Read(rig.Patience)
		if err != nil {
			return err
		}
		if f.Command != "RECEIPT" || f.Get("receipt-id") != receipt {
			return other(f, "the receipt "+receipt)
		}
		s.receipt(bodies...)
	}
}

func consumeDelayed(srv *testserver.Server, s *schedule, queue string) error {
	c, err := rig.Open(srv.TCPAddr)
	if err != nil {
		return err
	}
	defer c.Close()
	return consumeFrom(c, s, queue)
}

func consumeFrom(c *stompclient.Conn, s *schedule, queue string) error {
	if err := c.Send(rig.Subscribe("c", queue, "ack", "client-individual")); err != nil {
		return err
	}
	for {
		f, err := c.Read(10 * rig.Patience)
		if err != nil {
			return err
		}
		if f.Command != "MESSAGE" {
			return other(f, "a MESSAGE")
		}
		s.deliver(f)
		if err := c.Send(stompclient.New("ACK", "id", f.Get("ack"))); err != nil {
			return err
		}
	}
}

// TestExpiryKill ends the process by SIGKILL while messages that expire wait: a browser shows each as long as its time
// has not come, and none that is over for seconds.
func TestExpiryKill(t *testing.T) {
	const queue, longest = "/queue/expiry/kill", 4_000
	srv := testserver.Start(t)
	ends := make(map[string]time.Time) // not before
	r := rand.New(rand.NewPCG(1, 1))
	for life := range 4 {
		c := rig.Connect(t, srv.TCPAddr)
		for n := range 300 {
			body := fmt.Sprint(life, "-", n)
			ms := r.IntN(longest) + 1
			f := rig.Send(queue, []byte(body), "receipt", "r", "expiration", strconv.Itoa(ms))
			if n%2 == 0 {
				f = rig.Send(queue, []byte(body), "receipt", "r", "expires", fmt.Sprint(time.Now().UnixMilli()+int64(ms)))
			}
			ends[body] = time.Now().Add(time.Duration(ms) * time.Millisecond)
			c.DoFrame(f)
			if f, err := c.Read(rig.Patience); err != nil || f.Command != "RECEIPT" {
				t.Fatal(unexpected(f, err, "a RECEIPT"))
			}
		}
		srv.Kill()
		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
		c = rig.Connect(t, srv.TCPAddr)
		before := time.Now()
		c.DoFrame(rig.Subscribe("b", queue, "browser", "true"))
		shown := make(map[string]bool)
		for {
			f, err := c.Read(rig.Patience)
			if err != nil || f.Command != "MESSAGE" {
				t.Fatal(unexpected(f, err, "a MESSAGE"))
			}
			if f.Get("browser") == "end" {
				break
			}
			shown[string(f.Body)] = true
		}
		after := time.Now()
		for body, end := range ends {
			if end.After(after) && !shown[body] {
				t.Errorf("life %d: %s is gone %s early", life, body, end.Sub(after))
			}
			if end.Before(before.Add(-3*time.Second)) && shown[body] {
				t.Errorf("life %d: %s is there %s after its time", life, body, before.Sub(end))
			}
		}
		t.Logf("life %d: %d of %d shown", life, len(shown), len(ends))
	}
}
