package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/connector/frame"
)

// requestGrace is how much longer than the server request waits for the answer, which comes in any case.
const requestGrace = 2 * time.Second

func newRequest(p process) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use:   "request DEST [BODY]",
		Short: "Send a request to a STOMP destination and show the reply",
		Long: "request sends a request to /command or /query and shows the reply. To other destinations it sends a message whose\n" +
			"reply-to is an address of its own, and shows the first message that comes there. BODY is as in pub. It exits with 1 when\n" +
			"there is no reply, and says why.",
		Example: "  natstomp request /query/stock tea\n  natstomp request /command/reindex --timeout 5s --output json",
		Args:    between(1, 2),
	}
	f.add(c, 30*time.Second, "how long to wait for the reply")
	f.addOutput(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		headers, err := f.extra()
		t, err := f.begin(p, err)
		if err == nil && f.timeout < time.Millisecond {
			err = errors.New("--timeout is less than 1ms")
		}
		if err != nil {
			return usageOf(c, err)
		}
		body, err := p.body(args)
		if err != nil {
			return err
		}
		f.grace = requestGrace
		return f.session(c.Context(), t, func(ctx context.Context, conn *client) error {
			reply, err := ask(ctx, conn, args[0], headers, body, f.timeout)
			if err != nil {
				return fmt.Errorf("requesting %s: %w", args[0], err)
			}
			return show(p.stdout, f.output, reply)
		})
	}
	return c
}

// ask sends a request and returns the reply.
func ask(ctx context.Context, c *client, destination string, headers []frame.Header, body []byte, timeout time.Duration) (*frame.Frame, error) {
	name := rand.Text()
	to := "/temp-queue/" + name
	given := slices.Clone(headers)
	if isRPC(destination) {
		given = append(given, header("timeout", strconv.FormatInt(timeout.Milliseconds(), 10)))
		to = "/reply/" + name
		subscribe := frame.Frame{Command: frame.Subscribe, Headers: []frame.Header{header("destination", to), header("id", "1")}}
		if err := c.exchange(ctx, subscribe, "subscribed", nil); err != nil {
			return nil, err
		}
	}
	// The first of repeated headers counts: the user's.
	send := frame.Frame{Command: frame.Send, Body: body, Headers: append([]frame.Header{
		header("destination", destination), header("reply-to", to),
	}, append(given, header("correlation-id", name))...)}
	unsent := c.send(send)
	for {
		f, err := c.receive(ctx)
		switch {
		case err != nil && unsent != nil && errors.Is(err, errLost):
			return nil, unsent
		case err != nil:
			return nil, err
		case f.Command != frame.Message:
			continue
		}
		if reason, failed := f.Lookup("x-error"); failed {
			return nil, failure(string(reason), f)
		}
		return f, nil
	}
}

// isRPC says whether a destination is one of commands or queries.
func isRPC(destination string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(destination, "/"), "/")
	switch first {
	case "command", "commands", "query", "queries":
		return true
	}
	return false
}

// failure is what an answer without a reply says.
func failure(reason string, f *frame.Frame) error {
	text := "no reply: " + reason
	if code := f.Get("x-error-code"); code != "" {
		text += " " + code
	}
	if why := f.Get("x-error-text"); why != "" {
		text += ": " + why
	}
	return errors.New(text)
}
