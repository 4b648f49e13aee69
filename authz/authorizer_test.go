package authz_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/natstomp/natstomp/authz"
)

// TestChangedTellsOfEachAttempt loads good and broken policies at once: what is told of a good one never has the fault of
// another, by which sessions would not be looked at again.
func TestChangedTellsOfEachAttempt(t *testing.T) {
	t.Parallel()
	const each = 2_000
	var taken, refused atomic.Int64
	a, err := authz.New(authz.Config{Changed: func(st authz.Status) {
		if st.Err != nil {
			refused.Add(1)
		} else {
			taken.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, text := range []string{"p, *, events, a, *, allow", "p, *, events, a, *, alow"} {
		wg.Go(func() {
			for range each {
				_ = a.Load("test", []byte(text)) // The status tells.
			}
		})
	}
	wg.Wait()
	if got, want := fmt.Sprint(taken.Load(), refused.Load()), fmt.Sprint(each, each); got != want {
		t.Errorf("got %s policies taken and refused, want %s", got, want)
	}
}
