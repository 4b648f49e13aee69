package interop_test

import (
	"fmt"
	"net"
	"os/exec"
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
	cmd := pythonCommand(t, "testdata/stomp_client.py", scenario, host, port)
	return startProcess(t, "stomp.py "+scenario, cmd, o)
}
