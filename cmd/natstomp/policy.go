package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/policies"
)

func newPolicy(p process) *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Check, test, explain and push a policy",
		Long: "policy works with the files that say who may do what (authz.policy, authz.model). Only push needs NATS.\n" +
			"How they are written is in docs/policies.md.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageOf(c, errors.New("a command is missing"))
			}
			return usageOf(c, unknownCommand(c, args[0]))
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(newPolicyCheck(p), newPolicyTest(p), newPolicyExplain(p), newPolicyPush(p))
	return c
}

const modelFlagUsage = "Casbin model `file`; without one the one that is built in"

// loadPolicy returns an authorizer with the policy of a file. The faults of a policy are shown here.
func loadPolicy(p process, policy, model string) (*authz.Authorizer, error) {
	config := authz.Config{Model: policies.Model}
	if model != "" {
		text, err := os.ReadFile(filepath.Clean(model))
		if err != nil {
			return nil, fmt.Errorf("%s: cannot be read: %s", model, reasonOf(err))
		}
		config.Model = string(text)
	}
	a, err := authz.New(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	err = authz.NewFile(a, policy).Reload()
	var refused *authz.PolicyError
	if errors.As(err, &refused) {
		_, _ = fmt.Fprintln(p.stderr, refused)
		return nil, errors.New("the policy is refused whole")
	}
	return a, err
}

func newPolicyCheck(p process) *cobra.Command {
	var model string
	c := &cobra.Command{
		Use:   "check FILE ...",
		Short: "Show all that is wrong with a policy",
		Long: "check reads policies as serve does and shows all that is wrong with them at once, with line and reason. serve takes\n" +
			"a policy whole or not at all. check exits with 1 if there is any fault.",
		Example: "  natstomp policy check policy.csv\n  natstomp policy check --model model.conf policy.csv",
		Args:    someFiles,
	}
	c.Flags().StringVar(&model, "model", "", modelFlagUsage)
	c.RunE = func(_ *cobra.Command, args []string) error {
		var failed error
		for _, file := range args {
			a, err := loadPolicy(p, file, model)
			switch {
			case err != nil && len(args) > 1:
				_, _ = fmt.Fprintln(p.stderr, err)
				failed = errors.New("not all policies are good")
			case err != nil:
				failed = err
			default:
				st := a.Status()
				_, _ = fmt.Fprintf(p.stdout, "%s: good, %s and %s\n", file, count(st.Rules, "rule"), count(st.Links, "role line"))
			}
		}
		return failed
	}
	return c
}

// wish is what somebody wants to do.
type wish struct {
	action            authz.Action
	resource, channel string
}

// parseWish reads an action, a resource and a channel.
func parseWish(words []string) (w wish, err error) {
	if len(words) != 3 {
		return w, errors.New("is not an action, a resource and a channel, such as: read events orders.eu")
	}
	w.resource, w.channel = words[1], words[2]
	var ok bool
	if w.action, ok = authz.ParseAction(words[0]); !ok {
		return w, fmt.Errorf("action %q is not one of read, write", words[0])
	}
	if err := authz.CheckResource(w.resource); err != nil {
		return w, err
	}
	if err := authz.CheckChannel(w.action, w.channel); err != nil {
		return w, fmt.Errorf("channel %q %w", w.channel, err)
	}
	return w, nil
}

func (w wish) String() string {
	return strings.Join([]string{w.action.String(), w.resource, w.channel}, " ")
}

// oneWish wants the words of a wish.
func oneWish(c *cobra.Command, args []string) error {
	if len(args) < 3 {
		return usageOf(c, errors.New("an action, a resource and a channel are wanted, such as: read events orders.eu"))
	}
	return atMost(3)(c, args)
}

// someFiles wants one file or more.
func someFiles(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageOf(c, errors.New("a file is missing"))
	}
	return nil
}
