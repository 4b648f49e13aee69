package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a command line that is not understood.
type usageError struct {
	command string // What to ask for help.
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

// process is what the commands use of the process.
type process struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run executes a command line, given without the program's name, and returns the exit code.
func run(args []string, p process) int {
	root := newRoot(p)
	root.SetArgs(args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(context.Background())
	var usage *usageError
	var invalid faults
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		_, _ = fmt.Fprintf(p.stderr, "natstomp: %v\nSee %s --help\n", err, usage.command)
		return exitUsage
	case errors.As(err, &invalid):
		_, _ = fmt.Fprintf(p.stderr, "%v\nnatstomp: the configuration has %s\n", err, count(len(invalid), "fault"))
	default:
		_, _ = fmt.Fprintf(p.stderr, "natstomp: %v\n", err)
	}
	return exitFailed
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func newRoot(p process) *cobra.Command {
	root := &cobra.Command{
		Use:           "natstomp",
		Short:         "STOMP for NATS",
		Long:          "natstomp lets STOMP 1.0, 1.1 and 1.2 programs talk to NATS: topics, queues, requests and replies.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageOf(c, errors.New("a command is missing"))
			}
			return usageOf(c, unknownCommand(c, args[0]))
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	root.SetFlagErrorFunc(usageOf)
	root.AddCommand(newServe(p), newCheckConfig(p), newConfig(p), newPub(p), newSub(p), newRequest(p), newQueues(p), newVersion(p))
	return root
}

// usageOf returns err as a usageError of the command c.
func usageOf(c *cobra.Command, err error) error {
	return &usageError{c.CommandPath(), err}
}

func unknownCommand(root *cobra.Command, name string) error {
	root.SuggestionsMinimumDistance = 2
	err := fmt.Errorf("there is no command %q", name)
	if near := root.SuggestionsFor(name); len(near) > 0 {
		err = fmt.Errorf("%w, did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}

// atMost refuses more than n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return usageOf(c, fmt.Errorf("there is nothing to do with the argument %q", args[n]))
	}
}
