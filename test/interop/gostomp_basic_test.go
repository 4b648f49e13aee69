package interop_test

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-stomp/stomp/v3"

	"github.com/natstomp/natstomp/test/rig"
)

// versions are those that both clients speak.
var versions = []string{"1.0", "1.1", "1.2"}

func goConnect(r *goRun) error {
	for _, v := range r.Variants {
		var opts []func(*stomp.Conn) error
		if v.Command == "STOMP" {
			opts = append(opts, stomp.ConnOpt.UseStomp)
		}
		if v.Login != "" {
			opts = append(opts, stomp.ConnOpt.Login(v.Login, v.Passcode))
		}
		if v.Host != "" {
			opts = append(opts, stomp.ConnOpt.Host(v.Host))
		}
		c, err := r.dialVersion(v.Name, v.Version, opts...)
		if err != nil {
			return err
		}
		r.report("negotiated", v.Name, c.Version().String())
		if err := c.close(); err != nil {
			return err
		}
	}
	return nil
}

func goFanOut(r *goRun) error {
	var subs []*goSub
	for _, v := range versions {
		c, err := r.dialVersion("sub-"+v, v)
		if err != nil {
			return err
		}
		sub, err := c.subscribe(r.topic, "auto")
		if err != nil {
			return err
		}
		subs = append(subs, sub)
	}
	publisher, err := r.dial("publisher")
	if err != nil {
		return err
	}
	for n := range r.Count - 1 {
		if err := publisher.send(r.topic, strconv.Itoa(n)); err != nil {
			return err
		}
	}
	if err := publisher.store(r.topic, strconv.Itoa(r.Count-1)); err != nil {
		return err
	}
	for _, sub := range subs {
		if _, err := sub.take(r.Count); err != nil {
			return err
		}
		if err := sub.conn.close(); err != nil {
			return err
		}
	}
	return publisher.close()
}

// goReceipts asks for a receipt wherever go-stomp can, and reports each as asked before and as received after.
func goReceipts(r *goRun) error {
	c, err := r.dial("client")
	if err != nil {
		return err
	}
	queue, err := c.subscribe(r.queue, "client")
	if err != nil {
		return err
	}
	topic, err := c.subscribe(r.topic, "auto")
	if err != nil {
		return err
	}
	committed, aborted := new(stomp.Transaction), new(stomp.Transaction)
	steps := []struct {
		label string
		do    func() error
	}{
		{"send", func() error { return c.store(r.queue, "stored") }},
		{"send", func() error { return c.store(r.topic, "published") }},
		{"begin", func() error { committed = c.Begin(); return nil }},
		{"send", func() error {
			return committed.Send(r.queue, "", []byte("in a transaction"), stomp.SendOpt.Receipt)
		}},
		{"commit", func() error { return committed.CommitWithReceipt() }},
		{"begin", func() error { aborted = c.Begin(); return nil }},
		{"abort", func() error { return aborted.AbortWithReceipt() }},
		{"receive", func() error { return queue.takeAcked(2) }},
		{"receive", func() error { _, err := topic.take(1); return err }},
		{"unsubscribe", topic.leave},
		{"disconnect", func() error { return c.close() }},
	}
	for i, step := range steps {
		label := fmt.Sprintf("%s-%d", step.label, i)
		r.report("asked", "client", label)
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
		r.session.add(event{
			Event: "receipt", Who: "client", MS: r.elapsed(), Headers: map[string]string{"receipt-id": label},
		})
	}
	return nil
}

func goLive(r *goRun) error {
	publisher, err := r.dial("publisher")
	if err != nil {
		return err
	}
	subscriber, err := r.dial("subscriber")
	if err != nil {
		return err
	}
	for n := range r.Count {
		destination := fmt.Sprintf("%s/%d", r.topic, n)
		sub, err := subscriber.subscribe(destination, "auto")
		if err != nil {
			return err
		}
		if err := publisher.send(destination, strconv.Itoa(n)); err != nil {
			return err
		}
		if _, err := sub.next(); err != nil {
			return err
		}
	}
	return errors.Join(subscriber.close(), publisher.close())
}

func goBodies(r *goRun) error {
	c, err := r.dial("client")
	if err != nil {
		return err
	}
	for _, destination := range []string{r.topic, r.queue} {
		sub, err := c.subscribe(destination, "auto")
		if err != nil {
			return err
		}
		for _, body := range r.Bodies {
			if err := c.Send(destination, "application/octet-stream", body, stomp.SendOpt.Receipt); err != nil {
				return err
			}
			if _, err := sub.next(); err != nil {
				return err
			}
		}
	}
	return c.close()
}

