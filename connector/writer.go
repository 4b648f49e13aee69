package connector

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// writeLoop writes the outbox to the socket until it is closed and empty, or the socket fails.
func (c *conn) writeLoop() {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic in a writer", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			c.abort()
		}
	}()
	var burst []chunk
	var vectors net.Buffers
	last := time.Now()
	for {
		c.mu.Lock()
		burst = c.out.take(burst[:0])
		closed := c.out.closed
		beat := c.beat
		c.mu.Unlock()
		if len(burst) == 0 {
			if closed || !c.idle(beat, &last) {
				return
			}
			continue
		}
		vectors = vectors[:0]
		for _, b := range burst {
			vectors = append(vectors, b.data)
		}
		if err := c.write(vectors); err != nil {
			c.writeFailed(err)
			return
		}
		last = time.Now()
		c.wrote(burst)
		clear(burst)
	}
}

// idle waits for work. When nothing was written for half the heart-beat interval it sends an EOL (STOMP 1.2,
// Heart-beating). false: the socket failed.
func (c *conn) idle(beat time.Duration, last *time.Time) bool {
	if beat == 0 {
		<-c.wake
		// Whoever fills the outbox goes first: one write then carries many messages instead of one or two.
		runtime.Gosched()
		return true
	}
	timer := time.NewTimer(time.Until(last.Add(beat / 2)))
	defer timer.Stop()
	select {
	case <-c.wake:
		runtime.Gosched() // See above.
		return true
	case <-timer.C:
	}
	if err := c.write(net.Buffers{{'\n'}}); err != nil {
		c.writeFailed(err)
		return false
	}
	c.traffic.octetsOut.Add(1)
	*last = time.Now()
	return true
}

// write writes all of buffers; a socket that accepts nothing for limits.write_stall is an error.
func (c *conn) write(buffers net.Buffers) error {
	for {
		if err := c.stall.arm(c.net, c.srv.cfg.Limits.WriteStall); err != nil {
			return err
		}
		n, err := buffers.WriteTo(c.net)
		if err == nil {
			return nil
		}
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

// writeFailed ends the writer. A peer that only does not read is cut; one that is gone may have left frames in the
// socket that still count, so the reader goes on to their end.
func (c *conn) writeFailed(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.failed.Load() {
		c.audit.Warn("client.slow", "session", c.session, "reason", "limits.write_stall")
		c.abort()
		return
	}
	c.mu.Lock()
	c.mute()
	c.mu.Unlock()
}

// wrote settles what a burst has delivered and lets the pulls go on.
func (c *conn) wrote(burst []chunk) {
	c.traffic.wrote(burst)
	c.mu.Lock()
	settled := c.out.done(burst)
	for _, a := range settled {
		a.sub.unacked--
		c.unacked--
		c.held -= a.d.Size
	}
	c.mu.Unlock()
	for _, a := range settled {
		if err := c.srv.bridge.Ack(a.d); err != nil {
			c.log.Debug("ack not sent, the message may come again", "err", err)
		}
	}
	if c.queueSubs.Load() > 0 {
		c.wakePulls()
	}
}

// pulls are the queue subscriptions of this connection.
func (c *conn) pulls() []pull {
	c.mu.Lock()
	defer c.mu.Unlock()
	pulls := make([]pull, 0, len(c.queues))
	for s := range c.queues {
		pulls = append(pulls, s.pull)
	}
	return pulls
}

// wakePulls tells every pull of this connection that there may be room.
func (c *conn) wakePulls() {
	c.mu.Lock()
	for s := range c.queues {
		s.pull.Wake()
	}
	c.mu.Unlock()
}
