package interop_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/natstomp/natstomp/test/testserver"
)

// python is Debian's own interpreter: another one that comes first in PATH lacks Debian's modules.
const python = "/usr/bin/python3"

// findStompPy reports once whether stomp.py can be used.
var findStompPy = sync.OnceValue(func() error {
	out, err := exec.Command(python, "-B", "-c", "import stomp; print(stomp.__version__)").CombinedOutput()
	if err != nil {
		return fmt.Errorf("these tests need stomp.py for %s: apt-get install -y python3-stomp (%w)\n%s", python, err, out)
	}
	return nil
})

// pythonCommand is Debian's python with a script; it fails the test where stomp.py is missing.
func pythonCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if err := findStompPy(); err != nil {
		t.Fatal(err)
	}
	return exec.Command(python, append([]string{"-B"}, args...)...)
}

// stompPy is stomp.py, each scenario in a process of its own.
type stompPy struct{}

func (stompPy) String() string { return "stomppy" }

func (stompPy) start(t *testing.T, srv *testserver.Server, scenario string, o options) *session {
	t.Helper()
	host, port, err := net.SplitHostPort(srv.TCPAddr)
	if err != nil {
		t.Fatal(err)
	}
	input, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := pythonCommand(t, "testdata/stomp_client.py", scenario, host, port)
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
	s := newSession(t, "stomp.py "+scenario, func() { _ = cmd.Process.Kill() })
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
