package soak_test

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	manyVictims  = 30
	manyMessages = 6_000
)

// TestDropManyAtOnce drops 30 consumers of one queue at the same moment, each during a pull of 1,000, while a producer
// still sends. One consumer gets everything that they held, flagged, and nothing of it only after an AckWait. Nothing is
// lost. (What one of them gives back may go to another that drops next, so there is no order to expect.)
func TestDropManyAtOnce(t *testing.T) {
	srv := testserver.Start(t)
	const queue = "/queue/drop/many"
	producer := rig.Connect(t, srv.TCPAddr)
	fill(t, producer, queue, manyMessages/2, 100)
	h := &holdings{holder: map[int][]int{}}
	victims := make([]*victim, manyVictims)
	for i := range victims {
		victims[i] = &victim{conn: rig.Connect(t, srv.TCPAddr), mode: []string{"client", "client-individual"}[i%2], got: map[int]bool{}, acked: map[int]bool{}}
		victims[i].conn.AskFrame(rig.Subscribe("v", queue, "ack", victims[i].mode, "prefetch-count", fmt.Sprint(pulled)))
	}
	rescuer := rig.Connect(t, srv.TCPAddr)
	var team crew
	team.launch(func() error {
		for n := manyMessages/2 + 1; n <= manyMessages; n++ {
			if err := producer.Send(rig.Send(queue, payload(100, 0, n))); err != nil {
				return err
			}
		}
		return nil
	})
	for i, v := range victims {
		team.launch(func() error { return h.readAndDrop(i, v) })
	}
	rescuer.AskFrame(rig.Subscribe("r", queue, "ack", "client-individual", "prefetch-count", "1000"))
	if err := h.rescueAll(rescuer.Conn); err != nil {
		t.Error(err)
	}
	if err := team.wait(); err != nil {
		t.Error(err)
	}
	if err := h.check(); err != nil {
		t.Error(err)
	}
}

// holdings is what the victims were seen to hold, and what the rescuer got.
type holdings struct {
	mu      sync.Mutex
	holder  map[int][]int // guarded by mu; by message, the victims that got it
	rescued []rescued     // owned by the rescuer until it has ended
}

type rescued struct {
	number  int
	flagged bool
}

// readAndDrop takes some messages, different in number for each victim, and drops the socket.
func (h *holdings) readAndDrop(i int, v *victim) error {
	for range i * 3 {
		f, err := v.conn.Expect("MESSAGE", 500*time.Millisecond)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			break // The others had them all.
		}
		if err != nil {
			return fmt.Errorf("victim %d: %w", i, err)
		}
		number := v.take(f)
		h.mu.Lock()
		h.holder[number] = append(h.holder[number], i)
		h.mu.Unlock()
	}
	return v.conn.Reset()
}

// rescueAll acknowledges until it has every message.
func (h *holdings) rescueAll(c *stompclient.Conn) error {
	seen := map[int]bool{}
	for len(seen) < manyMessages {
		f, err := c.Expect("MESSAGE", rig.Patience)
		if err != nil {
			return fmt.Errorf("after %d of %d messages: %w", len(seen), manyMessages, err)
		}
		_, number, err := parsePayload(f.Body)
		if err != nil {
			return err
		}
		if seen[number] {
			return fmt.Errorf("message %d came twice although it was acknowledged", number)
		}
		seen[number] = true
		h.rescued = append(h.rescued, rescued{number, f.Get("redelivered") == "true"})
		if err := c.Send(stompclient.New("ACK", "id", f.Get("ack"))); err != nil {
			return err
		}
	}
	return nil
}

// check wants a flag on all that a victim had.
func (h *holdings) check() error {
	returned := 0
	for _, r := range h.rescued {
		holders := h.holder[r.number]
		if len(holders) > 0 && !r.flagged {
			return fmt.Errorf("message %d had been delivered to victims %v and came without redelivered:true", r.number, holders)
		}
		returned += len(holders)
	}
	if returned == 0 {
		return errors.New("the victims held nothing, so that nothing was shown")
	}
	return nil
}
