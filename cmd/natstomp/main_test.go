package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/natstomp/natstomp/test/rig"
)

func TestMain(m *testing.M) {
	rig.Patience = 30 * time.Second // Each step is a process of its own.
	testscript.Main(m, map[string]func(){"natstomp": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exitcode": exitCode,
			"await":    await,
			"converse": converse,
		},
	})
}

// exitCode runs a program and wants it to end with a code: exitcode CODE PROGRAM [ARG ...].
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode CODE PROGRAM [ARG ...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var failed *exec.ExitError
		if !errors.As(err, &failed) {
			ts.Fatalf("%v", err)
		}
		got = failed.ExitCode()
	}
	if got != want {
		ts.Fatalf("%q: got exit code %d, want %d", args[1:], got, want)
	}
}

// await waits until a file that a program in the background writes has a line that matches, and puts what the first
// group matches into a variable: await FILE PATTERN [VARIABLE].
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await FILE PATTERN [VARIABLE]")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var text []byte
	for end := time.Now().Add(rig.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, err = os.ReadFile(ts.MkAbs(args[0]))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			ts.Fatalf("%v", err)
		}
		if m := pattern.FindSubmatch(text); m != nil {
			if len(args) > 2 {
				ts.Setenv(args[2], string(m[1]))
			}
			return
		}
	}
	ts.Fatalf("no line of %s matches %s:\n%s", args[0], args[1], text)
}

// converse connects to an address, sends a text and wants all that comes back until the end to match:
// converse ADDRESS TEXT PATTERN. The text may have Go's escapes.
func converse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: converse ADDRESS TEXT PATTERN")
	}
	text, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	conn, err := net.DialTimeout("tcp", args[0], rig.Patience)
	ts.Check(err)
	defer func() { _ = conn.Close() }()
	ts.Check(conn.SetDeadline(time.Now().Add(rig.Patience)))
	_, err = conn.Write([]byte(text))
	ts.Check(err)
	var answer bytes.Buffer
	_, err = answer.ReadFrom(conn)
	ts.Check(err)
	if pattern := regexp.MustCompile("(?m)" + args[2]); !pattern.Match(answer.Bytes()) {
		ts.Fatalf("got %q, which does not match %s", answer.String(), args[2])
	}
}
