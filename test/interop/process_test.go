package interop_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// startProcess runs a scenario in a process of its own, which reads the options as JSON from its standard input and
// writes events, one JSON object a line, to its standard output.
func startProcess(t *testing.T, label string, cmd *exec.Cmd, o options) *session {
	t.Helper()
	input, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := newSession(t, label, func() { _ = cmd.Process.Kill() })
	s.process = cmd.Process
	go func() {
		readErr := readEvents(stdout, s)
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, strings.TrimSpace(stderr.String()))
		}
		s.end(errors.Join(err, readErr))
	}()
	return s
}

// readEvents passes each line of a process to the session, until its end.
func readEvents(r io.Reader, s *session) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %q: %w", line, err)
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("an event is not JSON: %w: %q", err, line)
		}
		s.add(e)
	}
}
