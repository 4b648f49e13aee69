package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/connector/frame"
)

// errQuiet ends a sub that got no message for --timeout.
var errQuiet = errors.New("no message within --timeout")

// subscriber is the sub command.
type subscriber struct {
	process
	flags clientFlags
	ack   string
	count int
}

func newSub(p process) *cobra.Command {
	s := subscriber{process: p}
	c := &cobra.Command{
		Use:   "sub DEST",
		Short: "Show the messages of a STOMP destination",
		Long: "sub shows messages until SIGINT or SIGTERM, or until --count of them came. A message of a queue is acknowledged when it\n" +
			"is shown; what was not shown goes back. With --timeout it ends when no message comes for so long, with 1 if --count were\n" +
			"wanted. It says on stderr when it is subscribed.",
		Example: "  natstomp sub '/topic/greetings/>'\n  natstomp sub /queue/orders --count 1 --timeout 5s --output json\n" +
			"  natstomp sub /topic/prices -H x-group:workers",
		Args: between(1, 1),
	}
	c.Flags().IntVar(&s.count, "count", 0, "how many `messages` to show before it ends; 0 for all")
	c.Flags().StringVar(&s.ack, "ack", "client-individual", "`mode`: auto, client or client-individual. With auto the server takes for\n"+
		"done what it has sent, shown or not")
	s.flags.add(c, 0, "how long to wait for a message; 0 for ever")
	s.flags.addOutput(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		headers, err := s.flags.extra()
		switch {
		case err != nil:
		case s.count < 0:
			err = fmt.Errorf("--count %d is negative", s.count)
		case s.ack != "auto" && s.ack != "client" && s.ack != "client-individual":
			err = fmt.Errorf("--ack %q is not auto, client or client-individual", s.ack)
		}
		t, err := s.flags.begin(p, err)
		if err != nil {
			return usageOf(c, err)
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return s.run(ctx, t, args[0], headers)
	}
	return c
}

func (s *subscriber) run(ctx context.Context, t target, destination string, headers []frame.Header) error {
	c, err := dial(ctx, t, s.flags.heartbeat)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer c.close()
	subscribe := frame.Frame{Command: frame.Subscribe, Headers: append([]frame.Header{
		header("destination", destination), header("id", "1"), header("ack", s.ack),
	}, headers...)}
	limited, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := c.exchange(limited, subscribe, "subscribed", nil); err != nil {
		return fmt.Errorf("subscribing to %s: %w", destination, err)
	}
	_, _ = fmt.Fprintf(s.stderr, "natstomp: subscribed to %s\n", destination)
	shown, err := s.show(ctx, c)
	switch {
	case errors.Is(err, errQuiet) && s.count == 0, errors.Is(err, context.Canceled) && ctx.Err() != nil:
		err = nil // That was wanted.
	case errors.Is(err, errQuiet):
		err = fmt.Errorf("%w (%v): got %d of %d", err, s.flags.timeout, shown, s.count)
	case err != nil:
		return fmt.Errorf("receiving from %s: %w", destination, err)
	}
	// All acknowledgements are the server's when it answers.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	return errors.Join(err, c.leave(last))
}

// show shows messages and acknowledges them until there are enough.
func (s *subscriber) show(ctx context.Context, c *client) (shown int, err error) {
	for s.count == 0 || shown < s.count {
		f, err := s.next(ctx, c)
		if err != nil {
			return shown, err
		}
		if f.Command != frame.Message {
			continue
		}
		if err := show(s.stdout, s.flags.output, f); err != nil {
			return shown, err
		}
		shown++
		if s.ack == "auto" {
			continue
		}
		if err := c.send(frame.Frame{Command: frame.Ack, Headers: acknowledged(f)}); err != nil {
			return shown, err
		}
	}
	return shown, nil
}

// acknowledged are the headers of an ACK of f in any version.
func acknowledged(f *frame.Frame) []frame.Header {
	headers := []frame.Header{header("message-id", f.Get("message-id")), header("subscription", f.Get("subscription"))}
	if id, ok := f.Lookup("ack"); ok {
		headers = append(headers, header("id", string(id)))
	}
	return headers
}

// next waits for a frame, no longer than --timeout.
func (s *subscriber) next(ctx context.Context, c *client) (*frame.Frame, error) {
	if s.flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.flags.timeout, errQuiet)
		defer cancel()
	}
	return c.receive(ctx)
}
