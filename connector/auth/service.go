package auth

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Mode is how clients prove who they are.
type Mode string

// The modes. Beside each of them a client certificate names the client where no passcode and no token does.
const (
	// ModeNone lets everybody in, under whatever name.
	ModeNone Mode = "none"
	// ModeUsers asks for a login and a passcode of the users file.
	ModeUsers Mode = "users"
	// ModeJWT asks for a JSON Web Token.
	ModeJWT Mode = "jwt"
)

// Config configures a Service.
type Config struct {
	// Mode is how clients prove who they are. Required.
	Mode Mode
	// UsersFile is the path of the users file, for ModeUsers.
	UsersFile string
	// JWT configures ModeJWT.
	JWT JWT
	// Logger receives what happens to files and keys. Default: discard.
	Logger *slog.Logger
	// Changed is called after the users file was read anew, so that sessions can be checked by Recheck. It must not call
	// Reload. Default nil.
	Changed func()
}

// JWT configures ModeJWT. It is not copied deeply and must not change.
type JWT struct {
	// HMACSecret returns the secret of HS256 tokens, or that of others behind HS384: or HS512:. It is a function so that
	// it cannot be printed; nil or "" for none.
	HMACSecret func() string
	// PublicKeyFiles are the paths of PEM files with public keys or certificates. A key is good for one algorithm: RS256,
	// ES256, ES384, ES512 or EdDSA by its kind, or that before the path, as in PS256:/etc/key.pem.
	PublicKeyFiles []string
	// JWKS is the path or the https URL of a JSON Web Key Set; empty for none. A key without alg is bound as a PEM file's.
	JWKS string
	// Issuer is what iss must be; empty accepts any.
	Issuer string
	// Audience is what aud must contain; empty accepts any.
	Audience string
	// Leeway is how far the clocks of issuer and server may differ.
	Leeway time.Duration
	// MaxTokenLifetime is how far ahead a token may expire; 0 sets no bound.
	MaxTokenLifetime time.Duration
	// ClientIDClaims are the claims that may name the client; the first one present does.
	ClientIDClaims []string
	// RolesClaim is the claim with the roles, or the path to it with dots; empty for none.
	RolesClaim string
	// RootCAs are whom to trust at the URL of JWKS. Default: the system's.
	RootCAs *x509.CertPool
}

// Service says who clients are, and follows its files and its key set. Its methods are safe for concurrent use.
type Service struct {
	mode    Mode
	users   *users  // nil but in ModeUsers
	tokens  *tokens // nil but in ModeJWT
	log     *slog.Logger
	changed func()
	look    time.Duration // between two looks at the files

	mu    sync.Mutex
	fault error // guarded by mu; why a file was not taken over
}

// New reads the files and returns a Service. The error has every fault, a line for each, and no secret. A key set at a URL
// is not fetched before Run.
func New(cfg Config) (*Service, error) { return open(cfg, time.Now) }

