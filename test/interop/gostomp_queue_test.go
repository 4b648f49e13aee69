package interop_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-stomp/stomp/v3"

	"github.com/natstomp/natstomp/test/rig"
)

// attach connects and subscribes.
func (r *goRun) attach(who, destination, ack string, headers ...pair) (*goSub, error) {
	c, err := r.dial(who)
	if err != nil {
		return nil, err
	}
	return c.subscribe(destination, ack, headers...)
}

// leaveAfter takes and acknowledges messages and disconnects.
func (s *goSub) leaveAfter(count int) error {
	if err := s.takeAcked(count); err != nil {
		return err
	}
	return s.conn.close()
}

func goAckModes(r *goRun) error {
	producer, err := r.dial("producer")
	if err != nil {
		return err
	}
	for _, mode := range r.Modes {
		destination := r.queue + "/" + mode
		for n := range 10 {
			if err := producer.store(destination, strconv.Itoa(n)); err != nil {
				return err
			}
		}
		first, err := r.attach("first:"+mode, destination, mode)
		if err != nil {
			return err
		}
		got, err := first.take(10)
		if err != nil {
			return err
		}
		returned := 0
		switch mode {
		case "client":
			err, returned = first.conn.Ack(got[4]), 5
		case "client-individual":
			for n := 1; n < 10; n += 2 {
				err = errors.Join(err, first.conn.Ack(got[n]))
			}
			returned = 5
		}
		if err := errors.Join(err, first.conn.close()); err != nil {
			return err
		}
		second, err := r.attach("second:"+mode, destination, "client")
		if err != nil {
			return err
		}
		if err := second.takeAcked(returned); err != nil {
			return err
		}
		if err := producer.store(destination, "end"); err != nil {
			return err
		}
		if err := second.leaveAfter(1); err != nil {
			return err
		}
	}
	return producer.close()
}

func goCompeting(r *goRun) error {
	var work sync.WaitGroup
	defer func() {
		r.closeAll() // Ends the consumers' goroutines.
		work.Wait()
	}()
	seen := make(chan error, 4*r.Count)
	var consumers []*goConn
	for n := range r.Consumers {
		sub, err := r.attach(fmt.Sprintf("consumer-%d", n), r.queue, "client-individual", pair{"prefetch-count", "5"})
		if err != nil {
			return err
		}
		consumers = append(consumers, sub.conn)
		work.Go(func() {
			for m := range sub.messages {
				seen <- sub.conn.Ack(m)
			}
		})
	}
	producer, err := r.dial("producer")
	if err != nil {
		return err
	}
	for n := range r.Count {
		if err := producer.send(r.queue, strconv.Itoa(n)); err != nil {
			return err
		}
	}
	for n := range r.Count {
		select {
		case err = <-seen:
		case <-time.After(rig.Patience):
			err = errors.New("no further message")
		}
		if err != nil {
			return fmt.Errorf("after %d messages: %w", n, err)
		}
	}
	for _, c := range append(consumers, producer) {
		if err := c.close(); err != nil {
			return err
		}
	}
	return nil
}

func goNack(r *goRun) error {
	producer, err := r.dial("producer")
	if err != nil {
		return err
	}
	if err := goNackOne(r, producer); err != nil {
		return err
	}
	destination := r.queue + "/cumulative"
	for _, body := range []string{"c", "d", "e"} {
		if err := producer.store(destination, body); err != nil {
			return err
		}
	}
	sub, err := r.attach("cumulative", destination, "client")
	if err != nil {
		return err
	}
	got, err := sub.take(3)
	if err != nil {
		return err
	}
	if err := sub.conn.Nack(got[2]); err != nil {
		return err
	}
	if got, err = sub.take(3); err != nil {
		return err
	}
	if err := errors.Join(sub.conn.Ack(got[2]), sub.conn.close()); err != nil {
		return err
	}
	for _, name := range []string{"individual", "cumulative"} {
		if err := producer.store(r.queue+"/"+name, "end"); err != nil {
			return err
		}
		after, err := r.attach("after:"+name, r.queue+"/"+name, "client")
		if err != nil {
			return err
		}
		if err := after.leaveAfter(1); err != nil {
			return err
		}
	}
	return producer.close()
}

// goNackOne refuses one of two messages twice.
func goNackOne(r *goRun, producer *goConn) error {
	destination := r.queue + "/individual"
	if err := errors.Join(producer.store(destination, "a"), producer.store(destination, "b")); err != nil {
		return err
	}
	sub, err := r.attach("consumer", destination, "client-individual")
	if err != nil {
		return err
	}
	got, err := sub.take(2)
	if err != nil {
		return err
	}
	refused := got[0]
	for i := range 2 {
		r.report("nack", "consumer", "")
		if err := sub.conn.Nack(refused); err != nil {
			return err
		}
		if i == 0 {
			if err := sub.conn.Ack(got[1]); err != nil {
				return err
			}
		}
		if refused, err = sub.next(); err != nil {
			return err
		}
	}
	return errors.Join(sub.conn.Ack(refused), sub.conn.close())
}

