package authz

import (
	"context"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Settle is how long a file must have been left alone before it is read.
const Settle = settle

// SetLookEvery changes how often a file is looked at that nothing is heard of. To be called before Run.
func SetLookEvery(f *File, d time.Duration) { f.lookEvery = d }

// RunOn is Run on events that a test makes.
func RunOn(ctx context.Context, f *File, events <-chan fsnotify.Event) {
	f.run(ctx, events, nil, func() {})
}

// HoldLoads has every Load wait until the lock is released, in the state in which one reads and indexes a policy.
func HoldLoads(a *Authorizer) (release func()) {
	a.mu.Lock()
	return a.mu.Unlock
}
