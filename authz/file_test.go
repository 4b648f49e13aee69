package authz_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/authz"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

const (
	onlyA = "p, alice, events, a, read, allow\n"
	onlyB = "p, alice, events, b, read, allow\n"
)

// watched is a File that is being watched.
type watched struct {
	t     *testing.T
	a     *authz.Authorizer
	s     *authz.Session
	told  chan authz.Status
	path  string
	file  *authz.File
	ended chan error
	end   context.CancelFunc
}

// watch loads the policy of a file and watches it until the end of the test. With an hour for lookEvery only what is
// heard counts.
func watch(t *testing.T, path string, lookEvery time.Duration) *watched {
	t.Helper()
	w := &watched{t: t, told: make(chan authz.Status, 100), path: path, ended: make(chan error, 1)}
	var err error
	if w.a, err = authz.New(authz.Config{Changed: func(st authz.Status) { w.told <- st }}); err != nil {
		t.Fatal(err)
	}
	w.file = authz.NewFile(w.a, path)
	authz.SetLookEvery(w.file, lookEvery)
	if err := w.file.Reload(); err != nil {
		t.Fatal(err)
	}
	w.next(true)
	w.s = newSession(t, w.a, "alice")
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	go func() { w.ended <- w.file.Run(ctx) }()
	t.Cleanup(w.stop)
	return w
}

func (w *watched) stop() {
	w.end()
	select {
	case err := <-w.ended:
		if err != nil {
			w.t.Errorf("Run: got %v, want nil", err)
		}
		w.ended <- nil // For another stop.
	case <-time.After(patience):
		w.t.Error("Run does not end")
	}
}

// next waits until a policy is taken, or refused.
func (w *watched) next(ready bool) authz.Status {
	w.t.Helper()
	return w.await(fmt.Sprintf("ready %t", ready), func(st authz.Status) bool { return (st.Err == nil && st.Epoch > 0) == ready })
}

// fails waits until the policy is refused for a reason.
func (w *watched) fails(reason string) {
	w.t.Helper()
	w.await(reason, func(st authz.Status) bool { return st.Err != nil && strings.HasPrefix(st.Err.Error(), w.path+reason) })
}

func (w *watched) await(what string, want func(authz.Status) bool) authz.Status {
	w.t.Helper()
	var last authz.Status
	for {
		select {
		case last = <-w.told:
			if want(last) {
				return last
			}
		case <-time.After(patience):
			w.t.Fatalf("got %+v at last, want %s", last, what)
		}
	}
}