func open(cfg Config, now func() time.Time) (*Service, error) {
	s := &Service{mode: cfg.Mode, log: cfg.Logger, changed: cfg.Changed, look: watchInterval}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	switch cfg.Mode {
	case ModeNone:
	case ModeUsers:
		s.users, err = openUsers(cfg.UsersFile, now)
	case ModeJWT:
		s.tokens, err = openTokens(cfg.JWT, now, s.log)
	default:
		err = fmt.Errorf("there is no mode %q", cfg.Mode)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Check returns the faults that New would, and does nothing else.
func Check(cfg Config) error {
	switch cfg.Mode {
	case ModeUsers:
		_, err := readUsers(&watched{path: cfg.UsersFile})
		return err
	case ModeJWT:
		_, err := openTokens(cfg.JWT, time.Now, slog.New(slog.DiscardHandler))
		return err
	case ModeNone:
		return nil
	}
	return fmt.Errorf("there is no mode %q", cfg.Mode)
}

// Authenticate returns who the client is, or a *Refused. A passcode or a token that is shown must be right, whatever the
// certificate; the certificate counts where there is neither. It may wait for a turn to check a password, or for keys that
// are being fetched, until ctx ends.
func (s *Service) Authenticate(ctx context.Context, c Credentials) (Identity, error) {
	token := c.Passcode
	if token == "" {
		token = c.Token
	}
	switch {
	case c.Certificate != nil && (s.mode == ModeNone || s.mode == ModeUsers && c.Passcode == "" || s.mode == ModeJWT && token == ""):
		return certified(c.Certificate)
	case s.mode == ModeUsers:
		return s.users.authenticate(ctx, c)
	case s.mode == ModeJWT:
		return s.tokens.authenticate(ctx, token)
	}
	name := c.Client
	if name == "" {
		name = c.Login
	}
	return Identity{Name: name, Source: Claimed}, nil
}

// Refresh judges a token that is to renew the session of an identity. It must name the same one. It returns a *Refused
// otherwise, also in the modes that have no tokens; the session then is as it was.
func (s *Service) Refresh(ctx context.Context, current Identity, token string) (Identity, error) {
	if s.tokens == nil {
		return Identity{}, refuse(CodeNoToken, "tokens are not used")
	}
	next, err := s.tokens.authenticate(ctx, token)
	switch {
	case err != nil:
		return Identity{}, err
	case next.Name != current.Name:
		return Identity{}, refuse(CodeIdentity, "token: of another identity")
	}
	return next, nil
}

// Recheck returns an identity as it is after a reload of the users file, with the roles of now, or a *Refused where the
// line that let it in is gone or has another hash. Other identities are returned as they are.
func (s *Service) Recheck(i Identity) (Identity, error) {
	if i.Source != Password || s.users == nil {
		return i, nil
	}
	return s.users.recheck(i)
}

// Run follows the files, and the key set at its URL, until ctx ends. Without it nothing is fetched: tokens with a key that
// is not known then wait until their ctx ends.
func (s *Service) Run(ctx context.Context) {
	var wg sync.WaitGroup
	if s.tokens != nil && s.tokens.ring != nil {
		wg.Go(func() { s.tokens.ring.run(ctx) })
	}
	ticker := time.NewTicker(s.look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			wg.Wait()
			return
		case <-ticker.C:
			if s.stale() {
				_ = s.Reload() // Fault tells it, and the log.
			}
		}
	}
}

// stale says whether a file has changed.
func (s *Service) stale() bool {
	switch {
	case s.users != nil:
		return s.users.file.changed()
	case s.tokens == nil:
		return false
	}
	changed := s.tokens.changed()
	if ring := s.tokens.ring; ring != nil && ring.url == nil {
		changed = ring.file.changed() || changed
	}
	return changed
}

// Reload reads all files again, as Run does when one has changed. What has a fault is refused whole: what was in use
// before stays, and Fault tells why. A key set at a URL is fetched by Run, soon.
func (s *Service) Reload() error {
	var err error
	switch {
	case s.users != nil:
		err = s.users.reload()
	case s.tokens != nil:
		err = s.tokens.reloadFiles()
		switch ring := s.tokens.ring; {
		case ring == nil:
		case ring.url == nil:
			err = errors.Join(err, ring.load(context.Background()))
		default:
			ring.want()
		}
	}
	s.mu.Lock()
	s.fault = err
	s.mu.Unlock()
	if err != nil {
		s.log.Error("authentication files not taken over; those from before are used", "err", err)
		return err
	}
	if s.mode != ModeNone {
		s.log.Info("authentication files read")
	}
	if s.users != nil && s.changed != nil {
		s.changed()
	}
	return nil
}

// Fault returns why the newest file or key set is not in use, or nil. Logins go on with that from before.
func (s *Service) Fault() error {
	s.mu.Lock()
	err := s.fault
	s.mu.Unlock()
	if s.tokens != nil && s.tokens.ring != nil {
		if fault := s.tokens.ring.lastFault(); fault != nil && s.tokens.ring.url != nil {
			err = errors.Join(err, fault)
		}
	}
	return err
}

// Ready returns nil when logins can be judged, else why not: the key set at a URL was never fetched, or too long ago.
func (s *Service) Ready() error {
	if s.tokens == nil || s.tokens.ring == nil || len(s.tokens.ring.usable()) > 0 {
		return nil
	}
	fault := s.tokens.ring.lastFault()
	if fault == nil {
		fault = errors.New("not fetched yet")
	}
	return fmt.Errorf("there are no keys to check tokens with: %w", fault)
}
