package field_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// metric reads one sample of a server's metrics.
func metric(t *testing.T, srv *testserver.Server, sample string) string {
	t.Helper()
	resp, err := http.Get("http://" + srv.AdminAddr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(sample) + ` (\S+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no metric %s", sample)
	}
	return string(m[1])
}

// TestLateIsCounted holds what DESIGN sections 3 and 4.4 say of what comes too late: a reply after the deadline and an
// ACK after the hold time-out are no faults of the connection, and they are counted.
func TestLateIsCounted(t *testing.T) {
	srv := testserver.Start(t)
	nc, _ := native(t, srv)
	sub, err := nc.SubscribeSync("stomp.query.late")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	c := connect(t, srv, "1.2")
	ask(t, c, "SUBSCRIBE", "id", "r", "destination", "/reply/a")
	send(t, c, stompclient.New("SEND", "destination", "/query/late", "reply-to", "/reply/a", "timeout", "50"))
	m, err := sub.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	if got := next(t, c, "MESSAGE").Get("x-error"); got != "timeout" {
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
	until(t, func() error { return wantMetric(t, srv, `natstomp_dropped_replies_total{reason="late"}`, "3") })

	ask(t, c, "SUBSCRIBE", "id", "q", "destination", "/queue/late", "ack", "client-individual", "x-ack-wait", "1000", "prefetch-count", "1")
	send(t, c, stompclient.New("SEND", "destination", "/queue/late"))
	held := next(t, c, "MESSAGE")
	again := next(t, c, "MESSAGE")
	ask(t, c, "ACK", "id", held.Get("ack"))
	ask(t, c, "ACK", "id", again.Get("ack"))
	if err := wantMetric(t, srv, "natstomp_late_acks_total", "1"); err != nil {
		t.Error(err)
	}
}

func wantMetric(t *testing.T, srv *testserver.Server, sample, want string) error {
	t.Helper()
	if got := metric(t, srv, sample); got != want {
		return fmt.Errorf("%s: got %s, want %s", sample, got, want)
	}
	return nil
}

// TestSilentClientIsLogged holds the audit line of DESIGN section 3: a client that was silent for twice its interval is
// client.timeout, and nobody else is.
func TestSilentClientIsLogged(t *testing.T) {
	srv := testserver.Start(t, "--limits-heartbeat", "100ms")
	quiet := connect(t, srv, "1.2") // Asked for no beats.
	silent := connect(t, srv, "1.2", "heart-beat", "100,0", "login", "silent")
	began := time.Now()
	if err := silent.ExpectClose(patience); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("closed after %v, want 200ms", took)
	}
	until(t, func() error {
		if !strings.Contains(srv.Log(), "client.timeout") {
			return fmt.Errorf("no client.timeout in the log")
		}
		return nil
	})
	ask(t, quiet, "SEND", "destination", "/topic/x")
	for line := range strings.Lines(srv.Log()) {
		if strings.Contains(line, "client.timeout") && !strings.Contains(line, `"session":"silent"`) {
			t.Errorf("got %s, want the silent client only", line)
		}
	}
}
