package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// adminTimeout bounds a request to the admin listener.
const adminTimeout = 10 * time.Second

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
	c.Flags().StringVar(&named, "config", "", configFlagUsage)
	addSettingFlags(c.Flags())
	c.SetUsageFunc(groupedUsage)
	c.RunE = func(c *cobra.Command, args []string) error {
		config, err := newLoader(p.environ, c.Flags()).load(named)
		if err != nil {
			return err
		}
		address, err := reachable(config.config.Listeners.Admin.Address)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), adminTimeout)
		defer cancel()
		if err := forget(ctx, address, args[0]); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%s is forgotten: its next use makes it anew\n", args[0])
		return err
	}
	return c
}

// reachable is the address under which this machine reaches a listener.
func reachable(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return "", fmt.Errorf("listeners.admin.address %q is no address that can be asked: give the one of the running server", listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// forget asks the server with the admin listener at that address.
func forget(ctx context.Context, address, name string) error {
	target := "http://" + address + "/api/v1/queues/gone/" + url.PathEscape(name)
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, target, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking the running server: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // It was read.
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("asking the running server: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server at %s says: %s", address, strings.TrimSpace(string(text)))
	}
	return nil
}
