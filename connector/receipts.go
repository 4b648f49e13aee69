package connector

import (
	"errors"
	"sync"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
)

// receipts is the FIFO of a connection's frames that wait for their effect: a RECEIPT leaves only when all frames
// before it have taken effect (STOMP 1.2, RECEIPT). A frame whose effect failed ends the connection in its turn. All of
// it is guarded by conn.mu.
type receipts struct {
	slots []slot
	head  int    // index of the oldest open slot
	base  uint64 // number of slots[head]
	size  int    // octets that wait
	room  sync.Cond
}

// slot is one frame that waits.
type slot struct {
	receipt string
	size    int
	filled  bool
	twice   bool // nothing was stored, because it was before
	err     error
	then    func() // runs, with conn.mu held, right after the RECEIPT
}

func (r *receipts) open() int { return len(r.slots) - r.head }

// push adds a slot and returns its number.
func (r *receipts) push(s slot) uint64 {
	if r.head > 0 && r.head == len(r.slots) {
		r.slots, r.head = r.slots[:0], 0
	}
	if r.head > 1024 && r.head > len(r.slots)/2 {
		n := copy(r.slots, r.slots[r.head:])
		clear(r.slots[n:])
		r.slots, r.head = r.slots[:n], 0
	}
	r.slots = append(r.slots, s)
	r.size += s.size
	return r.base + uint64(r.open()) - 1
}

// fill records the outcome of a slot; bridge.ErrDuplicate is none that fails. Unknown numbers are those of a connection that has failed meanwhile.
func (r *receipts) fill(number uint64, err error) {
	if i := number - r.base; i < uint64(r.open()) {
		s := &r.slots[r.head+int(i)]
		s.filled, s.err = true, err
		if errors.Is(err, bridge.ErrDuplicate) {
			s.twice, s.err = true, nil
		}
	}
}

// pop removes the oldest slot if it is filled.
func (r *receipts) pop() (slot, bool) {
	if r.open() == 0 || !r.slots[r.head].filled {
		return slot{}, false
	}
	s := r.slots[r.head]
	r.slots[r.head] = slot{}
	r.head++
	r.base++
	r.size -= s.size
	return s, true
}

// reserve takes the next place in the FIFO. It waits while limits.publish_window frames, or limits.pending_bytes
// octets, wait for NATS already: reading of this socket pauses meanwhile (DESIGN section 8). Called by the reader only.
func (c *conn) reserve(receipt string, size int, then func()) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	limits := &c.srv.cfg.Limits
	for c.receipts.open() > 0 && !c.out.closed &&
		(c.receipts.open() >= limits.PublishWindow || c.receipts.size+size > int(limits.PendingBytes)) {
		c.receipts.room.Wait()
	}
	return c.receipts.push(slot{receipt: receipt, size: size, then: then})
}

// turn waits until all frames before the newest one have taken effect, for a SUBSCRIBE that is shown what they stored.
// Reading of this socket pauses meanwhile. False: the connection has ended. Called by the reader only.
func (c *conn) turn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.receipts.open() > 1 && !c.out.closed {
		c.receipts.room.Wait()
	}
	return !c.out.closed
}

// settle records the outcome of a frame and sends every RECEIPT, or the ERROR, that is due. It does not block and may
// be called from any goroutine that holds no lock of the connection.
func (c *conn) settle(number uint64, err error) {
	c.mu.Lock()
	c.receipts.fill(number, err)
	c.popReceipts()
	c.mu.Unlock()
	c.kick()
}

// popReceipts sends what is due. c.mu is held.
func (c *conn) popReceipts() {
	popped := false
	for !c.failed.Load() {
		s, ok := c.receipts.pop()
		if !ok {
			break
		}
		popped = true
		if s.err != nil {
			c.fail(s.err, s.receipt)
			break
		}
		if s.receipt != "" && !c.out.closed {
			c.out.fresh.count(frame.Receipt)
			c.out.keep(appendReceipt(c.out.tail(receiptRoom+len(s.receipt)), c.version, s))
		}
		if s.then != nil {
			s.then()
		}
	}
	if popped {
		c.receipts.room.Broadcast()
	}
}

// done answers a frame that has taken effect at once.
func (c *conn) done(receipt string) {
	if receipt == "" {
		return
	}
	c.settle(c.reserve(receipt, 0, nil), nil)
}

// receiptRoom is what a RECEIPT has beside the receipt id, when nothing in that is escaped.
const receiptRoom = len("RECEIPT\nreceipt-id:\n\n\x00\n")

func appendReceipt(dst []byte, v frame.Version, s slot) []byte {
	dst = append(dst, "RECEIPT\n"...)
	dst = frame.AppendHeader(dst, v, "receipt-id", s.receipt)
	if s.twice {
		dst = append(dst, "x-duplicate:true\n"...)
	}
	return append(dst, '\n', 0, '\n')
}
