package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/connector"
)

// pushTimeout bounds the wait for a NATS that does not answer.
const pushTimeout = 15 * time.Second

func newPolicyPush(p process) *cobra.Command {
	var named string
	c := &cobra.Command{
		Use:   "push FILE",
		Short: "Put a policy in force on all nodes that share a NATS",
		Long: "push checks a policy and stores it in the bucket natstomp_policy of the NATS that the configuration names, which it\n" +
			"makes where it does not exist. Every node with authz.kv: true takes it from there at once. It reads the\n" +
			"configuration as serve does. A policy with a fault is shown and not stored; the bucket keeps the ten last ones.",
		Example: "  natstomp policy push policy.csv\n  natstomp policy push policy.csv --nats-url nats://n1.example:4222",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return usageOf(c, fmt.Errorf("one FILE is wanted, there are %d", len(args)))
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
		text, err := os.ReadFile(filepath.Clean(args[0]))
		if err != nil {
			return fmt.Errorf("%s: cannot be read: %s", args[0], reasonOf(err))
		}
		ctx, cancel := context.WithTimeout(c.Context(), pushTimeout)
		defer cancel()
		revision, err := connector.PushPolicy(ctx, config.config, args[0], text)
		var refused *authz.PolicyError
		if errors.As(err, &refused) {
			_, _ = fmt.Fprintln(p.stderr, refused)
			return errors.New("the policy is refused whole and was not pushed")
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%s is pushed: revision %d\n", args[0], revision)
		return err
	}
	return c
}