func goHeaders(r *goRun) error {
	var subs []*goSub
	for _, v := range versions {
		c, err := r.dialVersion("sub-"+v, v)
		if err != nil {
			return err
		}
		sub, err := c.subscribe(r.topic, "auto")
		if err != nil {
			return err
		}
		subs = append(subs, sub)
	}
	publisher, err := r.dial("publisher")
	if err != nil {
		return err
	}
	if err := publisher.store(r.topic, "odd", r.Headers...); err != nil {
		return err
	}
	for _, sub := range subs {
		if _, err := sub.next(); err != nil {
			return err
		}
		if err := sub.conn.close(); err != nil {
			return err
		}
	}
	for _, body := range []string{"odd", "again"} {
		if err := publisher.store(r.queue, body, r.Headers...); err != nil {
			return err
		}
	}
	consumer, err := r.dialVersion("consumer", "1.2")
	if err != nil {
		return err
	}
	sub, err := consumer.subscribe(r.queue, "auto")
	if err != nil {
		return err
	}
	if _, err := sub.take(2); err != nil {
		return err
	}
	return errors.Join(consumer.close(), publisher.close())
}

func goHeartBeat(r *goRun) error {
	c, err := r.dial("client",
		stomp.ConnOpt.HeartBeat(time.Second, time.Second),
		// go-stomp beats that much before the interval is over, and waits that much longer.
		stomp.ConnOpt.HeartBeatError(300*time.Millisecond))
	if err != nil {
		return err
	}
	sub, err := c.subscribe(r.topic, "auto")
	if err != nil {
		return err
	}
	in, out := c.socket.in.Load(), c.socket.out.Load()
	select {
	case <-sub.messages:
		return errors.New("the connection ended while idle")
	case <-time.After(time.Duration(r.IdleMS) * time.Millisecond):
	}
	// Whatever passed in that time was an EOL.
	r.session.add(event{Event: "idled", Who: "client", MS: r.elapsed(), Headers: map[string]string{
		"in": fmt.Sprint(c.socket.in.Load() - in), "out": fmt.Sprint(c.socket.out.Load() - out),
	}})
	if err := c.store(r.topic, "still here"); err != nil {
		return err
	}
	if _, err := sub.next(); err != nil {
		return err
	}
	return c.close()
}

func goErrors(r *goRun) error {
	for _, f := range r.Faults {
		c, err := r.dial(f.Name)
		if err != nil {
			return err
		}
		if err := goProvoke(r, c, f); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		// go-stomp has closed the connection when it reports the ERROR.
		r.report("disconnected", f.Name, "")
	}
	return nil
}

// goProvoke does what the server must refuse and reports the ERROR.
func goProvoke(r *goRun, c *goConn, f fault) error {
	switch f.Verb {
	case "send":
		err := c.store(f.Destination, "x")
		if err == nil {
			return fmt.Errorf("sending to %s: got a receipt, want an ERROR", f.Destination)
		}
		var refused stomp.Error
		if !errors.As(err, &refused) || refused.Frame == nil {
			return fmt.Errorf("sending to %s: want an ERROR, got %w", f.Destination, err)
		}
		r.reportFrame("error", f.Name, refused.Frame.Header, refused.Frame.Body)
		return nil
	case "subscribe":
		sub, err := c.request(f.Destination, "auto")
		if err != nil {
			return err
		}
		return sub.untilEnd()
	case "ack twice":
		sub, err := c.subscribe(r.queue, "client")
		if err != nil {
			return err
		}
		if err := c.store(r.queue, "x"); err != nil {
			return err
		}
		m, err := sub.next()
		if err != nil {
			return err
		}
		if err := errors.Join(c.Ack(m), c.Ack(m)); err != nil {
			return err
		}
		return sub.untilEnd()
	}
	return fmt.Errorf("no such verb: %q", f.Verb)
}

// leave unsubscribes and waits for the receipt, at which go-stomp closes the channel. Its Unsubscribe may miss that it
// did so itself and then returns a time-out; the closed channel is what counts.
func (s *goSub) leave() error {
	err := s.Unsubscribe()
	if err != nil && !errors.Is(err, &stomp.ErrUnsubscribeReceiptTimeout) {
		return err
	}
	return s.untilEnd()
}

// untilEnd waits until the subscription has ended.
func (s *goSub) untilEnd() error {
	timeout := time.NewTimer(rig.Patience)
	defer timeout.Stop()
	for {
		select {
		case _, ok := <-s.messages:
			if !ok {
				return nil
			}
		case <-timeout.C:
			return errors.New("no ERROR came")
		}
	}
}
