package connector_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// get asks the admin handler.
func get(t *testing.T, s *connector.Server, path string, status int) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Admin().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	if w.Code != status {
		t.Errorf("GET %s: got status %d, want %d", path, w.Code, status)
	}
	return w.Body.String()
}

// want checks that a scrape has lines.
func want(t *testing.T, s *connector.Server, lines ...string) {
	t.Helper()
	scrape := get(t, s, "/metrics", http.StatusOK)
	for _, line := range lines {
		if !strings.Contains(scrape, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, ours(scrape))
		}
	}
}

// ours is the lines of a scrape that have natstomp's metrics.
func ours(scrape string) string {
	var b strings.Builder
	for line := range strings.Lines(scrape) {
		if strings.HasPrefix(line, "natstomp_") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// exchange sends a frame and wants the RECEIPT for it, or an ERROR.
func exchange(t *testing.T, c *stompclient.Conn, f stompclient.Frame, command string) {
	t.Helper()
	if err := c.Send(f); err != nil {
		t.Fatal(err)
	}
	got, err := c.Read(rig.Patience)
	if err != nil || got.Command != command {
		t.Fatalf("%s was answered by %s, %v; want %s", f, got, err, command)
	}
}

func TestMetrics(t *testing.T) {
	c := embedded(t)
	c.Limits.Connections = 2
	c.Version = "1.2.3"
	s := server(t, c)
	a, b := stompClient(t, s), stompClient(t, s)
	exchange(t, a, stompclient.New("SUBSCRIBE", "id", "1", "destination", "/queue/q", "ack", "client", "receipt", "1"), "RECEIPT")
	exchange(t, b, stompclient.New("SUBSCRIBE", "id", "1", "destination", "/topic/t", "receipt", "1"), "RECEIPT")
	exchange(t, b, stompclient.New("SEND", "destination", "/queue/q", "receipt", "2"), "RECEIPT")
	if f, err := a.Read(rig.Patience); err != nil || f.Command != "MESSAGE" {
		t.Fatalf("got %s, %v", f, err)
	}
	for range 3 {
		exchange(t, b, stompclient.New("SEND", "destination", "/topic/t"), "MESSAGE")
	}
	rig.Holds(t, "the last frame is counted", func() bool {
		return strings.Contains(get(t, s, "/metrics", 200), "\n"+`natstomp_frames_sent_total{command="MESSAGE"} 4`+"\n")
	})
	want(t, s,
		`natstomp_connections{transport="tcp",version="1.2"} 2`,
		`natstomp_connections{transport="tcp",version="none"} 0`,
		`natstomp_connections{transport="wss",version="1.0"} 0`,
		`natstomp_connections_total{transport="tcp"} 2`,
		`natstomp_connections_rejected_total{reason="connection_limit"} 0`,
		`natstomp_frames_received_total{command="CONNECT"} 2`,
		`natstomp_frames_received_total{command="SUBSCRIBE"} 2`,
		`natstomp_frames_received_total{command="SEND"} 4`,
		`natstomp_frames_sent_total{command="CONNECTED"} 2`,
		`natstomp_frames_sent_total{command="RECEIPT"} 3`,
		`natstomp_deliveries_total{pattern="queues"} 1`,
		`natstomp_deliveries_total{pattern="events"} 3`,
		`natstomp_subscriptions{pattern="queues"} 1`,
		`natstomp_subscriptions{pattern="events"} 1`,
		`natstomp_unacked_messages 1`,
		`natstomp_pending_bytes 0`,
		`natstomp_pending_receipts 0`,
		`natstomp_nats_connected{role="data"} 1`,
		`natstomp_nats_reconnects_total{role="wide"} 0`,
		`natstomp_publish_duration_seconds_count{pattern="queues",result="stored"} 1`,
		`natstomp_slow_consumers_total{action="close"} 0`,
		`natstomp_dropped_replies_total{reason="late"} 0`,
		`natstomp_dropped_replies_total{reason="after_deadline"} 0`,
	)
	if scrape := get(t, s, "/metrics", 200); !strings.Contains(scrape, `natstomp_build_info{go="go1.`) ||
		!strings.Contains(scrape, `nats_server="2.`) || !strings.Contains(scrape, `version="1.2.3"} 1`) ||
		!strings.Contains(scrape, "\ngo_goroutines ") || strings.Contains(scrape, "natstomp_pulls_total 0\n") {
		t.Errorf("got %s", scrape)
	}

	exchange(t, b, stompclient.New("SEND", "destination", "/queue/q", "expires", "1", "receipt", "3"), "RECEIPT")
	want(t, s, `natstomp_expired_messages_total 1`, `natstomp_deleted_queues_total 0`)
	exchange(t, b, stompclient.New("SUBSCRIBE", "id", "2", "destination", "/queue/gone", "auto-delete", "true", "receipt", "4"), "RECEIPT")
	exchange(t, b, stompclient.New("UNSUBSCRIBE", "id", "2", "receipt", "5"), "RECEIPT")
	rig.Holds(t, "the queue is deleted", func() bool {
		return strings.Contains(get(t, s, "/metrics", 200), "\nnatstomp_deleted_queues_total 1\n")
	})

	third := refused(t, s)
	if _, err := third.Connect("1.2"); err == nil || !strings.Contains(err.Error(), "connection limit reached") {
		t.Errorf("the third connection: got %v", err)
	}
	exchange(t, a, stompclient.New("SEND", "destination", "/queue//", "receipt", "3"), "ERROR")
	_ = third.Close()
	_ = a.Close()
	rig.Holds(t, "one connection is left", func() bool { return len(s.Connections()) == 1 })
	want(t, s,
		`natstomp_connections{transport="tcp",version="1.2"} 1`,
		`natstomp_connections_total{transport="tcp"} 3`,
		`natstomp_connections_rejected_total{reason="connection_limit"} 1`,
		`natstomp_errors_total{reason="connection_limit"} 1`,
		`natstomp_errors_total{reason="destination"} 1`,
		`natstomp_errors_total{reason="internal"} 0`,
		`natstomp_frames_received_total{command="CONNECT"} 3`,
		`natstomp_frames_sent_total{command="ERROR"} 2`,
		`natstomp_frames_sent_total{command="MESSAGE"} 4`,
		`natstomp_subscriptions{pattern="queues"} 0`,
		`natstomp_unacked_messages 0`,
	)
}

// refused is a further connection to the listener of stompClient.
func refused(t *testing.T, s *connector.Server) *stompclient.Conn {
	t.Helper()
	c, err := stompclient.Dial(s.Status().Listeners[0].Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestFramesBeforeTheReceiptAreCountedOnce sends to a topic while its SUBSCRIBE waits for the flush.
func TestFramesBeforeTheReceiptAreCountedOnce(t *testing.T) {
	s := server(t, embedded(t))
	c := stompClient(t, s)
	const rounds = 50
	for n := range rounds {
		id := fmt.Sprint(n)
		if err := c.Send(stompclient.New("SUBSCRIBE", "id", id, "destination", "/topic/t"+id, "receipt", id)); err != nil {
			t.Fatal(err)
		}
		if err := c.Send(stompclient.New("SEND", "destination", "/topic/t"+id)); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"RECEIPT", "MESSAGE"} {
			if f, err := c.Read(rig.Patience); err != nil || f.Command != command {
				t.Fatalf("got %s, %v; want %s", f, err, command)
			}
		}
	}
	rig.Holds(t, "all are counted", func() bool {
		scrape := get(t, s, "/metrics", 200)
		return strings.Contains(scrape, fmt.Sprintf("natstomp_frames_sent_total{command=\"MESSAGE\"} %d\n", rounds)) &&
			strings.Contains(scrape, fmt.Sprintf("natstomp_frames_sent_total{command=\"RECEIPT\"} %d\n", rounds))
	})
}

func TestRegisterer(t *testing.T) {
	c := embedded(t)
	registry := prometheus.NewRegistry()
	c.Registerer = registry
	first, err := connector.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if n := series(t, registry); n != 0 {
		t.Errorf("before Start: got %d series", n)
	}
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	before := series(t, registry)
	if before == 0 || before > 250 {
		t.Errorf("got %d series", before)
	}
	other := embedded(t)
	other.Registerer = registry
	second, err := connector.New(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "registering the metrics") {
		t.Errorf("a second server on one registry: got %v", err)
	}
	if n := series(t, registry); n != before {
		t.Errorf("after the refused one: got %d series, want %d", n, before)
	}
	rig.Shutdown(t, first)
	if n := series(t, registry); n != 0 {
		t.Errorf("after Shutdown: got %d series", n)
	}
}

func series(t *testing.T, g prometheus.Gatherer) (n int) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		n += len(f.GetMetric())
	}
	return n
}

func TestConnections(t *testing.T) {
	s := server(t, embedded(t))
	if got := get(t, s, "/api/stomp/connections", 200); got != `{"error":false,"error_string":"","data":{"connections":[],"total":0}}`+"\n" {
		t.Errorf("without any: got %s", got)
	}
	c := stompClient(t, s)
	exchange(t, c, stompclient.New("SUBSCRIBE", "id", "s-1", "destination", "/queue/a/b", "ack", "client-individual", "receipt", "1"), "RECEIPT")
	exchange(t, c, stompclient.New("SUBSCRIBE", "id", "s-2", "destination", "/topic/>", "receipt", "2"), "RECEIPT")
	publish(t, s, "/queue/a.b", nil, "held")
	if f, err := c.Read(rig.Patience); err != nil || f.Command != "MESSAGE" {
		t.Fatalf("got %s, %v", f, err)
	}
	subscribe(t, s, "/topic/x", nil, func(context.Context, connector.Message) error { return nil })

	list := s.Connections()
	if len(list) != 3 {
		t.Fatalf("got %d connections, want those of the client, of Publish and of Subscribe: %+v", len(list), list)
	}
	first := list[0]
	if first.Session != "ann" || first.Login != "ann" || first.Version != "1.2" || first.Transport != "tcp" ||
		!strings.HasPrefix(first.Remote, "127.0.0.1:") || len(first.ID) != 16 || time.Since(first.ConnectedAt) > rig.Patience ||
		first.Unacked != 1 || first.FramesIn != 3 || first.OctetsIn == 0 || first.OctetsOut == 0 {
		t.Errorf("got %+v", first)
	}
	wantSubs := []connector.ConnectionSubscription{
		{ID: "s-1", Destination: "/queue/a/b", Pattern: "queues", Channel: "a.b", Ack: "client-individual", Unacked: 1},
		{ID: "s-2", Destination: "/topic/>", Pattern: "events", Channel: ">", Ack: "auto"},
	}
	if fmt.Sprint(first.Subscriptions) != fmt.Sprint(wantSubs) {
		t.Errorf("got %+v, want %+v", first.Subscriptions, wantSubs)
	}
	if list[2].Transport != "local" || list[0].ID == list[1].ID {
		t.Errorf("got %+v", list)
	}

	var answer struct {
		Error bool
		Data  struct {
			Connections []map[string]any
			Total       int
		}
	}
	if err := json.Unmarshal([]byte(get(t, s, "/api/stomp/connections", 200)), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Error || answer.Data.Total != 3 || answer.Data.Connections[0]["client_id"] != "ann" ||
		answer.Data.Connections[0]["remote_addr"] != first.Remote || answer.Data.Connections[0]["id"] != first.ID {
		t.Errorf("got %+v", answer)
	}
	exchange(t, c, stompclient.New("UNSUBSCRIBE", "id", "s-1", "receipt", "3"), "RECEIPT")
	if subs := s.Connections()[0].Subscriptions; len(subs) != 1 || subs[0].ID != "s-2" {
		t.Errorf("after UNSUBSCRIBE: got %+v", subs)
	}
}

// TestNoSecretIsShown connects with a passcode.
func TestNoSecretIsShown(t *testing.T) {
	s := server(t, embedded(t))
	stompClient(t, s)
	c := refused(t, s)
	if _, err := c.Connect("1.2", "login", "bob\\c\\", "passcode", "canary"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/metrics", "/api/stomp/connections"} {
		if strings.Contains(get(t, s, path, 200), "canary") {
			t.Errorf("%s shows the passcode", path)
		}
	}
}

func TestAdminBeforeStart(t *testing.T) {
	s, err := connector.New(embedded(t))
	if err != nil {
		t.Fatal(err)
	}
	get(t, s, "/livez", 200)
	if got := get(t, s, "/readyz", 503); !strings.Contains(got, "not started") {
		t.Errorf("got %q", got)
	}
	if got := get(t, s, "/metrics", 200); !strings.Contains(got, "natstomp_build_info") {
		t.Errorf("got %q", got)
	}
	get(t, s, "/api/stomp/connections", 200)
	get(t, s, "/nothing", 404)
}

// TestEveryMetricIsDocumented compares the table of docs/monitoring.md with what there is.
func TestEveryMetricIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	c := embedded(t)
	registry := prometheus.NewRegistry()
	c.Registerer = registry
	server(t, c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		there[f.GetName()] = true
		row := regexp.MustCompile("(?m)^\\| `" + f.GetName() + "` \\| (.*?) ?\\| ").FindStringSubmatch(string(page))
		if row == nil {
			t.Errorf("%s is not documented", f.GetName())
			continue
		}
		documented := strings.Split(row[1], ", ")
		slices.Sort(documented)
		if row[1] != "" && !slices.Equal(documented, labels) || row[1] == "" && len(labels) > 0 {
			t.Errorf("%s: documented labels %q, got %q", f.GetName(), row[1], labels)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(natstomp_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		if !there[m[1]] {
			t.Errorf("%s is documented and does not exist", m[1])
		}
	}
}
