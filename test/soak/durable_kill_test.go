package soak_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	killDestination = "/topic-store/kill/durable"
	durableKills    = 4
	// attached is how many connections share the durable subscription.
	attached = 3
)

// TestDurableKill durableKills the server again and again while connections share a durable subscription: nothing receipted is
// lost, and no second delivery lacks its mark. The last stop is a clean one: what was acknowledged before it is over.
func TestDurableKill(t *testing.T) {
	srv, err := testserver.Launch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Kill()
	l := &ledger{delivered: map[string]int{}, receipted: map[string]bool{}}
	for round := range durableKills {
		l.round(t, srv, round, func() { srv.Kill() })
		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	c := attach(t, srv)
	for left := l.missing(); len(left) > 0; left = l.missing() {
		f, err := c.Expect("MESSAGE", rig.Patience)
		if err != nil {
			t.Fatalf("%d receipted messages are lost, such as %s: %v", len(left), left[0], err)
		}
		if err := l.arrive(f); err != nil {
			t.Fatal(err)
		}
		c.DoFrame(stompclient.New("ACK", "id", f.Get("ack")))
	}
	t.Logf("%d messages receipted, %d delivered, %d of them again", len(l.receipted), len(l.delivered), l.again)
	if l.again == 0 || len(l.receipted) < 100 {
		t.Error("the durableKills hit nothing")
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
}

// ledger is what was receipted and delivered over all rounds.
type ledger struct {
	mu        sync.Mutex
	delivered map[string]int  // guarded by mu; how often
	receipted map[string]bool // guarded by mu
	again     int             // guarded by mu
}

// arrive notes a delivery, which must be marked if it is not the first.
func (l *ledger) arrive(f stompclient.Frame) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	body := string(f.Body)
	l.delivered[body]++
	if l.delivered[body] == 1 {
		return nil
	}
	l.again++
	if f.Get("redelivered") != "true" {
		return fmt.Errorf("delivery %d of %s is not marked: %s", l.delivered[body], body, f)
	}
	return nil
}

func (l *ledger) missing() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(l.receipted)), func(body string) bool { return l.delivered[body] > 0 })
}

func attach(t *testing.T, srv *testserver.Server) *rig.Client {
	t.Helper()
	c := rig.Connect(t, srv.TCPAddr, "client-id", "me")
	err := c.Send(rig.Subscribe("s", killDestination, "durable", "true", "x-start", "first", "ack", "client-individual", "prefetch-count", "50"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// round publishes and consumes until the kill.
func (l *ledger) round(t *testing.T, srv *testserver.Server, round int, kill func()) {
	t.Helper()
	var team crew
	for range attached {
		c := attach(t, srv)
		team.launch(func() error { return l.consume(c.Conn) })
	}
	p := rig.Connect(t, srv.TCPAddr)
	team.launch(func() error { return l.publish(p.Conn, round) })
	team.launch(func() error { return l.receipts(p.Conn) })
	l.mu.Lock()
	goal := len(l.receipted) + 500
	l.mu.Unlock()
	rig.Until(t, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if got := len(l.receipted); got < goal {
			return fmt.Errorf("%d messages receipted, want %d", got, goal)
		}
		return nil
	})
	kill()
	if err := team.wait(); err != nil {
		t.Fatal(err)
	}
}

// publish sends until the connection ends.
func (l *ledger) publish(c *stompclient.Conn, round int) error {
	for i := 0; ; i++ {
		body := strconv.Itoa(round) + ":" + strconv.Itoa(i)
		if err := c.Send(rig.Send(killDestination, []byte(body), "receipt", body)); err != nil {
			return nil //nolint:nilerr // the kill
		}
		time.Sleep(500 * time.Microsecond) // A load that the consumers keep up with.
	}
}

func (l *ledger) receipts(c *stompclient.Conn) error {
	for {
		f, err := c.Read(rig.Patience)
		if err != nil {
			return nil //nolint:nilerr // the kill
		}
		if f.Command != "RECEIPT" {
			return fmt.Errorf("got %s, want a RECEIPT", f)
		}
		l.mu.Lock()
		l.receipted[f.Get("receipt-id")] = true
		l.mu.Unlock()
	}
}

// consume acknowledges two of three messages until the connection ends.
func (l *ledger) consume(c *stompclient.Conn) error {
	for n := 0; ; n++ {
		f, err := c.Expect("MESSAGE", rig.Patience)
		if err != nil {
			if f.Command == "ERROR" {
				return errors.New(f.String())
			}
			return nil // The kill.
		}
		if err := l.arrive(f); err != nil {
			return err
		}
		if n%3 == 0 {
			continue
		}
		if err := c.Send(stompclient.New("ACK", "id", f.Get("ack"))); err != nil {
			return nil //nolint:nilerr // the kill
		}
	}
}
