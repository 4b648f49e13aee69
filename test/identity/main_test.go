package identity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a test waits for what must come; only a failing one waits that long.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "natstomp-identity")
	if err != nil {
		panic(err)
	}
	// A key set at an https URL is trusted as the system says; here the system trusts the authority of these tests.
	bundle := filepath.Join(dir, "authorities.pem")
	if err := os.WriteFile(bundle, authority().pem(), 0o600); err != nil {
		panic(err)
	}
	for name, value := range map[string]string{
		"SSL_CERT_FILE": bundle, "SSL_CERT_DIR": dir,
		"GORACE": strings.TrimSpace(os.Getenv("GORACE") + " atexit_sleep_ms=0"),
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(dir) // It is in the directory for temporary files either way.
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// until waits for something that the server does by itself and that shows nowhere else.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
