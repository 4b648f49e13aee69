package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

const configFlagUsage = "configuration `file` [$" + configVariable + "]; without one ./natstomp.yaml, " +
	"then /etc/natstomp/natstomp.yaml, where they exist"

func newCheckConfig(p process) *cobra.Command {
	var named string
	c := &cobra.Command{
		Use:   "check-config [FILE]",
		Short: "Check the configuration and show all that is wrong with it",
		Long: "check-config reads the configuration exactly as serve does, with the environment and flags, and shows all that\n" +
			"is wrong with it at once. It starts nothing. It exits with 1 if there is any fault.",
		Example: "  natstomp check-config\n  natstomp check-config natstomp.yaml\n  natstomp check-config --limits-body 1MiB",
		Args:    atMost(1),
	}
	c.Flags().StringVar(&named, "config", "", configFlagUsage)
	addSettingFlags(c.Flags())
	c.SetUsageFunc(groupedUsage)
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			if c.Flags().Changed("config") {
				return usageOf(c, errors.New("the file is named twice, as an argument and by --config"))
			}
			named = args[0]
		}
		l := newLoader(p.environ, c.Flags())
		config, err := l.load(named)
		for _, w := range l.warnings {
			_, _ = fmt.Fprintf(p.stderr, "warning: %s\n", w)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "configuration is valid: %s\n", config.fileText())
		return err
	}
	return c
}

// fileText names the configuration file, or says that there is none.
func (l loaded) fileText() string {
	if l.file == "" {
		return "no file, defaults"
	}
	return l.file
}
