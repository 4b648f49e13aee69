package cluster_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestDelayOverCutLinks cuts the link to NATS again and again while delayed messages become due: each is stored in its
// queue once, and nothing is left behind, neither of the message nor of its move.
func TestDelayOverCutLinks(t *testing.T) {
	t.Parallel()
	const messages, step = 120, 40 * time.Millisecond
	n := single(t, "")
	p := newProxy(t, "127.0.0.1:"+strconv.Itoa(n.port))
	srv := testserver.Start(t, "--nats-url", p.url())
	pub, sub := rig.Connect(t, srv.TCPAddr), rig.Connect(t, srv.TCPAddr)
	for i := range messages {
		delay := time.Second + time.Duration(i)*step
		pub.AskFrame(rig.Send("/queue/cut", strconv.Itoa(i), "x-delay", strconv.FormatInt(delay.Milliseconds(), 10)))
	}
	sub.DoFrame(rig.Subscribe("s", "/queue/cut", "ack", "client-individual"))
	for i := range 6 {
		whole := time.NewTimer(500 * time.Millisecond)
		<-whole.C
		// Short enough for what hangs to arrive after all, and long enough for it to be sent again.
		cut, length := p.hang, 900*time.Millisecond
		if i%2 == 1 {
			cut, length = p.sever, 100*time.Millisecond
		}
		cut()
		healed := time.NewTimer(length)
		<-healed.C // The length of the cut is what the test is about.
		p.heal()
	}
	places := map[string]string{}
	for len(places) < messages {
		f := sub.Any()
		if f.Command != "MESSAGE" {
			t.Fatalf("got %s, want a MESSAGE", f)
		}
		if place, again := places[string(f.Body)]; again && place != f.Get("x-seq") {
			t.Errorf("%s is stored twice: as %s too", f, place)
		}
		places[string(f.Body)] = f.Get("x-seq")
		sub.DoFrame(stompclient.New("ACK", "id", f.Get("ack")))
	}
	_, js := native(t, n.url())
	for _, stream := range []string{rig.QueueStream("cut"), "natstomp_delay"} {
		s, err := js.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		rig.Until(t, func() error {
			info, err := s.Info(t.Context())
			if err == nil && info.State.Msgs > 0 {
				m, _ := s.GetMsg(t.Context(), info.State.FirstSeq)
				err = fmt.Errorf("%d messages are left in %s, the first %v", info.State.Msgs, stream, m)
			}
			return err
		})
	}
}
