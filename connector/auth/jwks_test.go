package auth_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/test/rig"
)

// issuer serves a key set over https and counts who asks.
type issuer struct {
	*httptest.Server
	asked  atomic.Int64
	mu     sync.Mutex
	answer http.HandlerFunc
}

func newIssuer(t *testing.T, set []byte) *issuer {
	t.Helper()
	i := &issuer{}
	i.serve(set)
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		i.mu.Lock()
		answer := i.answer
		i.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) do(answer http.HandlerFunc) {
	i.mu.Lock()
	i.answer = answer
	i.mu.Unlock()
}

func (i *issuer) serve(set []byte) {
	i.do(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) }) // What is missing shows.
}

func (i *issuer) fail() {
	i.do(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) })
}

// config has no keys but those of the issuer.
func (i *issuer) config(t *testing.T) auth.Config {
	t.Helper()
	cfg := config(t)
	cfg.JWT.HMACSecret, cfg.JWT.PublicKeyFiles, cfg.JWT.JWKS = nil, nil, i.URL+"/keys?canary"
	cfg.JWT.RootCAs = x509.NewCertPool()
	cfg.JWT.RootCAs.AddCert(i.Certificate())
	return cfg
}

// run runs a service until the test ends, and joins it.
func run(t *testing.T, s *auth.Service) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// soon bounds what must not wait for ever.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestJ19Rotation also holds FR-111: new keys at the issuer lock nobody out until the next fetch.
func TestJ19Rotation(t *testing.T) {
	c := newClock()
	old, fresh := signers()["RS256"], signers()["ES256"]
	i := newIssuer(t, jwks(t, jwk("old", "", old.Key)))
	s := service(t, i.config(t), c)
	if s.Ready() == nil {
		t.Error("ready without keys")
	}
	run(t, s)
	byOld := token(t, c.Now(), old, values{"kid": "old"}, nil)
	byFresh := token(t, c.Now(), fresh, values{"kid": "fresh"}, nil)
	// The first login waits for the first fetch.
	if _, err := s.Authenticate(soon(t), auth.Credentials{Passcode: byOld}); err != nil {
		t.Fatalf("got %v (%s)", err, reason(err))
	}
	if err := s.Ready(); err != nil {
		t.Error(err)
	}
	i.serve(jwks(t, jwk("fresh", "", fresh.Key)))
	// A token with a new kid is let in at once, by one more fetch.
	if _, err := s.Authenticate(soon(t), auth.Credentials{Passcode: byFresh}); err != nil {
		t.Fatalf("got %v (%s)", err, reason(err))
	}
	if got := i.asked.Load(); got != 2 {
		t.Errorf("the issuer was asked %d times, want 2", got)
	}
	if code := refused(t, s, auth.Credentials{Passcode: byOld}); code != auth.CodeKey {
		t.Errorf("rotated out: got code %s", code)
	}
	i.serve(jwks(t, jwk("old", "", old.Key)))
	if err := s.Reload(); err != nil {
		t.Error(err)
	}
	rig.Holds(t, "fetch by Reload", func() bool {
		_, err := s.Authenticate(t.Context(), auth.Credentials{Passcode: byOld})
		return err == nil
	})
}

