package auth

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// maxFile is the octets of a file that is read.
	maxFile = 16 << 20
	// watchInterval is how often files are looked at. Asking for their state costs microseconds, works on every file
	// system and sees the swap of a symbolic link, with which Kubernetes changes files.
	watchInterval = time.Second
)

// watched is a file of the configuration whose changes are noticed.
type watched struct {
	path string

	mu     sync.Mutex
	loaded os.FileInfo // guarded by mu; the state that was read last, or that was refused; nil: there was no file
	seen   os.FileInfo // guarded by mu; the state at the last look
}

// read returns what is in the file.
func (w *watched) read() ([]byte, error) {
	f, err := os.Open(filepath.Clean(w.path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // It was only read.
	state, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: has more than %d octets", w.path, maxFile)
	}
	w.mu.Lock()
	w.loaded = state
	w.mu.Unlock()
	return text, nil
}

// changed reports once that the file is another than that which was read, and that it has been the same for one look: a
// file that is being written is left alone.
func (w *watched) changed() bool {
	state, err := os.Stat(w.path)
	if err != nil {
		state = nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	settled := sameFile(state, w.seen)
	w.seen = state
	if !settled || sameFile(state, w.loaded) {
		return false
	}
	w.loaded = state // Looked at once, whatever comes of it.
	return true
}

func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
