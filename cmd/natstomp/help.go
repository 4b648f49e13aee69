package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width to which the texts of flags are wrapped.
const helpWidth = 110

// groups are the headings of the flags in help, in order, with the first parts of the keys below them.
var groups = []struct {
	title    string
	sections []string
}{
	{"General", []string{"", "allow_insecure", "log"}},
	{"Listeners", []string{"listeners"}},
	{"NATS", []string{"nats"}},
	{"Identity and rights", []string{"auth", "authz"}},
	{"Destinations", []string{"destinations"}},
	{"Limits", []string{"limits", "memory_limit"}},
	{"Queues, stored topics, requests, transactions", []string{"queues", "store", "rpc", "transactions"}},
}

// sectionOf returns the first part of the key of a flag, or "" if the flag is no setting.
func sectionOf(f *pflag.Flag) string {
	v, ok := f.Value.(*settingFlag)
	if !ok {
		return ""
	}
	section, _, _ := strings.Cut(v.key.path, ".")
	return section
}

// groupedUsage prints the usage of a command with its flags in groups.
func groupedUsage(c *cobra.Command) error {
	w := c.OutOrStderr()
	if _, err := fmt.Fprintf(w, "Usage:\n  %s\n", c.UseLine()); err != nil {
		return err
	}
	if c.HasExample() {
		if _, err := fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if err := printGroup(w, c.Flags(), g.title, g.sections); err != nil {
			return err
		}
	}
	return nil
}

func printGroup(w io.Writer, flags *pflag.FlagSet, title string, sections []string) error {
	group := pflag.NewFlagSet(title, pflag.ContinueOnError)
	group.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		for _, s := range sections {
			if sectionOf(f) == s {
				group.AddFlag(f)
			}
		}
	})
	if !group.HasAvailableFlags() {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s:\n%s", title, group.FlagUsagesWrapped(helpWidth))
	return err
}
