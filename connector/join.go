package connector

import (
	"errors"
	"sync"
)

// join calls done once, after so many outcomes, with all their faults.
type join struct {
	done func(error)

	mu   sync.Mutex
	open int   // guarded by mu
	errs error // guarded by mu
}

func newJoin(n int, done func(error)) *join { return &join{open: n, done: done} }

// one reports one outcome.
func (j *join) one(err error) {
	j.mu.Lock()
	j.open--
	j.errs = errors.Join(j.errs, err)
	last, errs := j.open == 0, j.errs
	j.mu.Unlock()
	if last {
		j.done(errs)
	}
}
