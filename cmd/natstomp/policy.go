package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/connector"
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

// policySettings are what the policy commands take from the configuration, which is read when something of it is needed.
type policySettings struct {
	load   func() (connector.Config, error)
	config *connector.Config
}

// addSettings gives a command the flags of the configuration.
func addSettings(c *cobra.Command, p process) *policySettings {
	var named string
	c.Flags().StringVar(&named, "config", "", configFlagUsage)
	addSettingFlags(c.Flags())
	c.SetUsageFunc(groupedUsage)
	return &policySettings{load: func() (connector.Config, error) {
		l, err := newLoader(p.environ, c.Flags()).load(named)
		return l.config, err
	}}
}

func (s *policySettings) get() (connector.Config, error) {
	if s.config == nil {
		config, err := s.load()
		if err != nil {
			return config, err
		}
		s.config = &config
	}
	return *s.config, nil
}

// policy fills in the files that are not named: those of the configuration.
func (s *policySettings) policy(policy, model string) (string, string, error) {
	if policy != "" {
		return policy, model, nil
	}
	config, err := s.get()
	switch {
	case err != nil:
		return "", "", err
	case config.Authz.KV:
		return "", "", errors.New("no policy is named, and that of the configuration is in the bucket natstomp_policy (authz.kv)")
	case config.Authz.Policy == "":
		return "", "", errors.New("no policy is named, and the configuration has no authz.policy")
	case model == "":
		model = config.Authz.Model
	}
	return config.Authz.Policy, model, nil
}

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
		Use:   "check [FILE ...]",
		Short: "Show all that is wrong with a policy",
		Long: "check reads policies as serve does and shows all that is wrong with them at once, with line and reason. serve takes\n" +
			"a policy whole or not at all. Without FILE it checks authz.policy of the configuration. It exits with 1 if there is\n" +
			"any fault.",
		Example: "  natstomp policy check policy.csv\n  natstomp policy check --model model.conf policy.csv\n  natstomp policy check --config natstomp.yaml",
	}
	c.Flags().StringVar(&model, "model", "", modelFlagUsage)
	settings := addSettings(c, p)
	c.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			file, used, err := settings.policy("", model)
			if err != nil {
				return err
			}
			args, model = []string{file}, used
		}
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

// wish is what somebody wants to do. Each of the resources has to be allowed; without any, no right is needed.
type wish struct {
	action    authz.Action
	resources []string
	channel   string
	words     []string // As it was written.
}

// wishForm says how a wish is written.
const wishForm = "an action and a destination, such as: read /topic/orders/eu; or an action, a resource and a channel, such as: read events orders.eu"

// parseWish reads an action and a destination, which is understood as the configuration has it; or an action, a resource
// and a channel.
func parseWish(words []string, settings *policySettings) (w wish, err error) {
	destination := len(words) == 2 && strings.HasPrefix(words[1], "/")
	if !destination && len(words) != 3 {
		return w, errors.New("wanted: " + wishForm)
	}
	var ok bool
	if w.action, ok = authz.ParseAction(words[0]); !ok {
		return w, fmt.Errorf("action %q is not one of read, write", words[0])
	}
	w.words = words
	if destination {
		config, err := settings.get()
		if err == nil {
			w.resources, w.channel, err = config.PolicyTarget(w.action, words[1])
		}
		return w, err
	}
	w.resources, w.channel = words[1:2], words[2]
	if err := authz.CheckResource(words[1]); err != nil {
		return w, err
	}
	if err := authz.CheckChannel(w.action, w.channel); err != nil {
		return w, fmt.Errorf("channel %q %w", w.channel, err)
	}
	return w, nil
}

func (w wish) String() string { return strings.Join(w.words, " ") }

// explain asks a session. The decision on each resource comes with it, that which denies first.
func (w wish) explain(s *authz.Session) (allowed bool, each []authz.Explanation) {
	allowed = true
	for _, resource := range w.resources {
		x := s.Explain(w.action, resource, w.channel)
		if !x.Allowed {
			allowed = false
			each = append([]authz.Explanation{x}, each...)
			continue
		}
		each = append(each, x)
	}
	return allowed, each
}

// oneWish wants the words of a wish.
func oneWish(c *cobra.Command, args []string) error {
	if len(args) < 2 {
		return usageOf(c, errors.New("wanted: "+wishForm))
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
