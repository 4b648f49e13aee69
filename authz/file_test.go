package authz_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

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

// TestFileSteps writes a policy in two steps, and then again and again. What lies between the steps is not taken; that
// something happens all the time does not put a change off for ever.
func TestFileSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "policy.csv")
		write(t, path, onlyA)
		a := newAuthorizer(t, onlyA)
		f := authz.NewFile(a, path)
		authz.SetLookEvery(f, time.Hour)
		do(t, f.Reload())
		ctx, end := context.WithCancel(t.Context())
		events := make(chan fsnotify.Event)
		var run sync.WaitGroup
		run.Go(func() { authz.RunOn(ctx, f, events) })
		step := func(text string, rest time.Duration) authz.Status {
			write(t, path, text)
			events <- fsnotify.Event{}
			time.Sleep(rest)
			synctest.Wait()
			return a.Status()
		}
		before := a.Status().Epoch
		step("", authz.Settle-time.Millisecond)
		if st := step(onlyB, authz.Settle-time.Millisecond); st.Epoch != before || st.Refused != 0 {
			t.Errorf("got %+v between the steps, want what was before", st)
		}
		if st := step(onlyB+onlyA, authz.Settle); st.Epoch != before+1 || st.Rules != 2 || st.Refused != 0 {
			t.Errorf("got %+v, want the whole policy at once", st)
		}
		for range 10 {
			step(onlyA, authz.Settle-10*time.Millisecond)
		}
		if st := a.Status(); st.Epoch != before+2 || st.Rules != 1 {
			t.Errorf("got %+v of a file that is never left alone, want what is in it", st)
		}
		end()
		run.Wait()
	})
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
