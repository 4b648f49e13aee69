package authz

import "time"

// SetLookEvery changes how often a file is looked at that nothing is heard of. To be called before Run.
func SetLookEvery(f *File, d time.Duration) { f.lookEvery = d }
