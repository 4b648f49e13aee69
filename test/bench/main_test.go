package bench_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

func TestMain(m *testing.M) { rig.Main(m, stopTarget) }

// target is the server of all benchmarks. It starts with the first.
var target struct {
	once   sync.Once
	srv    *testserver.Server
	dir    string
	pinned bool
	err    error
}

// server returns the running server.
func server(b *testing.B) *testserver.Server {
	b.Helper()
	target.once.Do(func() { target.err = startTarget() })
	if target.err != nil {
		b.Fatal(target.err)
	}
	return target.srv
}

func startTarget() error {
	// Built first: the compiler may use all cores.
	if _, err := testserver.Binary(); err != nil {
		return err
	}
	var err error
	if target.dir, err = os.MkdirTemp("", "natstomp-bench-"); err != nil {
		return err
	}
	var where string
	if target.srv, where, err = launch(target.dir); err != nil {
		return err
	}
	target.pinned = where == pinned
	fmt.Printf("cores: %s\n", where)
	return nil
}

func stopTarget() error {
	if target.srv == nil {
		return nil
	}
	err := target.srv.Stop()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, target.srv.Log())
	}
	_ = os.RemoveAll(target.dir) // A directory of the system's temporary ones.
	return err
}
