package auth

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// rememberLogin is how long a verified passcode is not checked again (DESIGN section 6).
const rememberLogin = 5 * time.Minute

// users checks passcodes by the users file.
type users struct {
	file watched
	now  func() time.Time
	gate *gate
	key  [32]byte // of the digests of verified passcodes

	compare func(hash, passcode []byte) error

	mu       sync.Mutex
	byName   map[string]user     // guarded by mu
	verified map[string]verified // guarded by mu; a subset of byName
	nobody   []byte              // guarded by mu; the hash that an unknown name is checked against
}

// verified is a passcode that was right.
type verified struct {
	digest [sha256.Size]byte
	until  time.Time
}

// openUsers reads the file.
func openUsers(path string, now func() time.Time) (*users, error) {
	u := &users{file: watched{path: path}, now: now, gate: newGate(max(1, runtime.GOMAXPROCS(0)/2)), compare: bcrypt.CompareHashAndPassword}
	_, _ = rand.Read(u.key[:]) // Never fails.
	return u, u.reload()
}

func readUsers(file *watched) (map[string]user, error) {
	text, err := file.read()
	if err != nil {
		return nil, err
	}
	return parseUsers(file.path, text)
}

// reload reads the file again. After an error the users are those from before.
func (u *users) reload() error {
	byName, err := readUsers(&u.file)
	if err != nil {
		return err
	}
	cost := bcrypt.MinCost
	for _, one := range byName {
		if c, err := bcrypt.Cost(one.hash); err == nil { // Parsed before.
			cost = max(cost, c)
		}
	}
	// An unknown name costs what the dearest known one does, so that time does not tell which names there are.
	nobody, err := bcrypt.GenerateFromPassword(u.key[:], cost)
	if err != nil {
		return fmt.Errorf("users file: %w", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := make(map[string]verified)
	for name, v := range u.verified {
		if one, ok := byName[name]; ok && bytes.Equal(one.hash, u.byName[name].hash) {
			kept[name] = v
		}
	}
	u.byName, u.verified, u.nobody = byName, kept, nobody
	return nil
}

// authenticate checks a login and its passcode.
func (u *users) authenticate(ctx context.Context, c Credentials) (Identity, error) {
	digest := u.digest(c)
	u.mu.Lock()
	one, known := u.byName[c.Login]
	hash := one.hash
	if !known {
		hash = u.nobody
	}
	v, ok := u.verified[c.Login]
	u.mu.Unlock()
	if !ok || !hmac.Equal(v.digest[:], digest[:]) || !u.now().Before(v.until) {
		if err := u.check(ctx, c, hash); err != nil {
			return Identity{}, err
		}
	}
	if !known {
		return Identity{}, refuse(CodePasscode, "unknown user")
	}
	u.remember(c.Login, one.hash, digest, v)
	return one.identity(c.Login), nil
}

// check does the expensive comparison.
func (u *users) check(ctx context.Context, c Credentials, hash []byte) error {
	if err := u.gate.enter(ctx, c.Remote); err != nil {
		return refuse(CodeUnavailable, "gave up waiting for the check of a passcode")
	}
	defer u.gate.leave()
	if u.compare(hash, []byte(c.Passcode)) != nil {
		return refuse(CodePasscode, "unknown user or wrong passcode")
	}
	return nil
}

// remember keeps that a passcode was right, unless the file has another hash by now. What was verified a while ago stays
// verified no longer for being used.
func (u *users) remember(name string, hash []byte, digest [sha256.Size]byte, before verified) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if before.digest == digest && now.Before(before.until) || !bytes.Equal(u.byName[name].hash, hash) {
		return
	}
	u.verified[name] = verified{digest, now.Add(rememberLogin)}
}

// digest stands for a login and its passcode in memory. Its key is of this process and random, so it is of no use outside.
func (u *users) digest(c Credentials) [sha256.Size]byte {
	h := hmac.New(sha256.New, u.key[:])
	_, _ = fmt.Fprintf(h, "%d:%s%s", len(c.Login), c.Login, c.Passcode) // A hash takes everything.
	return [sha256.Size]byte(h.Sum(nil))
}

// recheck returns the identity with its roles of now, if the line that let it in still has the same hash.
func (u *users) recheck(i Identity) (Identity, error) {
	u.mu.Lock()
	one, known := u.byName[i.Name]
	u.mu.Unlock()
	next := one.identity(i.Name)
	if !known || next.line != i.line {
		return Identity{}, refuse(CodePasscode, "user removed, or passcode changed")
	}
	return next, nil
}
