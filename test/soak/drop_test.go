package soak_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	pulled = 1_000
	// returnTime is after what time, at the 99th percentile, another consumer has a message of one that was dropped,
	// beyond what reading takes anyway.
	returnTime = 50 * time.Millisecond * slowness
)

// drops are the ways in which a consumer goes. whole: it has read all that its socket gave. answered: the server has
// confirmed that it is gone.
var drops = []struct {
	name            string
	whole, answered bool
	drop            func(v *victim) error
}{
	{"close", false, false, func(v *victim) error { return v.conn.Close() }},
	{"reset", false, false, func(v *victim) error { return v.conn.Reset() }},
	{"half-close", true, false, (*victim).halfClose},
	{"unsubscribe", true, true, func(v *victim) error {
		return v.leave(stompclient.New("UNSUBSCRIBE", "id", "v", "receipt", "bye"))
	}},
	{"disconnect", true, true, func(v *victim) error { return v.leave(stompclient.New("DISCONNECT", "receipt", "bye")) }},
}

// TestDropDuringPull drops 39 consumers, one after the other, each during a pull of 1,000 messages: another one must
// have each message soon and in stream order, with redelivered:true where it may have been delivered before. A wide
// filter makes NATS believe that somebody is interested in everything, so that it cannot be told to forget a pull: then
// messages come as soon, but one may take its way through the dropped consumer's last pull, and so its place.
func TestDropDuringPull(t *testing.T) {
	t.Run("alone", func(t *testing.T) { dropAll(t, testserver.Start(t), 3, true) })
	t.Run("beside a wide filter", func(t *testing.T) {
		srv := testserver.Start(t)
		rig.Connect(t, srv.TCPAddr).Subscribe("w", "/topic/>")
		dropAll(t, srv, 1, false)
	})
}

// dropAll drops so many consumers for each ack mode and each way to go.
func dropAll(t *testing.T, srv *testserver.Server, times int, inOrder bool) {
	t.Helper()
	producer := rig.Connect(t, srv.TCPAddr)
	var took, idle []time.Duration
	for _, mode := range []string{"auto", "client", "client-individual"} {
		for _, d := range drops {
			if mode == "auto" && !d.whole {
				continue // What is in the socket is gone with ack:auto, so that no count can be expected.
			}
			for range times {
				round := len(took) + 1
				name := fmt.Sprintf("%d-%s-%s", round, mode, d.name)
				queue := "/queue/drop/" + name
				fill(t, producer, queue, pulled, bodySize[mode])
				v := &victim{conn: rig.Connect(t, srv.TCPAddr), mode: mode, got: map[int]bool{}, acked: map[int]bool{}, anyOrder: !inOrder}
				// A read of nothing, of a few, of most.
				if err := v.consume(queue, (round*137)%700); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				r := rig.Connect(t, srv.TCPAddr)
				v.dropped = time.Now()
				if err := d.drop(v); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				arrivals, err := v.rescue(r.Conn, queue, d.answered)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				took = append(took, quantile(arrivals, 0.99))
				_ = r.Close()
				if round%4 == 0 {
					idle = append(idle, idleRead(t, srv, producer, "/queue/drop/idle-"+name))
				}
			}
		}
	}
	got, usual := quantile(took, 0.5), quantile(idle, 0.5)
	t.Logf("another consumer had 99 %% of the messages %v after %d drops (median, largest %v); %v after SUBSCRIBE without one",
		got, len(took), quantile(took, 1), usual)
	if limit := usual + returnTime; got > limit {
		t.Errorf("messages of dropped consumers arrived after %v (median of the drops, p99 of each), want at most %v", got, limit)
	}
}

// bodySize is so large with ack:auto that not all is in the socket, and gone, before the consumer drops.
var bodySize = map[string]int{"auto": 8 << 10, "client": 100, "client-individual": 100}

// fill stores count messages that have their number, from 1, as payload.
func fill(tb testing.TB, producer *rig.Client, queue string, count, size int) {
	tb.Helper()
	for n := 1; n < count; n++ {
		producer.DoFrame(rig.Send(queue, payload(size, 0, n)))
	}
	producer.AskFrame(rig.Send(queue, payload(size, 0, count)))
}

