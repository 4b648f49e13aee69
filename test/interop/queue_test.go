package interop_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/testserver"
)

// wantDeliveries compares messages of a queue, in order, with what is wanted of each: its body and how often it was
// delivered. Every delivery but the first must be flagged, the first must not be.
func wantDeliveries(t *testing.T, messages events, bodies []string, deliveries ...int) {
	t.Helper()
	wantBodies(t, messages, bodies)
	if len(messages) != len(deliveries) {
		t.Fatalf("%d messages, want %d:\n%s", len(messages), len(deliveries), messages)
	}
	for i, m := range messages {
		redelivered, flagged := m.Headers["redelivered"]
		if again := deliveries[i] > 1; flagged != again || again && redelivered != "true" {
			t.Errorf("delivery %d of %q: redelivered is %q (there: %v)", deliveries[i], m.Body, redelivered, flagged)
		}
		if got, want := m.Headers["x-delivery-count"], strconv.Itoa(deliveries[i]); got != want {
			t.Errorf("delivery of %q: x-delivery-count is %q, want %q", m.Body, got, want)
		}
	}
}

// shares counts how often each message of a queue was delivered, and how often as a first delivery: a consumer that
// leaves may give back what another one then has, flagged.
type shares struct{ deliveries, firsts map[string]int }

func newShares() shares { return shares{make(map[string]int), make(map[string]int)} }

func (s shares) add(body []byte, first bool) {
	s.deliveries[string(body)]++
	if first {
		s.firsts[string(body)]++
	}
}

// want checks that each of count messages was delivered, and not twice without the flag. A message that was on its way
// to a consumer that left has the flag although nobody saw it.
func (s shares) want(t *testing.T, count int) {
	t.Helper()
	for _, body := range numbers(0, count) {
		if s.deliveries[body] == 0 || s.firsts[body] > 1 {
			t.Errorf("%q was delivered %d times, %d times without redelivered:true, want once",
				body, s.deliveries[body], s.firsts[body])
		}
	}
	if got := len(s.deliveries); got != count {
		t.Errorf("%d different messages, want %d", got, count)
	}
}

// times returns n times the value.
func times(n, value int) []int {
	return slices.Repeat([]int{value}, n)
}

func TestAckModes(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, versions, func(t *testing.T, c client, version string) { testAckModes(t, srv, c, version) })
}

func testAckModes(t *testing.T, srv *testserver.Server, c client, version string) {
	modes := []string{"auto", "client", "client-individual"}
	if version == "1.0" {
		modes = modes[:2]
	}
	seen := c.start(t, srv, "ack_modes", options{Version: version, Channel: channel(t), Modes: modes}).finish(t)
	returned := map[string][]string{"client": numbers(5, 10), "client-individual": {"0", "2", "4", "6", "8"}}
	for _, mode := range modes {
		first := seen.of("message", "first:"+mode)
		wantDeliveries(t, first, numbers(0, 10), times(10, 1)...)
		ids := make(map[string]bool)
		for _, m := range first {
			ids[m.Headers["message-id"]] = true
			ack, found := m.Headers["ack"]
			if mode == "auto" && found || mode != "auto" && ack != m.Headers["message-id"] {
				t.Errorf("%s: ack is %q (there: %v), message-id %q", mode, ack, found, m.Headers["message-id"])
			}
		}
		if len(ids) != 10 {
			t.Errorf("%s: %d different message-ids on ten messages", mode, len(ids))
		}
		wantDeliveries(t, seen.of("message", "second:"+mode), append(slices.Clone(returned[mode]), "end"),
			append(times(len(returned[mode]), 2), 1)...)
	}
}

// swiftly bounds what a few hundred messages may take with a small prefetch-count: a consumer that pauses between two
// pulls would take many times that.
const swiftly = 3 * time.Second

// wantSwift checks the time from the first to the last message.
func wantSwift(t *testing.T, messages events) {
	t.Helper()
	first, last := messages[0].MS, messages[0].MS
	for _, m := range messages {
		first, last = min(first, m.MS), max(last, m.MS)
	}
	if took := last - first; took > float64(swiftly.Milliseconds()) {
		t.Errorf("%d messages took %.0f ms, want less than %v", len(messages), took, swiftly)
	}
}

