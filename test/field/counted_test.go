package field_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestLateIsCounted holds what DESIGN sections 3 and 4.4 say of what comes too late: a reply after the deadline and an
// ACK after the hold time-out are no faults of the connection, and they are counted.
func TestLateIsCounted(t *testing.T) {
	srv := testserver.Start(t)
	nc, _ := rig.Native(t, srv.NATSURL)
	sub, err := nc.SubscribeSync("stomp.query.late")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	c := rig.Connect(t, srv.TCPAddr)
	c.Ask("SUBSCRIBE", "id", "r", "destination", "/reply/a")
	c.DoFrame(stompclient.New("SEND", "destination", "/query/late", "reply-to", "/reply/a", "timeout", "50"))
	m, err := sub.NextMsg(rig.Patience)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Next("MESSAGE").Get("x-error"); got != "timeout" {
		t.Errorf("got x-error %q, want timeout", got)
	}
	for range 3 {
		if err := m.Respond([]byte("late")); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, func() error { return wantMetric(t, srv, `natstomp_dropped_replies_total{reason="late"}`, "3") })

	c.Ask("SUBSCRIBE", "id", "q", "destination", "/queue/late", "ack", "client-individual", "x-ack-wait", "4000", "prefetch-count", "1")
	c.DoFrame(stompclient.New("SEND", "destination", "/queue/late"))
	held := c.Next("MESSAGE")
	again := c.Next("MESSAGE")
	c.Ask("ACK", "id", held.Get("ack"))
	c.Ask("ACK", "id", again.Get("ack"))
	if err := wantMetric(t, srv, "natstomp_late_acks_total", "1"); err != nil {
		t.Error(err)
	}
}

func wantMetric(t *testing.T, srv *testserver.Server, sample, want string) error {
	t.Helper()
	if got := rig.Metric(t, srv.AdminAddr, sample); got != want {
		return fmt.Errorf("%s: got %s, want %s", sample, got, want)
	}
	return nil
}

// TestSilentClientIsLogged holds the audit line of DESIGN section 3: a client that was silent for twice its interval is
// client.timeout, and nobody else is.
func TestSilentClientIsLogged(t *testing.T) {
	srv := testserver.Start(t, "--limits-heartbeat", "100ms")
	quiet := rig.Connect(t, srv.TCPAddr) // Asked for no beats.
	began := time.Now()
	silent := rig.Connect(t, srv.TCPAddr, "heart-beat", "100,0", "login", "silent")
	if err := silent.ExpectClose(rig.Patience); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("closed after %v, want 200ms", took)
	}
	rig.Until(t, func() error {
		if !strings.Contains(srv.Log(), "client.timeout") {
			return fmt.Errorf("no client.timeout in the log")
		}
		return nil
	})
	quiet.Ask("SEND", "destination", "/topic/x")
	for line := range strings.Lines(srv.Log()) {
		if strings.Contains(line, "client.timeout") && !strings.Contains(line, `"session":"silent"`) {
			t.Errorf("got %s, want the silent client only", line)
		}
	}
}
