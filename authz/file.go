package authz

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long a file must have been left alone before it is read: who writes it does so in several steps.
	settle = 100 * time.Millisecond
	// settleMost bounds settle where something happens all the time.
	settleMost = 500 * time.Millisecond
	// lookEvery is how often the file is looked at though nothing was heard, for file systems that tell nothing.
	lookEvery = 2 * time.Second
)

// File gives an Authorizer the policy of a file. It is safe for concurrent use.
type File struct {
	// Immutable.
	authorizer *Authorizer
	path       string
	lookEvery  time.Duration

	// Guarded by mu.
	mu   sync.Mutex
	seen seen
	info fs.FileInfo // Of the file when it was read; nil if there was none.
}

// seen is what was found the last time.
type seen struct {
	sum   [sha256.Size]byte
	fault string // Why nothing was.
}

// NewFile returns a File that has read nothing yet.
func NewFile(a *Authorizer, path string) *File {
	return &File{authorizer: a, path: path, lookEvery: lookEvery}
}

// Reload reads the file and loads it, also if it is as before; what SIGHUP asks for, and the start. The error is that of
// reading it or a *PolicyError; the policy before stays then, and Status says so.
func (f *File) Reload() error { return f.look(true) }

// glance is look where nothing was heard of a change: it reads the file only if it seems to be another one.
func (f *File) glance() {
	f.mu.Lock()
	old := f.info
	f.mu.Unlock()
	now, err := os.Stat(f.path)
	if err != nil || old == nil || !os.SameFile(old, now) || old.Size() != now.Size() || !old.ModTime().Equal(now.ModTime()) {
		_ = f.look(false)
	}
}

// look reads the file and loads it if it has changed or always is set.
func (f *File) look(always bool) error {
	f.mu.Lock()
	text, now, err := f.read()
	if now == f.seen && !always {
		f.mu.Unlock()
		return nil
	}
	f.seen = now
	if err != nil {
		f.mu.Unlock()
		f.authorizer.Fail(f.path, err)
		return fmt.Errorf("%s: %w", f.path, err)
	}
	st, err := f.authorizer.take(f.path, text) // Under the lock: who has read last must be taken last.
	f.mu.Unlock()
	f.authorizer.tell(st)
	return err
}

func (f *File) read() (text []byte, now seen, err error) {
	f.info, _ = os.Stat(f.path) // Before reading: what is written meanwhile has another time.
	text, err = readFile(f.path)
	if err != nil {
		return nil, seen{fault: err.Error()}, err
	}
	return text, seen{sum: sha256.Sum256(text)}, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err == nil {
		defer func() { _ = file.Close() }()
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(file, maxPolicy+1)); err == nil {
			return text, nil
		}
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return nil, fmt.Errorf("cannot be read: %w", err)
}

// Run loads the file each time that it changes, until ctx is done. Who writes it may replace it, as editors do, or a
// link on the way to it, as Kubernetes does; whoever writes into it in several steps should do so within a tenth of a
// second. What Reload has loaded already is not loaded again. Run returns nil, or why nothing can be watched; Reload can
// still be called then.
func (f *File) Run(ctx context.Context) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", f.path, err)
	}
	defer func() { _ = w.Close() }()
	watched := watching{watcher: w}
	f.run(ctx, w.Events, w.Errors, func() { watched.follow(f.path) })
	return nil
}

// run is Run on what a watcher tells. It calls follow where the path may lead over other directories than before.
func (f *File) run(ctx context.Context, events <-chan fsnotify.Event, faults <-chan error, follow func()) {
	tick := time.NewTicker(f.lookEvery)
	defer tick.Stop()
	quiet := time.NewTimer(settle) // What changed before the watch began.
	defer quiet.Stop()
	var since time.Time // When the first event came that was not looked after; zero if there is none.
	follow()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-faults:
			if err != nil { // Something was missed.
				quiet.Reset(settle)
			}
		case <-events:
			if since.IsZero() {
				since = time.Now()
			}
			if time.Since(since) < settleMost {
				quiet.Reset(settle)
			}
			continue
		case <-tick.C:
			if since.IsZero() {
				follow()
				f.glance()
			}
		case <-quiet.C:
			since = time.Time{}
			follow()
			_ = f.look(false) // Status has it.
		}
	}
}

// watching keeps a watcher on the directories that decide what a path leads to.
type watching struct {
	watcher     *fsnotify.Watcher
	directories []string
}

// follow watches the directory of the path and of each link that it leads over.
func (w *watching) follow(path string) {
	const most = 40 // Links in a row, as in Linux.
	var now []string
	for range most {
		directory := filepath.Dir(path)
		now = append(now, directory)
		// A link may be in the middle of the path too.
		if whole, err := filepath.EvalSymlinks(directory); err == nil && whole != directory {
			now = append(now, whole, filepath.Dir(directory))
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(directory, target)
		}
		path = target
	}
	for _, old := range w.directories {
		if !slices.Contains(now, old) {
			_ = w.watcher.Remove(old)
		}
	}
	w.directories = w.directories[:0]
	for _, directory := range now {
		if w.watcher.Add(directory) == nil { // Again too: it may be another one of the same name.
			w.directories = append(w.directories, directory)
		}
	}
}
