package broker

import (
	"errors"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// maxDenied bounds the subjects that are remembered.
	maxDenied = 4_096
	// denialPatience bounds the time between a refusal's arrival and its being noted.
	denialPatience = time.Second
	// denialQuiet is the time between two lines in the log about one subject.
	denialQuiet = time.Minute
)

// denials are what the server refuses to this login. It says so behind the client's back: a publish, or a subscription,
// that is refused looks as if it had been taken.
type denials struct {
	mu   sync.Mutex
	wake sync.Cond
	last [roles]error         // guarded by mu; the latest that was noted
	at   map[string]time.Time // guarded by mu; by operation and subject
	said map[string]time.Time // guarded by mu; when the log was told
}

func newDenials() *denials {
	d := &denials{at: make(map[string]time.Time), said: make(map[string]time.Time)}
	d.wake.L = &d.mu
	return d
}

// denial finds what is refused in the server's words.
var denial = regexp.MustCompile(`(?i)(publish|subscription) to "([^"]+)"`)

// note takes an error of a connection. say: the log should be told.
func (d *denials) note(r Role, err error) (say bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last[r] = err
	defer d.wake.Broadcast()
	m := denial.FindStringSubmatch(err.Error())
	if m == nil {
		return true
	}
	if len(d.at) > maxDenied {
		clear(d.at)
		clear(d.said)
	}
	key := keyOf(m[1][0] == 'P' || m[1][0] == 'p', m[2])
	now := time.Now()
	d.at[key] = now
	if now.Sub(d.said[key]) < denialQuiet {
		return false
	}
	d.said[key] = now
	return true
}

func keyOf(publish bool, subject string) string {
	if publish {
		return "publish " + subject
	}
	return "subscribe " + subject
}

// Denied says that an external NATS has refused to this login, since that time, to publish or to subscribe to a subject.
// It is to be asked when a round trip has shown that the server has dealt with it. role is that of the connection.
func (b *Broker) Denied(r Role, publish bool, subject string, since time.Time) bool {
	if !b.External() {
		return false
	}
	nc := [...]*nats.Conn{DataRole: b.Data, ControlRole: b.Control, WideRole: b.Wide}[r]
	last := nc.LastError()
	if !errors.Is(last, nats.ErrPermissionViolation) {
		return false
	}
	// nats.go tells its handler on another goroutine.
	late := time.AfterFunc(denialPatience, b.denials.wake.Broadcast)
	defer late.Stop()
	d := b.denials
	d.mu.Lock()
	defer d.mu.Unlock()
	for deadline := time.Now().Add(denialPatience); d.last[r] != last && time.Now().Before(deadline); { //nolint:errorlint // the very same one
		d.wake.Wait()
	}
	return !d.at[keyOf(publish, subject)].Before(since)
}
