package field_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestReportSlowSubscriber holds FR-143 and FR-145: of a topic whose subscriber does not read, the backlog is bounded and
// shown, what is left out is counted to the message, another one gets everything, and to the slow one messages come again as
// soon as it reads.
func TestReportSlowSubscriber(t *testing.T) {
	const count, pending = 400, 256 << 10
	srv := testserver.Start(t, "--limits-body", "64KiB", "--limits-pending-bytes", fmt.Sprint(pending, "B"), "--limits-slow-consumer", "drop",
		"--limits-write-stall", "120s")
	slow, quick := rig.Connect(t, srv.TCPAddr, "login", "slow"), rig.Connect(t, srv.TCPAddr, "login", "quick")
	publisher := rig.Connect(t, srv.TCPAddr, "login", "publisher")
	for _, c := range []*rig.Client{slow, quick} {
		c.Ask("SUBSCRIBE", "id", "1", "destination", "/topic/news")
	}
	body := bytes.Repeat([]byte{'x'}, 60_000)
	message := func(n int) stompclient.Frame {
		return stompclient.New("SEND", "destination", "/topic/news", "n", strconv.Itoa(n)).WithBody(body)
	}
	for n := range count {
		publisher.DoFrame(message(n))
		if got := quick.Next("MESSAGE").Get("n"); got != strconv.Itoa(n) {
			t.Fatalf("the one that reads got message %s, want %d", got, n)
		}
	}
	// One message may be on its way into the socket beside what waits.
	if got := sessions(t, srv)["slow"].PendingBytes; got == 0 || got > pending+2*len(body) {
		t.Errorf("%d octets are shown to wait for the slow one, want some, and about %d at most", got, pending)
	}
	rig.Until(t, func() error {
		if got := sessions(t, srv)["quick"].PendingBytes; got != 0 {
			return fmt.Errorf("%d octets are shown to wait for the one that reads", got)
		}
		return nil
	})
	dropped, err := strconv.Atoi(rig.Metric(t, srv.AdminAddr, `natstomp_slow_consumers_total{action="drop"}`))
	if err != nil || dropped == 0 || dropped >= count {
		t.Fatalf("%d messages were dropped, %v: the test shows nothing", dropped, err)
	}
	for name, want := range map[string]int{"slow": dropped, "quick": 0} {
		if got := sessions(t, srv)[name].Subscriptions[0].Dropped; got != want {
			t.Errorf("%d messages are shown to be left out for the %s one, want %d", got, name, want)
		}
	}
	last := -1
	for range count - dropped {
		n, err := strconv.Atoi(slow.Next("MESSAGE").Get("n"))
		if err != nil || n <= last || n >= count {
			t.Fatalf("the slow one got message %d after %d, %v", n, last, err)
		}
		last = n
	}
	for n := count; n < count+10; n++ {
		publisher.DoFrame(message(n))
		for name, c := range map[string]*rig.Client{"slow": slow, "quick": quick} {
			if got := c.Next("MESSAGE").Get("n"); got != strconv.Itoa(n) {
				t.Fatalf("%s got message %s afterwards, want %d", name, got, n)
			}
		}
	}
	if err := wantMetric(t, srv, `natstomp_slow_consumers_total{action="drop"}`, strconv.Itoa(dropped)); err != nil {
		t.Error(err)
	}
}

// TestReportConsumerAtItsCap holds FR-142: what a consumer holds is shown for each of its subscriptions and in the metrics,
// so that one that is at its cap can be told from one that has nothing to do; with its ACK the next one comes.
func TestReportConsumerAtItsCap(t *testing.T) {
	srv := testserver.Start(t)
	c := rig.Connect(t, srv.TCPAddr, "login", "holds")
	c.Ask("SUBSCRIBE", "id", "idle", "destination", "/queue/idle", "ack", "client-individual", "prefetch-count", "3")
	for range 10 {
		c.Ask("SEND", "destination", "/queue/full")
	}
	c.DoFrame(stompclient.New("SUBSCRIBE", "id", "full", "destination", "/queue/full", "ack", "client-individual", "prefetch-count", "3"))
	var held []string
	for range 3 {
		held = append(held, c.Next("MESSAGE").Get("ack"))
	}
	for n := 3; ; n++ {
		rig.Until(t, func() error {
			got := fmt.Sprint(sessions(t, srv)["holds"].Subscriptions)
			if want := "[{idle 0 0} {full 3 0}]"; got != want {
				return fmt.Errorf("%s is shown, want %s", got, want)
			}
			return wantMetric(t, srv, "natstomp_unacked_messages", "3")
		})
		if n == 10 {
			return
		}
		c.DoFrame(stompclient.New("ACK", "id", held[0]))
		held = append(held[1:], c.Next("MESSAGE").Get("ack"))
	}
}

// shownSession is what the admin listener shows of a session.
type shownSession struct {
	Login         string `json:"username"`
	PendingBytes  int    `json:"pending_bytes"`
	Subscriptions []struct {
		ID      string `json:"id"`
		Unacked int    `json:"unacked"`
		Dropped int    `json:"dropped"`
	} `json:"subscriptions"`
}

// sessions are those that the admin listener shows, by their login.
func sessions(t *testing.T, srv *testserver.Server) map[string]shownSession {
	t.Helper()
	var answer struct {
		Data struct {
			Connections []shownSession `json:"connections"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(rig.Fetch(t, "http://"+srv.AdminAddr+"/api/stomp/connections")), &answer); err != nil {
		t.Fatal(err)
	}
	all := map[string]shownSession{}
	for _, s := range answer.Data.Connections {
		all[s.Login] = s
	}
	return all
}
