package bridge_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// listener is a TopicReceiver that keeps what it gets as frames.
type listener struct{ got chan string }

func newListener() *listener { return &listener{got: make(chan string, 10_000)} }

func (l *listener) DeliverTopic(tail []byte, _ bool, _ string) {
	l.got <- "MESSAGE\n" + string(tail)
}

// next decodes the next message as a client of the version would.
func (l *listener) next(t *testing.T, v frame.Version) frame.Frame {
	t.Helper()
	select {
	case text := <-l.got:
		d := frame.NewDecoder(strings.NewReader(text), frame.Limits{})
		d.SetVersion(v)
		var f frame.Frame
		if err := d.Decode(&f); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return f.Clone()
	case <-time.After(patience):
		t.Fatal("no message")
		return frame.Frame{}
	}
}

// listen subscribes and waits until the server knows.
func (g *rig) listen(destination, group string, v frame.Version, l *listener) *bridge.TopicSubscription {
	g.t.Helper()
	live := make(chan error, 1)
	view := bridge.View{Version: v, Destination: destination}
	route := g.route(destination, router.Subscribe)
	if route.Wildcard {
		view.Destination = ""
	}
	s := g.SubscribeTopic(route, group, view, l, func(err error) { live <- err })
	if err := outcome(g.t, "SubscribeTopic", live); err != nil {
		g.t.Fatal(err)
	}
	return s
}

func (g *rig) publish(destination, body string, headers ...frame.Header) {
	g.t.Helper()
	if err := g.PublishTopic(g.route(destination, router.Send), headers, []byte(body), ""); err != nil {
		g.t.Fatal(err)
	}
}

// TestEveryHeaderSurvives is the property of DESIGN section 5: STOMP to NATS to STOMP changes no header.
func TestEveryHeaderSurvives(t *testing.T) {
	g := newRig(t, nil)
	l := newListener()
	defer g.listen("/topic/headers", "", frame.V12, l).Close()
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "A", "x-y", "ü ö", "nats-ttl", "Nats-Rollup", "NATS-Msg-Id", "stomp-headers", "Stomp-Headers", "with:colon", "with space", "tab\t", "cr\rlf\n", "%41", "content-type", "expires", "timestamp", "priority", "traceparent"}
	octets := []string{"", "x", " ", "\t", "\r", "\n", ":", "\\", "ü", "%", "+", "&", "=", "\x01", "\x7f", "\xff"}
	for range 300 {
		want := map[string]string{}
		var headers []frame.Header
		for range r.IntN(8) {
			name := names[r.IntN(len(names))]
			var value strings.Builder
			for range r.IntN(6) {
				value.WriteString(octets[r.IntN(len(octets))])
			}
			headers = append(headers, header(name, value.String()))
			if _, repeated := want[name]; !repeated {
				want[name] = value.String()
			}
		}
		g.publish("/topic/headers", "body", headers...)
		f := l.next(t, frame.V12)
		got := map[string]string{}
		for _, h := range f.Headers {
			if name := string(h.Name); name != "destination" && name != "content-length" {
				got[name] = string(h.Value)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("sent %q\ngot  %q", want, got)
		}
	}
}

func TestHeadersThatAreNotPassedOn(t *testing.T) {
	g := newRig(t, nil)
	l := newListener()
	defer g.listen("/topic/owned", "", frame.V12, l).Close()
	owned := []string{
		"message-id", "subscription", "ack", "destination", "content-length", "receipt", "transaction", "redelivered",
		"session", "server", "heart-beat", "login", "passcode", "x-delivery-count", "x-seq", "x-dead-letter-reason",
		"x-error", "x-error-code", "x-executed", "x-deadline",
	}
	var headers []frame.Header
	for _, name := range owned {
		headers = append(headers, header(name, "forged"))
	}
	g.publish("/topic/owned", "stomp", headers...)
	native := nats.NewMsg("owned")
	packed := ""
	for _, name := range owned {
		native.Header[name] = []string{"forged"}
		packed += "&" + name + "=forged"
	}
	native.Header["Stomp-Headers"] = []string{packed + "&ok=1&bad%zz=2&nul=%00&%00=x"}
	native.Header["Nats-Expected-Stream"] = []string{"S"}
	if err := g.nc.PublishMsg(native); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f := l.next(t, frame.V12)
		for _, h := range f.Headers {
			name := string(h.Name)
			if string(h.Value) == "forged" || strings.HasPrefix(name, "Nats-") || strings.HasPrefix(name, "bad") || name == "nul" {
				t.Errorf("header %s:%s was passed on", name, h.Value)
			}
		}
	}
}

// TestClientHeadersMeanNothingToNATS sends the headers by which NATS acts (reliability H3).
func TestClientHeadersMeanNothingToNATS(t *testing.T) {
	g := newRig(t, nil)
	for i := range 3 {
		if err := g.send("/queue/rollup", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range []frame.Header{
		header("Nats-Rollup", "all"), header("nats-rollup", "sub"), header("Nats-Msg-Id", "same"), header("Nats-Msg-Id", "same"),
		header("Nats-Expected-Last-Sequence", "999"), header("Nats-TTL", "1s"), header("NATS-Schedule", "@at 2020-01-01T00:00:00Z"),
		header("Nats-Batch-Id", "b"),
	} {
		if err := g.send("/queue/rollup", "x", h); err != nil {
			t.Errorf("%s: %v", h.Name, err)
		}
	}
	s, err := g.js.Stream(t.Context(), bridge.QueueStream("rollup"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.CachedInfo().State.Msgs, uint64(11); got != want {
		t.Errorf("%d messages stored, want %d", got, want)
	}
}

func TestUnrepresentableHeadersAreLeftOut(t *testing.T) {
	g := newRig(t, nil)
	tests := []struct {
		version frame.Version
		want    string
	}{
		{frame.V10, "plain"},
		{frame.V11, "plain lf co:lon"},
		{frame.V12, "plain lf cr co:lon"},
	}
	for _, tt := range tests {
		l := newListener()
		s := g.listen("/topic/versions", "", tt.version, l)
		g.publish("/topic/versions", "x", header("plain", "a"), header("lf", "a\nb"), header("cr", "a\rb"), header("co:lon", "v"))
		f := l.next(t, tt.version)
		var got []string
		for _, name := range []string{"plain", "lf", "cr", "co:lon"} {
			if _, ok := f.Lookup(name); ok {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %q, want %q", tt.version, got, tt.want)
		}
		s.Close()
	}
}

func TestNoHeaderBlockWithoutHeaders(t *testing.T) {
	g := newRig(t, nil)
	sub, err := g.nc.SubscribeSync("bare")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	g.publish("/topic/bare", "x", header("receipt", "1"), header("content-length", "1"))
	m, err := sub.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	if m.Header != nil {
		t.Errorf("got headers %v", m.Header)
	}
}

func TestBodiesAreOctets(t *testing.T) {
	g := newRig(t, nil)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	l := newListener()
	defer g.listen("/topic/octets", "", frame.V12, l).Close()
	for _, body := range [][]byte{{}, all, bytes.Repeat(all, 4_096)} {
		g.publish("/topic/octets", string(body))
		if got := l.next(t, frame.V12).Body; !bytes.Equal(got, body) {
			t.Errorf("%d octets: got %d others", len(body), len(got))
		}
	}
}
