//go:build !linux

package testserver

import "testing"

// StoreDir returns a directory for stores of servers that a test runs, which is removed when the test ends.
func StoreDir(tb testing.TB) string {
	tb.Helper()
	return tb.TempDir()
}
