package auth

import (
	"errors"
	"fmt"
	"sync"
)

// keyFiles are the keys that do not come from a key set: the secret, and those of PEM files.
type keyFiles struct {
	mu   sync.Mutex
	keys []key // guarded by mu
}

func (f *keyFiles) all() []key {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys
}

// reloadFiles reads the secret and the PEM files. After an error the keys are those from before.
func (t *tokens) reloadFiles() error {
	var keys []key
	var errs []error
	if t.cfg.HMACSecret != nil {
		if algorithm, secret := CutAlgorithm(t.cfg.HMACSecret()); secret != "" {
			k, err := bind(algorithm, []byte(secret))
			if err != nil {
				errs = append(errs, fmt.Errorf("hmac_secret %w", err))
			}
			keys = append(keys, k)
		}
	}
	for i, file := range t.files {
		text, err := file.read()
		var found []key
		if err == nil {
			algorithm, _ := CutAlgorithm(t.cfg.PublicKeyFiles[i])
			if found, err = parsePEM(algorithm, text); err != nil {
				err = fmt.Errorf("%s: %w", file.path, err)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("public_key_files: %w", err))
		}
		keys = append(keys, found...)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.static.mu.Lock()
	t.static.keys = keys
	t.static.mu.Unlock()
	return nil
}

// changed says whether a PEM file is another than that which was read.
func (t *tokens) changed() bool {
	changed := false
	for _, file := range t.files {
		changed = file.changed() || changed
	}
	return changed
}
