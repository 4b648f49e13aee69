package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// built are the programs of this test process.
var built struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

// Binary builds ./cmd/natstomp on its first call and returns the path of the program.
func Binary() (string, error) {
	var args []string
	if raceEnabled {
		args = append(args, "-race")
	}
	return Build("natstomp", "github.com/natstomp/natstomp/cmd/natstomp", args...)
}

// Build builds the program of a package with further arguments of go build, on its first call for that name, and returns
// its path, whose last element is the name. It is safe for concurrent use.
func Build(name, pkg string, args ...string) (string, error) {
	built.Lock()
	defer built.Unlock()
	if path, found := built.paths[name]; found {
		return path, nil
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "natstomp-test-")
		if err != nil {
			return "", err
		}
		built.dir, built.paths = dir, map[string]string{}
	}
	path := filepath.Join(built.dir, name)
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, args...), pkg)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	built.paths[name] = path
	return path, nil
}

// Clean removes the programs that were built. Call it once, when none of them runs any more.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}
