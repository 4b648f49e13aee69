//go:build unix

package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// dirLock keeps a second process off a store directory. The kernel releases it when the process ends.
type dirLock struct{ f *os.File }

func lockDir(dir string) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "natstomp.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("nats.embedded.store_dir: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close() // The lock is not ours.
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("nats.embedded.store_dir %s is in use by another process", dir)
		}
		return nil, fmt.Errorf("locking nats.embedded.store_dir: %w", err)
	}
	return &dirLock{f: f}, nil
}

func (l *dirLock) release() error { return l.f.Close() }
