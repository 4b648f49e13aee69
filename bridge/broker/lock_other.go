//go:build !unix

package broker

// dirLock does nothing where there is no flock.
type dirLock struct{}

func lockDir(string) (*dirLock, error) { return &dirLock{}, nil }

func (l *dirLock) release() error { return nil }
