package identity_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// held is a message that a client has not acknowledged.
type held struct {
	ack    string
	octets int
}

// TestUnackedOfManySubscriptions: what limits.unacked and limits.unacked_bytes say is of the connection, however many
// subscriptions it has, how they share it and how large their messages are; only a message that is larger by itself comes alone.
// It pauses them and nothing else: all arrives, each queue in its order, and as a first delivery.
func TestUnackedOfManySubscriptions(t *testing.T) {
	const (
		queues, each = 8, 40
		most, octets = 12, 96 << 10
	)
	g := start(t, func(c *connector.Config) { c.Limits.Unacked, c.Limits.UnackedBytes = most, octets })
	from, c := g.login(), g.login()
	for q := range queues {
		c.Subscribe(fmt.Sprint(q), "/queue/"+fmt.Sprint(q), "ack", "client-individual", "prefetch-count", "20")
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for i := range each {
		for q := range queues {
			size := chance.IntN(3_000)
			switch chance.IntN(20) {
			case 0:
				size = 120_000 // More than the limit.
			case 1, 2, 3:
				size = 40_000
			}
			from.Publish("/queue/"+fmt.Sprint(q), fmt.Sprintf("%d %s", i, strings.Repeat("x", size)))
		}
	}
	from.Publish("/topic/x", "", "receipt", "all")
	from.Receipt("all")

	var holds []held
	next, sum, total, fullest := make([]int, queues), 0, queues*each, 0
	for total > 0 {
		// As much as comes, then some of it is acknowledged.
		c.Do("BEGIN", "transaction", "t", "receipt", "r")
		c.Do("ABORT", "transaction", "t")
		for f := range until(t, c, "RECEIPT") {
			total--
			if f.Get("redelivered") != "" || f.Get("x-delivery-count") != "1" {
				t.Fatalf("got %s, want a first delivery", f)
			}
			q, _ := strconv.Atoi(f.Get("subscription"))
			number, _, _ := strings.Cut(string(f.Body), " ")
			if number != fmt.Sprint(next[q]) {
				t.Fatalf("queue %d: got message %s, want %d", q, number, next[q])
			}
			next[q]++
			holds = append(holds, held{f.Get("ack"), len(f.Body)})
			sum += len(f.Body)
			if len(holds) > most || sum > octets && len(holds) > 1 {
				t.Fatalf("the client holds %d messages of %d octets, want at most %d of %d", len(holds), sum, most, octets)
			}
			fullest = max(fullest, len(holds))
		}
		chance.Shuffle(len(holds), func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
		some := min(len(holds), 1+chance.IntN(4))
		for _, h := range holds[:some] {
			c.Do("ACK", "id", h.ack)
			sum -= h.octets
		}
		holds = holds[some:]
	}
	if fullest < most/2 {
		t.Errorf("the client held at most %d messages at once", fullest)
	}
}

// until yields the MESSAGEs that come before a frame of another kind, which it wants.
func until(t *testing.T, c *rig.Client, command string) func(yield func(stompclient.Frame) bool) {
	return func(yield func(stompclient.Frame) bool) {
		for {
			f, err := c.Read(rig.Patience)
			if err != nil {
				t.Fatal(err)
			}
			if f.Command == command {
				return
			}
			if f.Command != "MESSAGE" {
				t.Fatalf("got %s", f)
			}
			if !yield(f) {
				return
			}
		}
	}
}

// TestUnackedOfIdleSubscriptions: where more subscriptions wait than the limit allows messages, and one comes to each at once,
// the client gets as many as are allowed. The others go to somebody else at once, as first deliveries.
func TestUnackedOfIdleSubscriptions(t *testing.T) {
	const queues, most = 8, 3
	g := start(t, func(c *connector.Config) {
		c.Limits.Unacked = most
		c.Queues.Settings = []connector.QueueSetting{{Queue: "0", Exclusive: true}, {Queue: "1", Prioritized: true}}
	})
	from, c := g.login(), g.login()
	for q := range queues {
		c.Subscribe(fmt.Sprint(q), "/queue/"+fmt.Sprint(q), "ack", "client-individual")
	}
	for q := range queues {
		from.Publish("/queue/"+fmt.Sprint(q), fmt.Sprint(q))
	}
	from.Publish("/topic/x", "", "receipt", "all")
	from.Receipt("all")
	got := map[string]bool{}
	for range most {
		got[string(c.Next("MESSAGE").Body)] = true
	}
	others := make([]*rig.Client, queues)
	for q := range queues {
		if name := fmt.Sprint(q); !got[name] {
			others[q] = g.login() // Each has room for what comes.
			others[q].Subscribe("1", "/queue/"+name, "ack", "client-individual")
		}
	}
	if others[0] != nil {
		c.Do("UNSUBSCRIBE", "id", "0") // The queue is c's own.
	}
	for q, other := range others {
		if other == nil {
			continue
		}
		if f := other.Next("MESSAGE"); string(f.Body) != fmt.Sprint(q) || f.Get("redelivered") != "" || f.Get("x-delivery-count") != "1" {
			t.Errorf("queue %d: got %s", q, f)
		}
	}
	c.Do("BEGIN", "transaction", "t", "receipt", "r")
	for f := range until(t, c, "RECEIPT") {
		t.Errorf("got %s above the limit", f)
	}
}

// TestUnackedThatIsHeldTooLong: what a client holds for longer than it may makes room for its other subscriptions at once.
func TestUnackedThatIsHeldTooLong(t *testing.T) {
	g := start(t, func(c *connector.Config) { c.Limits.Unacked = 1 })
	c, other := g.login(), g.login()
	c.Subscribe("1", "/queue/a", "ack", "client-individual", "x-ack-wait", "1000")
	c.Publish("/queue/a", "held")
	c.Next("MESSAGE")
	c.Subscribe("2", "/queue/b", "ack", "client-individual")
	c.Publish("/queue/b", "waits", "receipt", "r")
	c.Receipt("r")
	other.Subscribe("1", "/queue/a", "ack", "client-individual")
	begun := time.Now()
	if f := c.Next("MESSAGE"); string(f.Body) != "waits" {
		t.Errorf("got %s", f)
	}
	if took := time.Since(begun); took > 5*time.Second { // By itself a pull looks each 10 s.
		t.Errorf("it came after %v", took)
	}
	other.Next("MESSAGE")
}
