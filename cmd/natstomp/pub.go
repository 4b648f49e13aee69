package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/connector/frame"
)

// pubWindow is how many messages wait for their RECEIPT at once.
const pubWindow = 256

func newPub(p process) *cobra.Command {
	var f clientFlags
	var count int
	var noReceipt bool
	c := &cobra.Command{
		Use:   "pub DEST [BODY]",
		Short: "Send a message to a STOMP destination",
		Long: "pub sends a message and ends when the server has it: when NATS has that of a topic, when that of a queue is stored.\n" +
			"Without BODY it is empty; with - it is what stdin holds. It exits with 1 when the server refuses.",
		Example: "  natstomp pub /topic/greetings hello\n  natstomp pub /queue/orders -H content-type:text/plain -H table:7 'two teas'\n" +
			"  echo hello | natstomp pub --url ws://127.0.0.1:15674/stomp /topic/greetings -",
		Args: between(1, 2),
	}
	c.Flags().IntVar(&count, "count", 1, "how many `times` to send it")
	c.Flags().BoolVar(&noReceipt, "no-receipt", false, "ask for no RECEIPT for each message, only for one at the end")
	f.add(c, 30*time.Second, "how long to wait for the server altogether")
	c.RunE = func(c *cobra.Command, args []string) error {
		headers, err := f.extra("reply-to")
		t, err := f.begin(p, err)
		if err == nil && count < 1 {
			err = fmt.Errorf("--count %d is less than 1", count)
		}
		if err != nil {
			return usageOf(c, err)
		}
		body, err := p.body(args)
		if err != nil {
			return err
		}
		send := frame.Frame{Command: frame.Send, Headers: append([]frame.Header{header("destination", args[0])}, headers...), Body: body}
		return f.session(c.Context(), t, func(ctx context.Context, conn *client) error {
			if err := publish(ctx, conn, send, count, !noReceipt); err != nil {
				return fmt.Errorf("sending to %s: %w", args[0], err)
			}
			return nil
		})
	}
	return c
}

// publish sends a frame so many times and waits until the server has done all of it.
func publish(ctx context.Context, c *client, f frame.Frame, count int, receipts bool) error {
	waiting := 0
	one := func() error {
		if _, err := c.receive(ctx); err != nil {
			return err
		}
		waiting--
		return nil
	}
	for n := range count {
		sent := f
		if receipts {
			sent.Headers = append(f.Headers[:len(f.Headers):len(f.Headers)], header("receipt", strconv.Itoa(n+1)))
			waiting++
		}
		if err := c.send(sent); err != nil {
			if _, told := c.receive(ctx); told != nil {
				err = told
			}
			return err
		}
		if waiting >= pubWindow {
			if err := one(); err != nil {
				return err
			}
		}
	}
	for waiting > 0 {
		if err := one(); err != nil {
			return err
		}
	}
	return c.leave(ctx)
}

// session connects, calls do and closes the connection. --timeout and grace bound it as a whole; a timeout of 0 does not.
func (f *clientFlags) session(ctx context.Context, t target, do func(context.Context, *client) error) error {
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.timeout+f.grace, fmt.Errorf("no answer within --timeout (%v)", f.timeout))
		defer cancel()
	}
	c, err := dial(ctx, t, f.heartbeat)
	if err != nil {
		return err
	}
	defer c.close()
	return do(ctx, c)
}
