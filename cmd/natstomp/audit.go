package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// auditFile is a file that lines are appended to. A file that was moved away, as logrotate does, is left by reopen. It is
// safe for concurrent use.
type auditFile struct {
	path string

	mu sync.Mutex
	f  *os.File // guarded by mu
}

// openAudit opens the file of log.audit; nil where there is none.
func openAudit(path string) (*auditFile, error) {
	if path == "" {
		return nil, nil
	}
	a := &auditFile{path: path}
	if err := a.reopen(); err != nil {
		return nil, err
	}
	return a, nil
}

// logger returns the audit log: every event, whatever log.level is. It is nil where a is.
func (a *auditFile) logger() *slog.Logger {
	if a == nil {
		return nil
	}
	return slog.New(slog.NewJSONHandler(a, nil))
}

// Write implements io.Writer.
func (a *auditFile) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.f.Write(line)
}

// reopen goes on in the file that has the name now. After an error it goes on in the one before.
func (a *auditFile) reopen() error {
	if a == nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Clean(a.path), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log.audit: %q cannot be written: %s", a.path, reasonOf(err))
	}
	a.mu.Lock()
	before := a.f
	a.f = f
	a.mu.Unlock()
	if before != nil {
		return before.Close()
	}
	return nil
}

func (a *auditFile) close() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.f.Close()
}
