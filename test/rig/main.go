package rig

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/test/testserver"
)

// Patience is how long a test waits for what must come; only a failing one waits that long. It is shorter than the ack
// wait of the queues (30 s): nothing may wait for that. A package where something does sets it in its TestMain.
var Patience = 20 * time.Second

// Main runs the tests of a package and ends the process, for TestMain. When they are done it calls end, which may be
// nil, and removes the programs that were built. An error of it is a fault, and so is a goroutine that is left, except
// those that are ignored.
func Main(m *testing.M, end func() error, ignored ...goleak.Option) {
	// The race detector would let each process sleep for a second at its end.
	if err := os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0")); err != nil {
		panic(err)
	}
	code := m.Run()
	var err error
	if end != nil {
		err = end()
	}
	testserver.Clean()
	if code == 0 {
		err = errors.Join(err, goleak.Find(ignored...))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Until polls a condition that must come true within Patience, and fails the test with what it says otherwise.
func Until(tb testing.TB, condition func() error) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(Patience); ; <-tick.C {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %v", Patience, err)
		}
	}
}

// Holds is Until for a condition that can only say whether it is true; what names it.
func Holds(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	Until(tb, func() error {
		if !condition() {
			return fmt.Errorf("%s", what)
		}
		return nil
	})
}
