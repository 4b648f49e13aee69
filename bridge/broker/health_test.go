package broker_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestFaultOfTheStore takes the directory of a stream away, which is to the server what a full disk is.
func TestFaultOfTheStore(t *testing.T) {
	cfg := config(t)
	b := start(t, cfg)
	defer stop(t, b, nil)
	for _, name := range []string{"A", "B"} {
		if _, err := b.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Fault(); err != nil {
		t.Errorf("a good store: got %v, want nil", err)
	}
	found, err := filepath.Glob(filepath.Join(cfg.Embedded.StoreDir, "jetstream", "*", "streams", "A", "msgs"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the directories of A's messages: got %q (%v), want one", found, err)
	}
	if err := os.Rename(found[0], found[0]+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(found[0], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 1<<20)
	for range 64 { // The next file of messages is made after some of them.
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err = b.JS.Publish(ctx, "A", body, jetstream.WithRetryAttempts(0))
		cancel()
		if err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("a stream without a directory takes everything")
	}
	if err := b.Fault(); err == nil || !strings.Contains(err.Error(), "A' write error") {
		t.Errorf("got %v, want the write error of A", err)
	}
	if _, err := b.JS.Publish(t.Context(), "B", body); err != nil {
		t.Errorf("the other stream: %v", err)
	}
}
