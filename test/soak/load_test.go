package soak_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// inFlight is how many receipts a producer at full speed waits for.
const inFlight = 100

// produceLoad sends to a queue, with inFlight receipts open, until it is told to stop and all are there. sent counts
// the receipts.
func produceLoad(c *stompclient.Conn, queue string, stop *atomic.Bool, sent *atomic.Int64) error {
	body := []byte(strings.Repeat("load ", 50))
	frame := rig.Send(queue, body, "receipt", "r").Encode("1.2")
	burst := []byte(strings.Repeat(string(frame), inFlight/2))
	if err := c.Write(burst); err != nil {
		return err
	}
	open := inFlight / 2
	for {
		more := !stop.Load()
		if more {
			if err := c.Write(burst); err != nil {
				return err
			}
			open += inFlight / 2
		}
		for range inFlight / 2 {
			f, err := c.Read(rig.Patience)
			if err != nil || f.Command != "RECEIPT" {
				return unexpected(f, err, "a RECEIPT of "+queue)
			}
			open--
			sent.Add(1)
		}
		if !more && open == 0 {
			return nil
		}
	}
}

// consumeLoad reads, and acknowledges where that is asked for, until the connection is closed.
func consumeLoad(c *stompclient.Conn, received *atomic.Int64) error {
	for n := 1; ; n++ {
		f, err := c.Read(2 * rig.Patience)
		if err != nil {
			return nil //nolint:nilerr // Closed by the test; what is missing shows in the count.
		}
		if f.Command != "MESSAGE" {
			return unexpected(f, nil, "a MESSAGE")
		}
		received.Add(1)
		if id, found := f.Lookup("ack"); found && n%50 == 0 {
			if err := c.Send(stompclient.New("ACK", "id", id)); err != nil {
				return nil //nolint:nilerr // See above.
			}
		}
	}
}

// waitEqual waits until got has reached want.
func waitEqual(got, want *atomic.Int64) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(rig.Patience); got.Load() != want.Load(); <-tick.C {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d messages received, want %d", got.Load(), want.Load())
		}
	}
	return nil
}