// quantile returns the q-quantile.
func quantile(durations []time.Duration, q float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Clone(durations)
	slices.Sort(sorted)
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// idleRead is how long after SUBSCRIBE 99 % of 1,000 messages arrive that nobody had before.
func idleRead(t *testing.T, srv *testserver.Server, producer *rig.Client, queue string) time.Duration {
	t.Helper()
	fill(t, producer, queue, pulled, bodySize["client"])
	r := rig.Connect(t, srv.TCPAddr)
	defer r.Close()
	v := &victim{dropped: time.Now()}
	arrivals, err := v.rescue(r.Conn, queue, true)
	if err != nil {
		t.Fatal(err)
	}
	return quantile(arrivals, 0.99)
}

// victim is a consumer that is dropped.
type victim struct {
	conn    *rig.Client
	mode    string
	got     map[int]bool // What its socket gave.
	acked   map[int]bool // What was confirmed as acknowledged.
	dropped time.Time
	// anyOrder says that messages may come in any order.
	anyOrder bool
}

// consume subscribes and reads so many messages while more are on their way. In the client modes it acknowledges a
// third of them, confirmed.
func (v *victim) consume(queue string, count int) error {
	if err := v.conn.Confirm(rig.Subscribe("v", queue, "ack", v.mode, "prefetch-count", fmt.Sprint(pulled)), rig.Patience); err != nil {
		return err
	}
	for n := 1; len(v.got) < count; n++ {
		f, err := v.conn.Expect("MESSAGE", rig.Patience)
		if err != nil {
			return err
		}
		number := v.take(f)
		if id, found := f.Lookup("ack"); found && n == count/3 {
			if err := v.conn.Send(stompclient.New("ACK", "id", id, "receipt", "acked")); err != nil {
				return err
			}
			if err := v.untilReceipt("acked"); err != nil {
				return err
			}
			for m := range v.got {
				if m == number || m < number && v.mode == "client" {
					v.acked[m] = true
				}
			}
		}
	}
	return nil
}

func (v *victim) take(f stompclient.Frame) int {
	_, number, _ := parsePayload(f.Body) // A foreign body is number 0, which is missing nowhere and wanted nowhere.
	v.got[number] = true
	return number
}

// untilReceipt reads messages up to a RECEIPT.
func (v *victim) untilReceipt(id string) error {
	for {
		f, err := v.conn.Read(rig.Patience)
		switch {
		case err != nil:
			return fmt.Errorf("waiting for the receipt %s: %w", id, err)
		case f.Command == "RECEIPT" && f.Get("receipt-id") == id:
			return nil
		case f.Command != "MESSAGE":
			return fmt.Errorf("got %s, want the receipt %s", f, id)
		}
		v.take(f)
	}
}

// leave goes with a frame that has a receipt.
func (v *victim) leave(f stompclient.Frame) error {
	if err := v.conn.Send(f); err != nil {
		return err
	}
	err := v.untilReceipt("bye")
	v.dropped = time.Now()
	return err
}

// halfClose ends the sending direction only, and reads what the socket still gives: with ack:auto that counts.
func (v *victim) halfClose() error {
	if err := v.conn.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	for {
		f, err := v.conn.Read(rig.Patience)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			return fmt.Errorf("the server did not close: %w", err)
		case err == nil && f.Command == "MESSAGE":
			v.take(f)
		case err == nil:
			return fmt.Errorf("got %s, want only messages", f)
		case errors.Is(err, io.EOF), errors.Is(err, stompclient.ErrWire): // The last one may be cut off.
			v.dropped = time.Now()
			return nil
		default:
			return err
		}
	}
}

// rescue reads, as another consumer, all that the victim left, and returns how long after the drop each message came.
// ordered: the server knew of the drop before, so that all come in stream order; else what comes for the first time may
// overtake what is on its way back, but neither kind is out of order in itself.
func (v *victim) rescue(r *stompclient.Conn, queue string, ordered bool) (took []time.Duration, err error) {
	due := v.due()
	if err := r.Send(rig.Subscribe("r", queue, "ack", "client-individual", "prefetch-count", fmt.Sprint(2*pulled))); err != nil {
		return nil, err
	}
	last := map[bool]int{}
	for n := 0; n < len(due); {
		f, err := r.Expect("MESSAGE", rig.Patience)
		if err != nil {
			return took, fmt.Errorf("%d of %d messages: %w", n, len(due), err)
		}
		arrived := time.Since(v.dropped)
		_, number, err := parsePayload(f.Body)
		if err != nil || number < 1 || number > pulled || v.acked[number] {
			return took, fmt.Errorf("got %s, which nobody should get", f)
		}
		flagged := f.Get("redelivered") == "true"
		if v.got[number] && !flagged {
			return took, fmt.Errorf("%d was delivered to the dropped consumer, and now without redelivered:true", number)
		}
		if kind := flagged && !ordered; number <= last[kind] && !v.anyOrder {
			return took, fmt.Errorf("message %d came after %d (flagged: %t)", number, last[kind], flagged)
		} else {
			last[kind] = number
		}
		if due[number] {
			n++
			took = append(took, arrived)
		}
		if err := r.Send(stompclient.New("ACK", "id", f.Get("ack"))); err != nil {
			return took, err
		}
	}
	return took, nil
}

// due are the messages that the next consumer must get: with ack:auto what the victim got is done, although some of
// it may come again.
func (v *victim) due() map[int]bool {
	due := map[int]bool{}
	for n := 1; n <= pulled; n++ {
		if !v.acked[n] && (v.mode != "auto" || !v.got[n]) {
			due[n] = true
		}
	}
	return due
}