func TestCompetingConsumers(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	const count, consumers = 400, 4
	each(t, []string{"1.1", "1.2"}, func(t *testing.T, c client, version string) {
		seen := c.start(t, srv, "competing", options{
			Version: version, Channel: channel(t), Count: count, Consumers: consumers,
		}).finish(t)
		var all []string
		for n := range consumers {
			got := seen.of("message", "consumer-"+strconv.Itoa(n))
			if len(got) == 0 {
				t.Errorf("consumer %d got nothing", n)
			}
			order := make([]int, 0, len(got))
			for _, m := range got {
				number, err := strconv.Atoi(string(m.Body))
				if err != nil {
					t.Fatal(err)
				}
				order = append(order, number)
				if flag, found := m.Headers["redelivered"]; found {
					t.Errorf("%q is flagged redelivered:%s, nothing was given back", m.Body, flag)
				}
			}
			if !slices.IsSorted(order) {
				t.Errorf("consumer %d got its share out of order: %v", n, order)
			}
			all = append(all, got.bodies()...)
		}
		wantSwift(t, seen.of("message", ""))
		want := numbers(0, count)
		slices.Sort(all)
		slices.Sort(want)
		if !slices.Equal(all, want) {
			t.Errorf("%d messages in all, want each of %d once: %q", len(all), count, all)
		}
	})
}

func TestNack(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	// All at once: most of the time they wait.
	running := make(map[string]*session)
	for _, c := range clients {
		for _, version := range versions[1:] {
			name := c.String() + "/" + version
			running[name] = c.start(t, srv, "nack", options{Version: version, Channel: channel(t, name)})
		}
	}
	for name, s := range running {
		t.Run(name, func(t *testing.T) {
			seen := s.finish(t)
			messages := seen.of("message", "consumer")
			wantDeliveries(t, messages, []string{"a", "b", "a", "a"}, 1, 1, 2, 3)
			nacks := seen.of("nack", "consumer")
			if len(nacks) != 2 {
				t.Fatalf("%d NACKs, want 2", len(nacks))
			}
			// queues.redelivery_delay is a second, doubled with each delivery.
			for i, want := range []float64{1000, 2000} {
				if waited := messages[2+i].MS - nacks[i].MS; waited < want-20 || waited > want+1500 {
					t.Errorf("redelivery %d came after %.0f ms, want %.0f", i+1, waited, want)
				}
			}

			cumulative := seen.of("message", "cumulative")
			if len(cumulative) != 6 {
				t.Fatalf("%d messages on ack:client with one NACK of three, want 6:\n%s", len(cumulative), cumulative)
			}
			wantDeliveries(t, cumulative[:3], []string{"c", "d", "e"}, 1, 1, 1)
			wantDeliveries(t, cumulative[3:], []string{"c", "d", "e"}, 2, 2, 2)
			for _, name := range []string{"individual", "cumulative"} {
				wantDeliveries(t, seen.of("message", "after:"+name), []string{"end"}, 1)
			}
		})
	}
}

// promptly is how soon another consumer must have what a lost one held: far below any ack wait, far above the 50 ms that
// the server aims at, since the machine runs other tests too.
const promptly = 1000 * time.Millisecond

func TestReconnectWithUnacked(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.1", "1.2"}, func(t *testing.T, c client, version string) {
		seen := c.start(t, srv, "reconnect", options{Version: version, Channel: channel(t)}).finish(t)
		wantDeliveries(t, seen.of("message", "first"), numbers(0, 10), times(10, 1)...)
		second := seen.of("message", "second")
		wantDeliveries(t, second, append(numbers(3, 10), "end"), append(times(7, 2), 1)...)
		dropped := seen.one(t, "dropped", "first").MS
		for _, m := range second[:7] {
			if after := m.MS - dropped; after < 0 || after > float64(promptly.Milliseconds()) {
				t.Errorf("%q came %.0f ms after the loss of its consumer, want within %v", m.Body, after, promptly)
			}
		}
	})
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, versions, func(t *testing.T, c client, version string) { testTransactions(t, srv, c, version) })
}

func testTransactions(t *testing.T, srv *testserver.Server, c client, version string) {
	unacked := []string{"kept"}
	if version == "1.0" {
		unacked = []string{"kept", "taken"}
	}
	ch := channel(t)
	seen := c.start(t, srv, "transactions",
		options{Version: version, Channel: ch, Unacked: len(unacked)}).finish(t)
	for _, destination := range []string{"/queue/" + ch + "/queue", "/topic/" + ch + "/topic"} {
		var got events
		for _, m := range seen.of("message", "consumer") {
			if m.Headers["destination"] == destination {
				got = append(got, m)
			}
			if tx, found := m.Headers["transaction"]; found {
				t.Errorf("%q has a header transaction:%s", m.Body, tx)
			}
		}
		wantBodies(t, got, []string{"before", "commit-0", "commit-1", "commit-2", "end"})
	}
	wantDeliveries(t, seen.of("message", "first"), []string{"kept", "taken"}, 1, 1)
	wantDeliveries(t, seen.of("message", "second"), append(unacked, "end"), append(times(len(unacked), 2), 1)...)
}
