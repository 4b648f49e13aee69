package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// refreshInterval is how often a JWKS is fetched from its URL.
	refreshInterval = 5 * time.Minute
	// retryInterval is how soon that is tried again after a failure.
	retryInterval = 30 * time.Second
	// unknownInterval is how often tokens whose key is not known may have it fetched, all together.
	unknownInterval = time.Minute
	// staleLimit is how long the keys are used while they cannot be fetched.
	staleLimit = 24 * time.Hour
)

// keyring is the keys of a JSON Web Key Set that is a file or at a URL. Only run fetches.
type keyring struct {
	// Immutable.
	file   watched
	url    *url.URL // nil: the file
	fetch  func(context.Context) ([]byte, error)
	now    func() time.Time
	log    *slog.Logger
	wanted chan struct{} // has room for one wish

	mu       sync.Mutex
	keys     []key         // guarded by mu
	loaded   time.Time     // guarded by mu; when keys were fetched or read
	fault    error         // guarded by mu; of the last attempt
	tried    bool          // guarded by mu; there was an attempt
	fetching bool          // guarded by mu
	asked    time.Time     // guarded by mu; when a token last caused an attempt
	round    chan struct{} // guarded by mu; closed when the next attempt ends
}

// openKeyring reads the file; a URL is fetched by run.
func openKeyring(source string, client *fetcher, now func() time.Time, log *slog.Logger) (*keyring, error) {
	k := &keyring{now: now, log: log, wanted: make(chan struct{}, 1), round: make(chan struct{})}
	if !strings.Contains(source, "://") {
		k.file.path = source
		return k, k.load(context.Background())
	}
	u, err := url.Parse(source)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("jwks: is neither a file nor an https URL")
	}
	k.url = u
	k.fetch = func(ctx context.Context) ([]byte, error) { return client.get(ctx, u) }
	return k, nil
}

// usable returns the keys that may be used now.
func (k *keyring) usable() []key {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.url != nil && k.now().Sub(k.loaded) > staleLimit {
		return nil
	}
	return k.keys
}

// load gets the keys anew. After an error the keys are those from before.
func (k *keyring) load(ctx context.Context) error {
	k.mu.Lock()
	k.fetching = true
	k.mu.Unlock()
	keys, err := k.get(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fetching, k.tried, k.fault = false, true, err
	if err == nil {
		k.keys, k.loaded = keys, k.now()
	}
	close(k.round)
	k.round = make(chan struct{})
	return err
}

func (k *keyring) get(ctx context.Context) ([]key, error) {
	var text []byte
	var err error
	if k.url != nil {
		text, err = k.fetch(ctx)
	} else {
		text, err = k.file.read()
	}
	if err != nil {
		return nil, fmt.Errorf("jwks: %w", err)
	}
	keys, err := parseJWKS(text, k.url == nil)
	if err != nil {
		return nil, fmt.Errorf("jwks: %s %w", k.name(), err)
	}
	return keys, nil
}

// name is what an operator knows it by, without what of a URL may be secret.
func (k *keyring) name() string {
	if k.url != nil {
		return k.url.Host
	}
	return k.file.path
}

// run fetches a URL, at once and from then on, until ctx ends. For a file there is nothing to do.
func (k *keyring) run(ctx context.Context) {
	if k.url == nil {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.wanted:
		case <-timer.C:
		}
		next := refreshInterval
		if err := k.load(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			next = retryInterval
			k.log.Error("keys not fetched; those from before are used", "err", err)
		}
		timer.Reset(next)
	}
}

// want has run fetch the keys.
func (k *keyring) want() {
	select {
	case k.wanted <- struct{}{}:
	default: // The last wish is not granted yet.
	}
}

// renew has the keys fetched where a token names one that is not there, and waits for it, or until ctx ends; for the first
// attempt of all every token waits. It reports whether it is worth looking again. Tokens cannot cause more than one
// attempt a minute together.
func (k *keyring) renew(ctx context.Context, unknown bool) bool {
	if k.url == nil {
		return false
	}
	k.mu.Lock()
	round := k.round
	switch {
	case !k.tried || unknown && k.fetching: // One is under way.
	case unknown && k.now().Sub(k.asked) >= unknownInterval:
		k.asked, k.fetching = k.now(), true // Who comes now waits with us.
		k.want()
	default:
		k.mu.Unlock()
		return false
	}
	k.mu.Unlock()
	select {
	case <-round:
		return true
	case <-ctx.Done():
		return false
	}
}

// lastFault returns why the last attempt to get keys failed, or nil.
func (k *keyring) lastFault() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fault
}
