package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// built is the program of this test process.
var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// Binary builds ./cmd/natstomp on its first call and returns the path of the program.
func Binary() (string, error) {
	built.once.Do(func() { built.path, built.err = build() })
	return built.path, built.err
}

func build() (string, error) {
	dir, err := os.MkdirTemp("", "natstomp-test-")
	if err != nil {
		return "", err
	}
	built.dir = dir
	path := filepath.Join(dir, "natstomp")
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "github.com/natstomp/natstomp/cmd/natstomp")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building natstomp: %w\n%s", err, out)
	}
	return path, nil
}

// Clean removes the program that Binary built. Call it once, when no server runs any more.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}