func (w *watched) want(channel string) {
	w.t.Helper()
	for _, c := range []string{"a", "b"} {
		if got := w.s.Allowed(authz.Read, "events", c); got != (c == channel) {
			w.t.Errorf("%s: got %t, want the rights of %s", c, got, channel)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFileChanges changes a watched file in the ways in which people and programs do (FR-121).
func TestFileChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.csv")
	write(t, path, onlyA)
	w := watch(t, path, time.Hour)
	w.want("a")

	write(t, path, onlyB) // In place.
	w.next(true)
	w.want("b")

	write(t, path+".new", onlyA) // As editors do: a new file under the old name.
	do(t, os.Rename(path+".new", path))
	w.next(true)
	w.want("a")

	do(t, os.Rename(path, path+"~")) // The same with a backup, and a moment without a file.
	write(t, path, onlyB)
	w.next(true)
	w.want("b")

	do(t, os.Remove(path))
	w.fails(": cannot be read: no such file or directory")
	w.want("b")
	write(t, path, onlyB) // The same as before: it is there again, and that has to be told.
	w.next(true)
	w.want("b")

	write(t, path, onlyA+"p, alice, events, c, raed, allow\n")
	w.fails(`:2: action "raed"`)
	w.want("b")
	write(t, path, onlyA)
	w.next(true)
	w.want("a")

	w.stop()
	write(t, path, onlyB)
	w.want("a")
	do(t, w.file.Reload())
	w.want("b")
}

// TestFileSteps writes a policy in two steps. What lies between them is not taken.
func TestFileSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.csv")
	write(t, path, onlyA)
	w := watch(t, path, time.Hour)
	write(t, path+".new", onlyB)
	do(t, os.Rename(path+".new", path))
	w.next(true) // The watch has begun.
	begun := time.Now()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	do(t, err)
	_, err = f.WriteString("p, alice, events, b, read, allow\n")
	do(t, err)
	time.Sleep(30 * time.Millisecond)
	_, err = f.WriteString("p, alice, events, c, read, allow\n")
	do(t, err)
	do(t, f.Close())
	if time.Since(begun) > 90*time.Millisecond {
		t.Skip("the machine is too busy to write fast enough")
	}
	if st := w.next(true); st.Rules != 2 || st.Epoch != 3 || st.Refused != 0 {
		t.Errorf("got %+v, want the whole policy at once", st)
	}
	w.want("b")
}

// TestFileLinks is a Kubernetes volume: the file is a link into a directory that is a link, and only that changes.
func TestFileLinks(t *testing.T) {
	dir := t.TempDir()
	publish := func(name, text string) {
		do(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		write(t, filepath.Join(dir, name, "policy.csv"), text)
		do(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		do(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	publish("..1", onlyA)
	path := filepath.Join(dir, "policy.csv")
	do(t, os.Symlink(filepath.Join("..data", "policy.csv"), path))
	w := watch(t, path, time.Hour)
	w.want("a")
	publish("..2", onlyB)
	do(t, os.RemoveAll(filepath.Join(dir, "..1")))
	w.next(true)
	w.want("b")
	publish("..3", onlyA)
	w.next(true)
	w.want("a")

	// What the link leads to is changed in its place, elsewhere.
	write(t, filepath.Join(dir, "..3", "policy.csv"), onlyB)
	w.next(true)
	w.want("b")
}

// TestFileDirectory takes the directory away with the file, and brings both back.
func TestFileDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conf")
	do(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "policy.csv")
	write(t, path, onlyA)
	w := watch(t, path, 50*time.Millisecond)
	do(t, os.RemoveAll(dir))
	w.next(false)
	w.want("a")
	do(t, os.Mkdir(dir, 0o700))
	write(t, path, onlyB)
	w.next(true)
	w.want("b")
	write(t, path, onlyA)
	w.next(true)
	w.want("a")
}

// TestFileUnchanged touches a file, and those beside it: nothing is told.
func TestFileUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.csv")
	write(t, path, onlyA)
	w := watch(t, path, 50*time.Millisecond)
	replace := func(text string) {
		write(t, path+".new", text)
		do(t, os.Rename(path+".new", path))
	}
	for range 3 {
		replace(onlyA)
		do(t, os.Chtimes(path, time.Now(), time.Now()))
		write(t, path+".other", onlyB)
	}
	select {
	case st := <-w.told:
		t.Errorf("got %+v told, want nothing", st)
	case <-time.After(500 * time.Millisecond):
	}
	replace(onlyB)
	if st := w.next(true); st.Epoch != 2 {
		t.Errorf("got epoch %d, want 2: only one change changed anything", st.Epoch)
	}
}

// TestFileErrors reads what is no file.
func TestFileErrors(t *testing.T) {
	dir := t.TempDir()
	a := newAuthorizer(t, onlyA)
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): ": cannot be read: no such file or directory", dir: ": cannot be read: is a directory",
	} {
		err := authz.NewFile(a, path).Reload()
		if err == nil || err.Error() != path+want || a.Status().Err == nil {
			t.Errorf("%s: got %v, want %s", path, err, path+want)
		}
	}
	if !newSession(t, a, "alice").Allowed(authz.Read, "events", "a") {
		t.Error("the policy before is not in force any more")
	}
}