func goReconnect(r *goRun) error {
	producer, err := r.dial("producer")
	if err != nil {
		return err
	}
	for n := range 10 {
		if err := producer.store(r.queue, strconv.Itoa(n)); err != nil {
			return err
		}
	}
	first, err := r.attach("first", r.queue, "client-individual")
	if err != nil {
		return err
	}
	got, err := first.take(10)
	if err != nil {
		return err
	}
	for _, m := range got[:3] {
		if err := first.conn.Ack(m); err != nil {
			return err
		}
	}
	// go-stomp's ACK asks for no receipt, but one for a later frame comes after its effect.
	if err := first.conn.store(r.topic, "after the ACKs"); err != nil {
		return err
	}
	second, err := r.attach("second", r.queue, "client-individual")
	if err != nil {
		return err
	}
	r.report("dropped", "first", "")
	if err := first.conn.drop(); err != nil {
		return err
	}
	if err := second.takeAcked(7); err != nil {
		return err
	}
	if err := producer.store(r.queue, "end"); err != nil {
		return err
	}
	return errors.Join(second.leaveAfter(1), producer.close())
}

func goTransactions(r *goRun) error {
	conns := make(map[string]*goConn)
	for _, who := range []string{"producer", "other", "consumer"} {
		c, err := r.dial(who)
		if err != nil {
			return err
		}
		conns[who] = c
	}
	producer, other, consumer := conns["producer"], conns["other"], conns["consumer"]
	for _, destination := range []string{r.queue + "/queue", r.topic + "/topic"} {
		if err := goCommitAndAbort(destination, producer, other, consumer); err != nil {
			return fmt.Errorf("%s: %w", destination, err)
		}
	}
	if err := goTransactedAcks(r, producer); err != nil {
		return err
	}
	return errors.Join(producer.close(), other.close(), consumer.close())
}

// goCommitAndAbort sends the same in two transactions, one of which ends well.
func goCommitAndAbort(destination string, producer, other, consumer *goConn) error {
	sub, err := consumer.subscribe(destination, "auto")
	if err != nil {
		return err
	}
	fill := func(c *goConn, verdict string) (*stomp.Transaction, error) {
		tx, err := c.BeginWithError()
		if err != nil {
			return nil, err
		}
		for n := range 3 {
			body := fmt.Appendf(nil, "%s-%d", verdict, n)
			if err := tx.Send(destination, "", body, stomp.SendOpt.Receipt); err != nil {
				return nil, err
			}
		}
		return tx, nil
	}
	commit, err := fill(producer, "commit")
	if err != nil {
		return err
	}
	abort, err := fill(other, "abort")
	if err != nil {
		return err
	}
	if err := other.store(destination, "before"); err != nil {
		return err
	}
	if _, err := sub.next(); err != nil {
		return err
	}
	if err := errors.Join(abort.AbortWithReceipt(), commit.CommitWithReceipt()); err != nil {
		return err
	}
	if _, err := sub.take(3); err != nil {
		return err
	}
	if err := producer.store(destination, "end"); err != nil {
		return err
	}
	_, err = sub.next()
	return err
}

// goTransactedAcks acknowledges one message in a transaction that is aborted and one in a transaction that is committed.
func goTransactedAcks(r *goRun, producer *goConn) error {
	destination := r.queue + "/acks"
	if err := errors.Join(producer.store(destination, "kept"), producer.store(destination, "taken")); err != nil {
		return err
	}
	mode := "client-individual"
	if r.Version == "1.0" {
		mode = "client"
	}
	first, err := r.attach("first", destination, mode)
	if err != nil {
		return err
	}
	got, err := first.take(2)
	if err != nil {
		return err
	}
	abort := first.conn.Begin()
	if err := errors.Join(abort.Ack(got[0]), abort.AbortWithReceipt()); err != nil {
		return err
	}
	if r.Version != "1.0" { // 1.0 has only cumulative ACKs, which would take both.
		commit := first.conn.Begin()
		if err := errors.Join(commit.Ack(got[1]), commit.CommitWithReceipt()); err != nil {
			return err
		}
	}
	if err := first.conn.close(); err != nil {
		return err
	}
	second, err := r.attach("second", destination, "client")
	if err != nil {
		return err
	}
	if err := second.takeAcked(r.Unacked); err != nil {
		return err
	}
	if err := producer.store(destination, "end"); err != nil {
		return err
	}
	return second.leaveAfter(1)
}

func goPublish(r *goRun) error {
	c, err := r.dial("publisher")
	if err != nil {
		return err
	}
	for _, m := range r.Messages {
		if err := c.store(r.Destination, string(m.Body), m.Headers...); err != nil {
			return err
		}
	}
	return c.close()
}

func goConsume(r *goRun) error {
	sub, err := r.attach("consumer", r.Destination, r.Ack, r.Headers...)
	if err != nil {
		return err
	}
	r.report("ready", "consumer", "")
	for range r.Count {
		m, err := sub.next()
		if err != nil {
			return err
		}
		if err := sub.conn.Ack(m); err != nil { // Nothing on ack:auto.
			return err
		}
	}
	return sub.conn.close()
}
