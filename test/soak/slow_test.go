package soak_test

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/testserver"
)

const (
	// others is how many subscribers must not notice the one that does not read.
	others = 50
	// pace is the time between two sends.
	pace = 4 * time.Millisecond
	// allowance is by how much a gap may exceed the largest of the idle run.
	allowance = 100 * time.Millisecond * slowness
)

// gauge finds the largest gap between arrivals.
type gauge struct {
	last time.Time
	most time.Duration
}

// arrive notes one arrival.
func (g *gauge) arrive() {
	now := time.Now()
	if !g.last.IsZero() {
		g.most = max(g.most, now.Sub(g.last))
	}
	g.last = now
}

// judge compares the largest gaps of an idle and of a loaded run, in the better part of three rounds. A client of
// another server, which has nothing to do, shows meanwhile what other work on the machine does to everybody: that much is
// allowed, too. A reader that holds up others holds them up for as long as it stalls, in each round.
func judge(t *testing.T, idle func() time.Duration, loaded func(round int) time.Duration) {
	t.Helper()
	control := newEcho(t, testserver.Start(t))
	good, bad := 0, 0
	for round := 1; good < 2 && bad < 2; round++ {
		before, during := idle(), time.Duration(0)
		control.measure(t, func() { during = loaded(round) })
		machine := quantile(control.took, 1)
		t.Logf("round %d: largest gap %v idle, %v beside a reader that does not read (machine: %v)", round, before, during, machine)
		if during <= max(before, machine)+allowance {
			good++
		} else {
			bad++
		}
	}
	if bad > 1 {
		t.Errorf("in two rounds of three a gap beyond the idle run by more than %v", allowance)
	}
}

// payload is a body of the given size that begins with a round and a number.
func payload(size, round, number int) []byte {
	b := fmt.Appendf(nil, "%d:%d ", round, number)
	return append(b, bytes.Repeat([]byte{'x'}, max(0, size-len(b)))...)
}

// parsePayload returns what payload was given.
func parsePayload(body []byte) (round, number int, err error) {
	first, _, _ := bytes.Cut(body, []byte{' '})
	left, right, found := bytes.Cut(first, []byte{':'})
	if !found {
		return 0, 0, fmt.Errorf("body %.40q is none of ours", body)
	}
	if round, err = strconv.Atoi(string(left)); err == nil {
		number, err = strconv.Atoi(string(right))
	}
	return round, number, err
}
