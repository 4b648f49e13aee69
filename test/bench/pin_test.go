package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/natstomp/natstomp/test/testserver"
)

const (
	pinned     = "server on core 0, load on core 1"
	serverCore = "0"
	loadCore   = "1"
)

// launch starts the server and says in words which cores it and the load run on. The server inherits the core of this
// process, which moves to the other one afterwards; it then also counts one core only.
func launch(dir string) (*testserver.Server, string, error) {
	if runtime.NumCPU() < 2 {
		return unpinned(dir, "one core only")
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		return unpinned(dir, "no taskset")
	}
	if err := moveTo(serverCore); err != nil {
		return unpinned(dir, "taskset failed")
	}
	srv, err := testserver.Launch(dir)
	if err != nil {
		return nil, "", err
	}
	if err := moveTo(loadCore); err != nil {
		srv.Kill()
		return nil, "", err
	}
	return srv, pinned, nil
}

func unpinned(dir, why string) (*testserver.Server, string, error) {
	srv, err := testserver.Launch(dir)
	return srv, "server and load share all cores (" + why + ")", err
}

// moveTo binds all threads of this process to a core; new threads inherit it.
func moveTo(core string) error {
	cmd := exec.Command("taskset", "--all-tasks", "--pid", "--cpu-list", core, strconv.Itoa(os.Getpid()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// useCores lets the load run on as many threads as it has cores. The caller calls the result when it is done.
func useCores() (restore func()) {
	if !target.pinned {
		return func() {}
	}
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}
