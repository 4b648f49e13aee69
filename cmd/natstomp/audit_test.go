package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAuditFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := openAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	log := a.logger()
	log.Info("first")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	log.Info("second") // Still into the file that was moved.
	if err := a.reopen(); err != nil {
		t.Fatal(err)
	}
	log.Info("third")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := a.reopen(); err == nil {
		t.Error("a directory was opened as the audit log")
	}
	log.Info("fourth") // Into the file from before, which has no name any more.
	if err := a.close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"before", `"msg":"first"`, `"msg":"second"`} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %s in the moved file: %s", line, text)
		}
	}
	if strings.Contains(string(text), "third") {
		t.Errorf("after the reopening the moved file is written to: %s", text)
	}
}

func TestNoAuditFile(t *testing.T) {
	a, err := openAudit("")
	if err != nil || a.logger() != nil || a.reopen() != nil || a.close() != nil {
		t.Errorf("got %v, %v, want nothing at all", a, err)
	}
	if _, err := openAudit(filepath.Join(t.TempDir(), "none", "audit.log")); err == nil || !strings.Contains(err.Error(), "log.audit") {
		t.Errorf("a directory that is not there: got %v", err)
	}
}
