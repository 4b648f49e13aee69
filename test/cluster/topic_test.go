package cluster_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// topicLoad sends to a topic, one message after the other's RECEIPT, and reads it on another natstomp.
type topicLoad struct {
	stop atomic.Bool
	wg   sync.WaitGroup

	mu   sync.Mutex
	errs []error      // guarded by mu
	last int          // guarded by mu; the latest that was receipted
	seen map[int]bool // guarded by mu
}

func newTopicLoad(t *testing.T, from, to *testserver.Server) *topicLoad {
	t.Helper()
	l := &topicLoad{seen: map[int]bool{}}
	sub, pub := rig.Connect(t, to.TCPAddr), rig.Connect(t, from.TCPAddr)
	sub.AskFrame(rig.Subscribe("s", "/topic/load"))
	l.wg.Go(func() { l.note(l.publish(pub.Conn)) })
	l.wg.Go(func() {
		for {
			f, err := sub.Read(2 * rig.Patience)
			if err != nil || f.Command != "MESSAGE" {
				l.note(fmt.Errorf("topic subscriber: got %s (%w)", f, err))
				return
			}
			if string(f.Body) == "end" {
				return
			}
			n, err := strconv.Atoi(string(f.Body))
			if err != nil {
				l.note(err)
				return
			}
			l.mu.Lock()
			l.seen[n] = true
			l.mu.Unlock()
		}
	})
	return l
}

func (l *topicLoad) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.errs = append(l.errs, err)
	}
}

// publish sends until it is told to stop; then it sends an end until the subscriber has it.
func (l *topicLoad) publish(c *stompclient.Conn) error {
	for n := 1; ; n++ {
		body := strconv.Itoa(n)
		if l.stop.Load() {
			body = "end"
		}
		if err := c.Send(rig.Send("/topic/load", body, "receipt", body)); err != nil {
			return err
		}
		f, err := c.Read(rig.Patience)
		if err != nil || f.Command != "RECEIPT" || f.Get("receipt-id") != body {
			return fmt.Errorf("topic publisher: got %s (%w), want the receipt of %s", f, err, body)
		}
		if body == "end" {
			return nil
		}
		l.mu.Lock()
		l.last = n
		l.mu.Unlock()
	}
}

// finish ends the load and fails the test if a client was closed.
func (l *topicLoad) finish(t *testing.T) {
	t.Helper()
	l.stop.Store(true)
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.errs...); err != nil {
		t.Error(err)
	}
	t.Logf("%d topic messages receipted, %d seen through another node", l.last, len(l.seen))
}
