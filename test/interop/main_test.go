package interop_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

func TestMain(m *testing.M) {
	// go-stomp's Unsubscribe leaves this one behind when it misses its own wake-up.
	rig.Main(m, closeBrowser, goleak.IgnoreAnyFunction("github.com/go-stomp/stomp/v3.waitWithTimeout.func1"))
}

// clients are the libraries under test.
var clients = []client{stompPy{}, goStomp{}, stompit, stompJS, chromium}

var (
	javascriptClients = []client{stompit, stompJS, chromium}
	overWebSocket     = []client{stompJS, chromium}
)

// A client runs scenarios with one library.
type client interface {
	String() string
	// start begins the scenario and returns at once.
	start(t *testing.T, srv *testserver.Server, scenario string, o options) *session
}

// options say what a scenario does. Each uses some of them; the names are those that testdata/stomp_client.py reads.
type options struct {
	Version     string     `json:"version,omitempty"` // 1.2 if empty.
	Channel     string     `json:"channel,omitempty"` // Of /queue/<channel> and /topic/<channel>.
	Destination string     `json:"destination,omitempty"`
	Reply       string     `json:"reply,omitempty"`
	Ack         string     `json:"ack,omitempty"`
	Modes       []string   `json:"modes,omitempty"`
	Count       int        `json:"count,omitempty"`
	Consumers   int        `json:"consumers,omitempty"`
	Unacked     int        `json:"unacked,omitempty"`
	IdleMS      int        `json:"idle_ms,omitempty"`
	Variants    []variant  `json:"variants,omitempty"`
	Faults      []fault    `json:"faults,omitempty"`
	Bodies      [][]byte   `json:"bodies,omitempty"`
	Headers     []pair     `json:"headers,omitempty"`
	Messages    []outgoing `json:"messages,omitempty"`
	Chunk       int        `json:"chunk,omitempty"`  // Characters of a WebSocket message; 0: a frame is one message.
	Binary      bool       `json:"binary,omitempty"` // Only binary WebSocket messages.
}

// A variant is one way to connect.
type variant struct {
	Name     string `json:"name"`
	Version  string `json:"version"` // Empty: all that the client knows.
	Command  string `json:"command,omitempty"`
	Login    string `json:"login,omitempty"`
	Passcode string `json:"passcode,omitempty"`
	Host     string `json:"host,omitempty"`
}

// A fault is something that the server must refuse.
type fault struct {
	Name        string `json:"name"`
	Verb        string `json:"verb"`
	Destination string `json:"destination,omitempty"`
}

// A pair is a header line; a name may be there twice.
type pair [2]string

// An outgoing message is one to be sent.
type outgoing struct {
	Body    []byte `json:"body"`
	Headers []pair `json:"headers,omitempty"`
}

// channel is a channel of the test's own, in the form with slashes.
func channel(t *testing.T, more ...any) string {
	t.Helper()
	name := "interop"
	for _, part := range append([]any{t.Name()}, more...) {
		for _, token := range strings.FieldsFunc(fmt.Sprint(part), func(r rune) bool { return r == '/' || r == '.' }) {
			name += "/" + strings.ReplaceAll(strings.ToLower(token), "#", "-")
		}
	}
	return name
}

// each runs a test once per client and version.
func each(t *testing.T, versions []string, test func(t *testing.T, c client, version string)) {
	t.Helper()
	on(t, clients, versions, test)
}

// on runs a test once per one of some clients and version.
func on(t *testing.T, some []client, versions []string, test func(t *testing.T, c client, version string)) {
	t.Helper()
	for _, c := range some {
		for _, version := range versions {
			t.Run(c.String()+"/"+version, func(t *testing.T) {
				t.Parallel()
				test(t, c, version)
			})
		}
	}
}

// event is one thing that a scenario saw or did.
type event struct {
	Event   string            `json:"event"`
	Who     string            `json:"who"` // The connection.
	MS      float64           `json:"ms"`  // Since the scenario's start.
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
	Text    string            `json:"text"`
}

func (e event) String() string {
	shown := e
	if len(e.Body) > 64 {
		shown.Text = fmt.Sprintf("%s[%d octets]", e.Text, len(e.Body))
		shown.Body = e.Body[:64]
	}
	headers, err := json.Marshal(shown.Headers)
	if err != nil {
		headers = []byte(err.Error())
	}
	return fmt.Sprintf("%6.0f ms %s %s %s %q %s", e.MS, e.Who, e.Event, headers, shown.Body, shown.Text)
}

// events are those of one scenario, in the order in which each connection saw them.
type events []event

// of returns the events of one kind of one connection; who "" is any.
func (es events) of(kind, who string) events {
	var out events
	for _, e := range es {
		if e.Event == kind && (who == "" || e.Who == who) {
			out = append(out, e)
		}
	}
	return out
}

// bodies returns the bodies as text.
func (es events) bodies() []string {
	out := make([]string, 0, len(es))
	for _, e := range es {
		out = append(out, string(e.Body))
	}
	return out
}

// one returns the only event of a kind of one connection.
func (es events) one(t *testing.T, kind, who string) event {
	t.Helper()
	found := es.of(kind, who)
	if len(found) != 1 {
		t.Fatalf("%d events %s of %s, want 1; all:\n%s", len(found), kind, who, es)
	}
	return found[0]
}

func (es events) String() string {
	var b strings.Builder
	for i, e := range es {
		if i == 60 {
			fmt.Fprintf(&b, "  ... and %d more\n", len(es)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", e)
	}
	return b.String()
}

// numbers returns "from" to "to"-1 as texts.
func numbers(from, to int) []string {
	out := make([]string, 0, to-from)
	for n := from; n < to; n++ {
		out = append(out, fmt.Sprint(n))
	}
	return out
}
