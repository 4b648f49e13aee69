package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/tokens"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	c.mu.Unlock()
}

// write makes a file and returns its path.
func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	replace(t, path, text)
	return path
}

// replace changes a file as programs do that care: all at once.
func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// What the tests use of package tokens.
type (
	signer = tokens.Signer
	values = tokens.Values
)

const secret = tokens.Secret

var (
	signers   = tokens.Signers
	newEC     = tokens.NewEC
	publicPEM = tokens.PublicPEM
	jwk       = tokens.JWK
	jwks      = tokens.Set
	token     = tokens.Sign
	config    = tokens.Config
	b64       = tokens.Base64
)

func service(t *testing.T, cfg auth.Config, c *clock) *auth.Service {
	t.Helper()
	s, err := auth.NewAt(cfg, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// admitted wants a token to be accepted.
func admitted(t *testing.T, s *auth.Service, text string) auth.Identity {
	t.Helper()
	i, err := s.Authenticate(t.Context(), auth.Credentials{Passcode: text})
	if err != nil {
		t.Fatalf("got %v (%s), want an identity", err, reason(err))
	}
	return i
}

// refused wants credentials to be refused with the one text, and returns the code.
func refused(t *testing.T, s *auth.Service, c auth.Credentials) string {
	t.Helper()
	i, err := s.Authenticate(t.Context(), c)
	var r *auth.Refused
	if !errors.As(err, &r) {
		t.Fatalf("got %+v, %v, want a refusal", i, err)
	}
	if err.Error() != auth.RefusedText || r.Reason == "" || r.Code == "" {
		t.Errorf("got %q with code %q and reason %q, want %q with both", err, r.Code, r.Reason, auth.RefusedText)
	}
	if i.Name != "" || i.Roles != nil {
		t.Errorf("got %+v beside a refusal", i)
	}
	return r.Code
}

func reason(err error) string {
	var r *auth.Refused
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}
