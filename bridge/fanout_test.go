package bridge_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// destinations are the destination headers of the next n messages.
func (l *listener) destinations(t *testing.T, n int) string {
	t.Helper()
	var got []string
	for range n {
		f := l.next(t, frame.V12)
		got = append(got, f.Get("destination")+"="+string(f.Body))
	}
	return fmt.Sprint(got)
}

// none asserts that nothing more came. The caller has seen a message published later.
func (l *listener) none(t *testing.T) {
	t.Helper()
	select {
	case text := <-l.got:
		t.Errorf("unexpected %q", text)
	default:
	}
}

func TestFanoutSharesOneSubscription(t *testing.T) {
	g := newRig(t, nil)
	var all []*listener
	for i := range 10 {
		l := newListener()
		all = append(all, l)
		destination := "/topic/share/one"
		if i%2 == 1 {
			destination = "/topic/share.one"
		}
		defer g.listen(destination, "", frame.Version(i%3), l).Close()
	}
	g.publish("/topic/share/one", "x")
	for i, l := range all {
		want := "/topic/share/one"
		if i%2 == 1 {
			want = "/topic/share.one"
		}
		f := l.next(t, frame.Version(i%3))
		if got := f.Get("destination"); got != want {
			t.Errorf("receiver %d: got %q, want %q", i, got, want)
		}
		l.none(t)
	}
}

func TestWildcards(t *testing.T) {
	g := newRig(t, nil)
	wide, star, tail := newListener(), newListener(), newListener()
	defer g.listen("/topic/>", "", frame.V12, wide).Close()
	defer g.listen("/topic/w/*", "", frame.V12, star).Close()
	defer g.listen("/topic/w/#", "", frame.V12, tail).Close()
	if err := g.send("/queue/w/a", "queued"); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"$SYS.x", "_INBOX.x", "stomp.store.x", "stomp.anything", "_natstomp.x", "w.sl/ash"} {
		if err := g.nc.Publish(subject, []byte("hidden")); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.nc.Publish("w.a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	g.publish("/topic/w/a/b", "2")
	g.publish("/topic/v", "3")
	for _, tt := range []struct {
		l    *listener
		n    int
		want string
	}{
		{wide, 3, "[/topic/w/a=1 /topic/w/a/b=2 /topic/v=3]"},
		{star, 1, "[/topic/w/a=1]"},
		{tail, 2, "[/topic/w/a=1 /topic/w/a/b=2]"},
	} {
		if got := tt.l.destinations(t, tt.n); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
		tt.l.none(t)
	}
}

func TestGroupSharesMessages(t *testing.T) {
	g := newRig(t, nil)
	a, b, all := newListener(), newListener(), newListener()
	defer g.listen("/topic/work", "g", frame.V12, a).Close()
	defer g.listen("/topic/work", "g", frame.V12, b).Close()
	defer g.listen("/topic/work", "", frame.V12, all).Close()
	const messages = 200
	for i := range messages {
		g.publish("/topic/work", fmt.Sprint(i))
	}
	all.destinations(t, messages)
	seen := map[string]int{}
	for len(seen) < messages {
		select {
		case m := <-a.got:
			seen[m]++
		case m := <-b.got:
			seen[m]++
		case <-time.After(patience):
			t.Fatalf("the group has %d of %d messages", len(seen), messages)
		}
	}
	a.none(t)
	b.none(t)
}

// TestComingAndGoing subscribes and leaves the same subject from many goroutines: every subscription must see what is
// published between its start and its end.
func TestComingAndGoing(t *testing.T) {
	g := newRig(t, nil)
	var wg sync.WaitGroup
	faults := make(chan error, 100)
	for worker := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if err := g.visit(fmt.Sprintf("%d-%d", worker, i)); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(faults)
	for err := range faults {
		t.Error(err)
	}
}

// visit is one subscription's life; it returns an error instead of failing, since it runs beside the test.
func (g *rig) visit(body string) error {
	route, err := g.router.Parse("/topic/busy", router.Subscribe)
	if err != nil {
		return err
	}
	l := newListener()
	live := make(chan error, 1)
	s := g.SubscribeTopic(route, "", bridge.View{Version: frame.V12, Destination: "/topic/busy"}, l, func(err error) { live <- err })
	defer s.Close()
	if err := <-live; err != nil {
		return err
	}
	if err := g.PublishTopic(route, nil, []byte(body), ""); err != nil {
		return err
	}
	deadline := time.After(patience)
	want := "MESSAGE\ndestination:/topic/busy\ncontent-length:" + fmt.Sprint(len(body)) + "\n\n" + body + "\x00\n"
	for {
		select {
		case got := <-l.got:
			if got == want {
				return nil
			}
		case <-deadline:
			return errors.New("message " + body + " did not come")
		}
	}
}

func TestTooLargeForNATS(t *testing.T) {
	g := newRig(t, nil)
	body := make([]byte, 3<<20)
	err := g.PublishTopic(g.route("/topic/x", router.Send), nil, body, "")
	if !errors.Is(err, bridge.ErrTooLarge) {
		t.Errorf("topic: got %v, want %v", err, bridge.ErrTooLarge)
	}
	if err := g.send("/queue/x", string(body)); !errors.Is(err, bridge.ErrTooLarge) {
		t.Errorf("queue: got %v, want %v", err, bridge.ErrTooLarge)
	}
}