// TestFirstFetchIsWaitedFor, also for a token that names no key.
func TestFirstFetchIsWaitedFor(t *testing.T) {
	c := newClock()
	key := signers()["ES256"]
	i := newIssuer(t, nil)
	let := make(chan struct{})
	i.do(func(w http.ResponseWriter, _ *http.Request) {
		<-let
		_, _ = w.Write(jwks(t, jwk("a", "", key.Key)))
	})
	s := service(t, i.config(t), c)
	run(t, s)
	var wg sync.WaitGroup
	for _, kid := range []any{nil, "a"} {
		text := token(t, c.Now(), key, values{"kid": kid}, nil)
		wg.Go(func() {
			if _, err := s.Authenticate(soon(t), auth.Credentials{Passcode: text}); err != nil {
				t.Errorf("kid %v: got %v (%s)", kid, err, reason(err))
			}
		})
	}
	rig.Holds(t, "fetch", func() bool { return i.asked.Load() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Authenticate(ctx, auth.Credentials{Passcode: token(t, c.Now(), key, nil, nil)}); err == nil {
		t.Error("let in without keys")
	}
	close(let)
	wg.Wait()
	if got := i.asked.Load(); got != 1 {
		t.Errorf("the issuer was asked %d times, want 1", got)
	}
}

// TestJ5UnknownKid: 1,000 tokens cause one fetch a minute, and no other request.
func TestJ5UnknownKid(t *testing.T) {
	c := newClock()
	key := signers()["ES256"]
	i := newIssuer(t, jwks(t, jwk("known", "ES256", key.Key)))
	elsewhere := newIssuer(t, jwks(t, jwk("unknown", "ES256", key.Key)))
	s := service(t, i.config(t), c)
	run(t, s)
	rig.Holds(t, "first fetch", func() bool { return s.Ready() == nil })
	for minute := int64(0); minute < 3; minute++ {
		var wg sync.WaitGroup
		for n := range 1000 {
			text := token(t, c.Now(), key, values{"kid": fmt.Sprint("unknown", n), "jku": elsewhere.URL, "x5u": elsewhere.URL}, nil)
			wg.Go(func() {
				if _, err := s.Authenticate(soon(t), auth.Credentials{Passcode: text}); err == nil {
					t.Error("a token with an unknown kid was accepted")
				}
			})
		}
		wg.Wait()
		if got, want := i.asked.Load(), 2+minute; got != want {
			t.Fatalf("minute %d: the issuer was asked %d times, want %d", minute, got, want)
		}
		admitted(t, s, token(t, c.Now(), key, values{"kid": "known"}, nil))
		c.add(time.Minute)
	}
	if got := elsewhere.asked.Load(); got != 0 {
		t.Errorf("the attacker's server was asked %d times", got)
	}
}

func TestStaleKeysAreUsedForADay(t *testing.T) {
	c := newClock()
	key := signers()["EdDSA"]
	i := newIssuer(t, jwks(t, jwk("a", "", key.Key)))
	s := service(t, i.config(t), c)
	run(t, s)
	rig.Holds(t, "first fetch", func() bool { return s.Ready() == nil })
	for name, answer := range map[string]http.HandlerFunc{
		"error":      func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "x", http.StatusInternalServerError) },
		"no content": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"no keys":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
		"no JSON":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) },
		"a secret": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(jwks(t, jwk("a", "HS256", []byte(secret))))
		},
		"2 MiB":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte(" "), 2<<20)) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://"+r.Host, http.StatusFound) },
		"a loop":     func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.String(), http.StatusFound) },
		"cut off":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"another key?": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[{"kty":"EC","crv":"P-256"}]}`))
		},
	} {
		i.do(answer)
		c.add(time.Minute)
		unknown := token(t, c.Now(), key, values{"kid": "b"}, nil)
		if _, err := s.Authenticate(soon(t), auth.Credentials{Passcode: unknown}); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if err := s.Fault(); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got the fault %v", name, err)
		}
		admitted(t, s, token(t, c.Now(), key, values{"kid": "a"}, nil))
	}
	c.add(24*time.Hour + time.Second)
	if s.Ready() == nil {
		t.Error("ready with keys that are too old")
	}
	i.fail()
	if code := refused(t, s, auth.Credentials{Passcode: token(t, c.Now(), key, nil, nil)}); code != auth.CodeKey {
		t.Errorf("got code %s", code)
	}
}

// TestKeysAreNotFetchedOverOpenLines, nor from whom nobody trusts.
func TestKeysAreNotFetchedOverOpenLines(t *testing.T) {
	c := newClock()
	open := httptest.NewServer(http.NotFoundHandler())
	defer open.Close()
	cfg := config(t)
	for _, url := range []string{open.URL, "ftp://x/y", "https://", "https://%zz"} {
		cfg.JWT.JWKS = url
		if _, err := auth.NewAt(cfg, c.Now); err == nil {
			t.Errorf("%s: got no error", url)
		}
	}
	i := newIssuer(t, jwks(t, jwk("a", "", signers()["EdDSA"].Key)))
	cfg = i.config(t)
	cfg.JWT.RootCAs = x509.NewCertPool()
	s := service(t, cfg, c)
	i.Config.ErrorLog = discard()
	run(t, s)
	rig.Holds(t, "fault", func() bool { return s.Fault() != nil })
	if i.asked.Load() != 0 || s.Ready() == nil {
		t.Error("keys were fetched from whom nobody trusts")
	}
}

func TestKeySetFile(t *testing.T) {
	c := newClock()
	old, fresh := signers()["RS256"], signers()["ES384"]
	path := write(t, "set.json", jwks(t, jwk("old", "", old.Key),
		map[string]any{"kty": "future"}, map[string]any{"kty": "RSA"}, jwk("e", "RSA-OAEP", signers()["RS384"].Key)))
	cfg := config(t)
	cfg.JWT.HMACSecret, cfg.JWT.PublicKeyFiles, cfg.JWT.JWKS = nil, nil, path
	s := service(t, cfg, c)
	run(t, s)
	admitted(t, s, token(t, c.Now(), old, nil, nil))
	replace(t, path, []byte(`{"keys":[]}`))
	rig.Holds(t, "fault", func() bool { return s.Fault() != nil })
	admitted(t, s, token(t, c.Now(), old, nil, nil))
	replace(t, path, jwks(t, jwk("fresh", "", fresh.Key)))
	rig.Holds(t, "rotation", func() bool {
		_, err := s.Authenticate(t.Context(), auth.Credentials{Passcode: token(t, c.Now(), fresh, nil, nil)})
		return err == nil
	})
	if err := s.Fault(); err != nil {
		t.Error(err)
	}
	refused(t, s, auth.Credentials{Passcode: token(t, c.Now(), old, nil, nil)})
}

func TestKeyFaults(t *testing.T) {
	c := newClock()
	rs, es := signers()["RS256"], signers()["ES256"]
	for _, tt := range []struct {
		name   string
		change func(*auth.JWT)
		want   string
	}{
		{"no key", func(*auth.JWT) {}, "no key"},
		{"short secret", func(j *auth.JWT) { j.HMACSecret = func() string { return "canary" } }, "hmac_secret has 6 octets, fewer than the 32 of HS256"},
		{"short for HS512", func(j *auth.JWT) { j.HMACSecret = func() string { return "HS512:" + secret[:63] } }, "fewer than the 64"},
		{"no file", func(j *auth.JWT) { j.PublicKeyFiles = []string{"missing.pem"} }, "missing.pem"},
		{"no PEM", func(j *auth.JWT) { j.PublicKeyFiles = []string{write(t, "a", []byte("canary"))} }, "has no PEM block"},
		{"private", func(j *auth.JWT) { j.PublicKeyFiles = []string{write(t, "a", privatePEM(t, es.Key))} }, "block 1 is a private key"},
		{"other algorithm", func(j *auth.JWT) { j.PublicKeyFiles = []string{"RS256:" + write(t, "a", publicPEM(t, es.Public()))} }, "does not fit RS256"},
		{"wrong curve", func(j *auth.JWT) { j.PublicKeyFiles = []string{"ES384:" + write(t, "a", publicPEM(t, es.Public()))} }, "does not fit ES384"},
		{"small", func(j *auth.JWT) { j.PublicKeyFiles = []string{write(t, "a", publicPEM(t, smallRSA(t)))} }, "1024 bits"},
		{"no set", func(j *auth.JWT) { j.JWKS = "missing.json" }, "missing.json"},
		{"broken set", func(j *auth.JWT) { j.JWKS = write(t, "a", []byte("{")) }, "is no JSON Web Key Set"},
		{"empty set", func(j *auth.JWT) { j.JWKS = write(t, "a", []byte("{}")) }, "no key that can be used"},
		{"all faults", func(j *auth.JWT) {
			j.JWKS, j.PublicKeyFiles = write(t, "a", []byte("{")), []string{"missing.pem", write(t, "b", publicPEM(t, rs.Public()))}
		}, "missing.pem"},
	} {
		cfg := auth.Config{Mode: auth.ModeJWT}
		tt.change(&cfg.JWT)
		_, err := auth.NewAt(cfg, c.Now)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
		if tt.name == "all faults" && (err == nil || !strings.Contains(err.Error(), "is no JSON Web Key Set")) {
			t.Errorf("got %v, want both faults", err)
		}
	}
}

// TestCertificateAsKey: a file may hold several keys, and certificates.
func TestCertificateAsKey(t *testing.T) {
	c := newClock()
	key := signers()["ES256"]
	file := append(publicPEM(t, signers()["RS256"].Public()), selfSigned(t, key.Key)...)
	s := service(t, auth.Config{Mode: auth.ModeJWT, JWT: auth.JWT{PublicKeyFiles: []string{write(t, "a", file)}, ClientIDClaims: []string{"sub"}}}, c)
	for _, alg := range []string{"ES256", "RS256"} {
		admitted(t, s, token(t, c.Now(), signers()[alg], values{"kid": "any"}, nil))
	}
}
