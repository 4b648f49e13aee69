package testserver

import (
	"os"
	"syscall"
	"testing"
)

// inMemory is where Linux has a file system in memory, and wantedRoom what must be free there for it to be used.
const (
	inMemory   = "/dev/shm"
	wantedRoom = 4 << 30
)

// StoreDir returns a directory for stores of servers that a test runs, which is removed when the test ends. It is in memory
// where there is room: JetStream waits for the disk before it confirms a transaction and before it ends, and a disk that
// others write to may take longer for that than nats.publish_timeout allows. What a killed process wrote is there all the
// same.
func StoreDir(tb testing.TB) string {
	tb.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(inMemory, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < wantedRoom {
		return tb.TempDir()
	}
	dir, err := os.MkdirTemp(inMemory, "natstomp-test-")
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}
