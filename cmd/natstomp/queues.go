package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func newQueues(p process) *cobra.Command {
	c := &cobra.Command{
		Use:   "queues",
		Short: "Look after queues of a running server",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageOf(c, fmt.Errorf("a command is missing: %s forget", c.CommandPath()))
			}
			return usageOf(c, fmt.Errorf("there is no command %q: there is forget", args[0]))
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(newForget(p))
	return c
}

func newForget(p process) *cobra.Command {
	var named string
	c := &cobra.Command{
		Use:   "forget NAME",
		Short: "Let a queue whose stream is gone from NATS be made anew",
		Long: "A queue that natstomp knew and whose stream NATS has no more is never made again silently, since its messages\n" +
			"are lost: clients get an ERROR and /readyz names it. forget accepts the loss, and the next use makes the queue\n" +
			"anew. NAME is a destination such as /queue/orders/eu, a channel such as orders.eu, or the name of the stream. It\n" +
			"asks the running server through its admin listener, whose address it finds in the configuration that serve uses.",
		Example: "  natstomp queues forget /queue/orders/eu\n  natstomp queues forget orders.eu --listeners-admin-address 127.0.0.1:8161",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return usageOf(c, fmt.Errorf("one NAME is wanted, there are %d", len(args)))
		},
	}
	adminFlags(c, &named)
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, err := askAdmin(c, p, named, http.MethodDelete, "/api/v1/queues/gone/"+url.PathEscape(args[0])); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.stdout, "%s is forgotten: its next use makes it anew\n", args[0])
		return err
	}
	return c
}
