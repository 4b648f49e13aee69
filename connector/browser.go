package connector

import (
	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
)

// notOnBrowser has the headers that SUBSCRIBE with browser:true cannot have.
var notOnBrowser = map[string]string{
	"auto-delete": "a browser is no consumer",
}

var _ bridge.BrowseReceiver = (*subscription)(nil)

// subscribeBrowser is SUBSCRIBE with browser:true: it shows what the queue holds, ends with a MESSAGE that has
// browser:end, and takes nothing. What was sent before on this connection is shown too. ACK and NACK are accepted in the
// client modes and change nothing.
func (c *conn) subscribeBrowser(f *frame.Frame, s *subscription) error {
	if err := unsupported(f, notOnBrowser); err != nil {
		return err
	}
	s.held = true
	number := c.reserve(c.receiptOf(f), 0, s.release)
	if !c.turn() {
		return errFailed
	}
	view := bridge.View{Version: c.version, Destination: s.destination}
	look, err := c.srv.bridge.BrowseQueue(s.route, view, s)
	if err != nil {
		c.settle(number, err)
		return errFailed
	}
	c.fetches(s, look)
	c.settle(number, nil)
	return nil
}

// Room implements bridge.BrowseReceiver.
func (s *subscription) Room() int {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.closed || s.held || c.failed.Load() || c.out.closed {
		return 0
	}
	return max(int(c.srv.cfg.Limits.PendingBytes)/2-c.out.pending(), 0)
}

// DeliverBrowsed implements bridge.BrowseReceiver.
func (s *subscription) DeliverBrowsed(tail []byte) bool { return s.DeliverStored(tail) }
