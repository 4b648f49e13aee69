package broker

import (
	"net"
	"runtime"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// gatherMost bounds what a gatherer holds unread; then the server's side waits as on a full socket.
const gatherMost = 128 << 10

// gatherers connects to an embedded server as the server itself would, but reads ahead. The server's side of an
// in-process connection is an unbuffered pipe into which it writes 512 octets at a time: without this a reader wakes for
// every one or two messages, and so does everything behind it.
type gatherers struct{ srv *server.Server }

// InProcessConn implements nats.InProcessConnProvider.
func (g gatherers) InProcessConn() (net.Conn, error) {
	nc, err := g.srv.InProcessConn()
	if err != nil {
		return nil, err
	}
	return gather(nc), nil
}

// gather reads nc ahead of the reader of what it returns. Close ends and joins the goroutine that does it.
func gather(nc net.Conn) net.Conn {
	c := &gatherer{Conn: nc}
	c.change.L = &c.mu
	c.ahead.Go(c.run)
	return c
}

type gatherer struct {
	net.Conn
	ahead sync.WaitGroup

	mu     sync.Mutex
	change sync.Cond
	buf    []byte // guarded by mu
	read   int    // guarded by mu; octets of buf that are read
	err    error  // guarded by mu
}

func (c *gatherer) run() {
	part := make([]byte, 32<<10)
	for {
		n, err := c.Conn.Read(part)
		if !c.store(part[:n], err) {
			return
		}
	}
}

// store keeps what was read once there is room; false at the end.
func (c *gatherer) store(part []byte, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.buf)-c.read > gatherMost && c.err == nil {
		c.change.Wait()
	}
	if c.read > gatherMost || c.read == len(c.buf) {
		c.buf = c.buf[:copy(c.buf, c.buf[c.read:])]
		c.read = 0
	}
	c.buf = append(c.buf, part...)
	if c.err == nil {
		c.err = err
	}
	c.change.Broadcast()
	return c.err == nil
}

// Read implements net.Conn. What was read ahead comes before the error that ended it.
func (c *gatherer) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read == len(c.buf) {
		for c.read == len(c.buf) && c.err == nil {
			c.change.Wait()
		}
		// The server goes on first: more comes with this read.
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	if c.read == len(c.buf) {
		return 0, c.err
	}
	n := copy(p, c.buf[c.read:])
	c.read += n
	c.change.Broadcast()
	return n, nil
}

// Close implements net.Conn.
func (c *gatherer) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	if c.err == nil {
		c.err = net.ErrClosed
	}
	c.change.Broadcast()
	c.mu.Unlock()
	c.ahead.Wait()
	return err
}
