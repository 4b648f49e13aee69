package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/authz"
)

func newPolicyExplain(p process) *cobra.Command {
	var policy, model, identity string
	var roles []string
	var all bool
	c := &cobra.Command{
		Use:   "explain ACTION DESTINATION",
		Short: "Show which rule decides, and why the others do not",
		Long: "explain takes one decision: ACTION is read or write, DESTINATION as in a SEND or SUBSCRIBE, understood as the\n" +
			"configuration has it. A RESOURCE as rules name it (" + strings.Join(authz.Resources(), ", ") + ")\n" +
			"and a CHANNEL with dots may stand in its place. It shows the rule that decides, whom the session is taken for, and\n" +
			"for each other rule that is about it why it does not decide. It exits with 0 whatever the decision is.",
		Example: "  natstomp policy explain --policy policy.csv --identity anna write /queue/orders/new\n" +
			"  natstomp policy explain --identity anna --role sales read '/topic/orders/>'\n" +
			"  natstomp policy explain --policy policy.csv --identity anna write queues orders.new",
		Args: oneWish,
	}
	c.Flags().StringVar(&policy, "policy", "", "policy `file`; without one authz.policy of the configuration")
	c.Flags().StringVar(&model, "model", "", modelFlagUsage)
	c.Flags().StringVar(&identity, "identity", "", "`name` of the session; without one it has no login")
	c.Flags().StringArrayVar(&roles, "role", nil, "`name` of a role that the session comes with, without role:; may be repeated")
	c.Flags().BoolVar(&all, "all", false, "show also the rules that are for others")
	settings := addSettings(c, p)
	c.RunE = func(c *cobra.Command, args []string) error {
		w, err := parseWish(args, settings)
		if err != nil {
			return usageOf(c, err)
		}
		file, used, err := settings.policy(policy, model)
		if err != nil {
			return err
		}
		a, err := loadPolicy(p, file, used)
		if err != nil {
			return err
		}
		s, err := a.Session(identity, roles)
		if err != nil {
			_, err = fmt.Fprintf(p.stdout, "not let in: %v\n", err)
			return err
		}
		_, each := w.explain(s)
		if len(each) == 0 {
			_, err = fmt.Fprintln(p.stdout, "allowed: no right is needed, it belongs to its connection")
		}
		for i, x := range each {
			if err == nil && len(each) > 1 {
				_, err = fmt.Fprintf(p.stdout, "%d of %d, both are needed: a wildcard that reaches stored topics\n", i+1, len(each))
			}
			if err == nil {
				_, err = fmt.Fprint(p.stdout, explained(x, file, all))
			}
		}
		return err
	}
	return c
}

// explained writes an explanation, with the rules for others only if all is set.
func explained(x authz.Explanation, file string, all bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", verdict(x.Allowed), x.Reason)
	if x.Rule != nil {
		fmt.Fprintf(&b, "  %s:%d: %v\n", file, x.Rule.Line, x.Rule)
	}
	fmt.Fprintf(&b, "the session is %s\n", strings.Join(append(x.Subjects, "*"), ", "))
	left := 0
	for _, o := range x.Others {
		if !all && o.Subject != "*" && !slices.Contains(x.Subjects, o.Subject) {
			left++
			continue
		}
		fmt.Fprintf(&b, "  %s:%d: %v\n    %s\n", file, o.Line, o.Rule, o.Reason)
	}
	if left > 0 {
		fmt.Fprintf(&b, "%s for others (--all shows them)\n", count(left, "rule"))
	}
	return b.String()
}
