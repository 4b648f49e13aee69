package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// maxTokenText is the octets that are read of a token; what is longer is refused later.
const maxTokenText = 64 << 10

func newToken(p process) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, show and check JSON Web Tokens",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageOf(c, errors.New("a command is missing"))
			}
			return usageOf(c, unknownCommand(c, args[0]))
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	c.AddCommand(newTokenCreate(p), newTokenInspect(p), newTokenVerify(p))
	return c
}

// addAuthFlags adds the flags of the settings below auth, and --config.
func addAuthFlags(c *cobra.Command, config *string) {
	c.Flags().StringVar(config, "config", "", configFlagUsage)
	var all pflag.FlagSet
	addSettingFlags(&all)
	all.VisitAll(func(f *pflag.Flag) {
		if sectionOf(f) == "auth" {
			c.Flags().AddFlag(f)
		}
	})
	c.SetUsageFunc(groupedUsage)
}

// loadAuth reads the configuration as serve does.
func loadAuth(p process, c *cobra.Command, named string) (loaded, error) {
	l := newLoader(p.environ, c.Flags())
	config, err := l.load(named)
	for _, w := range l.warnings {
		_, _ = fmt.Fprintf(p.stderr, "warning: %s\n", w)
	}
	return config, err
}

// tokenFrom are where inspect and verify take a token from. Never from an argument: other users of a machine see those.
const tokenFrom = "The token comes from --token-file, else from $NATSTOMP_TOKEN or the file $NATSTOMP_TOKEN_FILE, else from stdin."

func addTokenFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "token-file", "", "`file` with the token [$NATSTOMP_TOKEN, $NATSTOMP_TOKEN_FILE]")
}

// token reads a token. One line end behind it does not belong to it.
func (p process) token(file string) (string, error) {
	if file == "" {
		if text := p.lookup("NATSTOMP_TOKEN"); text != "" {
			return text, nil
		}
		file = p.lookup("NATSTOMP_TOKEN_FILE")
	}
	if file != "" {
		return readSecret(file)
	}
	text, err := io.ReadAll(io.LimitReader(p.stdin, maxTokenText))
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}
