package field_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

var (
	headerRounds = flag.Int("headers", 60, "messages per way of TestEveryHeaderSurvivesEveryWay, at most 900")
	headerSeed   = flag.Uint64("seed", 0, "seed of the random headers; 0: another one each time")
)

// versions are what receivers speak.
var versions = []string{"1.0", "1.1", "1.2"}

// way is one way of a message through NATS.
type way struct {
	name string
	// subscribe makes a receiver of that version.
	subscribe func(r *headerRig, version string) *rig.Client
	// destination is where to send to for a receiver of that version; equal ones get one message for all.
	destination func(version string) string
	extra       []string // headers of the SEND that ask for the way
	transacted  bool     // everything is sent in one transaction
}

// one is a destination for all versions, each one for each.
func one(destination string) func(string) string {
	return func(string) string { return destination }
}

func each(destination string) func(string) string {
	return func(version string) string { return destination + "/v" + strings.ReplaceAll(version, ".", "") }
}

// to subscribes to the way's destination.
func to(destination func(string) string, nameValue ...string) func(*headerRig, string) *rig.Client {
	return func(r *headerRig, version string) *rig.Client {
		c := rig.ConnectVersion(r.t, r.srv.TCPAddr, version, "client-id", version)
		c.Ask("SUBSCRIBE", append([]string{"id", "s", "destination", destination(version)}, nameValue...)...)
		return c
	}
}

var ways = []way{
	{name: "topic", destination: one("/topic/props/a"), subscribe: to(one("/topic/props/a"))},
	{name: "wildcard", destination: one("/topic/props/b/c"), subscribe: to(one("/topic/props/b/*"))},
	{name: "wide wildcard", destination: one("/topic/props/d"), subscribe: to(one("/topic/*/d"))},
	{name: "group", destination: each("/topic/props/g"), subscribe: to(each("/topic/props/g"), "x-group", "g")},
	{name: "stored topic", destination: one("/topic-store/props/a"), subscribe: to(one("/topic-store/props/a"))},
	{name: "durable", destination: one("/topic-store/props/b"), subscribe: to(one("/topic-store/props/b"), "durable-subscription-name", "d")},
	{name: "topic that is stored", destination: one("/topic/kept/a"), subscribe: to(one("/topic/kept/a"))},
	{name: "queue", destination: each("/queue/props/a"), subscribe: to(each("/queue/props/a"))},
	{name: "queue, delayed", destination: each("/queue/props/b"), subscribe: to(each("/queue/props/b")), extra: []string{"x-delay", "1"}},
	{name: "queue, with an id", destination: each("/queue/props/c"), subscribe: to(each("/queue/props/c")), extra: []string{"x-dedup-id", ""}},
	{name: "queue, expiring", destination: each("/queue/props/d"), subscribe: to(each("/queue/props/d")), extra: []string{"expiration", "600000"}},
	{name: "queue, transaction", destination: each("/queue/props/e"), subscribe: to(each("/queue/props/e")), transacted: true},
	{name: "stored topic, transaction", destination: one("/topic-store/props/c"), subscribe: to(one("/topic-store/props/c")), transacted: true},
	{name: "topic, transaction", destination: one("/topic/props/t"), subscribe: to(one("/topic/props/t")), transacted: true},
	{
		name: "browser", destination: each("/queue/props/f"), extra: []string{"x-delay", "0"},
		subscribe: func(r *headerRig, version string) *rig.Client { return rig.ConnectVersion(r.t, r.srv.TCPAddr, version) },
	},
	{
		name: "query", destination: each("/query/props/a"), subscribe: to(each("/query/props/a")),
		extra: []string{"reply-to", "/reply/none"},
	},
	{
		name: "command", destination: each("/command/props/a"), subscribe: to(each("/command/props/a")),
		extra: []string{"reply-to", "/reply/none"},
	},
	{name: "answer to a query", destination: each("/query/props/b"), subscribe: answerer("/reply/mine", "/query/props/b")},
	{name: "answer to an address", destination: each("/queue/props/r"), subscribe: answerer("/temp-queue/mine", "/queue/props/r")},
}

// answerer makes a requester of that version, which gets what the rig's sender answers.
func answerer(reply, asks string) func(*headerRig, string) *rig.Client {
	return func(r *headerRig, version string) *rig.Client {
		c := rig.ConnectVersion(r.t, r.srv.TCPAddr, version)
		c.Ask("SUBSCRIBE", "id", "s", "destination", reply)
		at := each(asks)(version)
		r.sender.Ask("SUBSCRIBE", "id", at, "destination", at)
		r.replies[at] = nil
		for n := range r.rounds {
			c.DoFrame(stompclient.New("SEND", "destination", at, "reply-to", reply, "timeout", "30000").WithBody([]byte(strconv.Itoa(n))))
		}
		for range r.rounds {
			r.replies[at] = append(r.replies[at], r.sender.Next("MESSAGE").Get("reply-to"))
		}
		return c
	}
}

// headerRig sends random headers.
type headerRig struct {
	t       *testing.T
	srv     *testserver.Server
	r       *rand.Rand
	rounds  int
	sender  *rig.Client
	replies map[string][]string // by destination: where the answers go, in the order of the requests
}

// TestEveryHeaderSurvivesEveryWay is the property of DESIGN section 5 on every pattern: what an application puts into a
// header arrives as it was, octet by octet, where the receiver's version can say it, and is missing where it cannot.
// Nothing that a client calls its headers means anything to NATS: every message arrives, once.
func TestEveryHeaderSurvivesEveryWay(t *testing.T) {
	srv := testserver.Start(t, "--rpc-stomp-responders", "--destinations-stored-topics", "/topic/kept/>", "--limits-durables", "0",
		"--limits-rpc-pending", "1000000")
	seed := *headerSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed %d", seed)
	for i, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			g := &headerRig{
				t: t, srv: srv, r: rand.New(rand.NewPCG(seed, uint64(i))), rounds: *headerRounds,
				sender: rig.Connect(t, srv.TCPAddr), replies: map[string][]string{},
			}
			g.check(w)
		})
	}
}

func (g *headerRig) check(w way) {
	receivers, destinations := map[string]*rig.Client{}, map[string][]string{}
	for _, version := range versions {
		receivers[version] = w.subscribe(g, version)
		at := w.destination(version)
		destinations[at] = append(destinations[at], version)
	}
	if slices.Contains(w.extra, "/reply/none") {
		g.sender.Ask("SUBSCRIBE", "id", "none", "destination", "/reply/none")
	}
	sent := make([][]stompclient.Header, g.rounds)
	for n := range sent {
		sent[n] = randomHeaders(g.r)
	}
	for at := range maps.Keys(destinations) {
		g.send(w, at, sent)
	}
	for version, c := range receivers {
		if w.name == "browser" {
			c.DoFrame(stompclient.New("SUBSCRIBE", "id", "s", "destination", w.destination(version), "browser", "true"))
		}
		seen := map[int]bool{}
		for range sent {
			f := c.Next("MESSAGE")
			n, err := strconv.Atoi(strings.TrimSuffix(string(f.Body), "\x00end"))
			if err != nil || n >= len(sent) || seen[n] {
				g.t.Fatalf("%s: got %s, want each message once", version, f)
			}
			seen[n] = true
			got, want := own(f), visible(version, sent[n])
			for i := 0; i < len(w.extra); i += 2 {
				delete(got, w.extra[i]) // It may be passed on.
			}
			if !maps.Equal(got, want) {
				g.t.Fatalf("%s, message %d: %s", version, n, difference(got, want))
			}
		}
	}
}

// send sends every message to one destination.
func (g *headerRig) send(w way, at string, sent [][]stompclient.Header) {
	if w.transacted {
		g.sender.Ask("BEGIN", "transaction", "t")
	}
	for n, headers := range sent {
		f := stompclient.New("SEND", "destination", at)
		f.Headers = append(f.Headers, headers...)
		for i := 0; i < len(w.extra); i += 2 {
			value := w.extra[i+1]
			if w.extra[i] == "x-dedup-id" {
				value = at + strconv.Itoa(n)
			}
			f.Headers = append(f.Headers, stompclient.Header{Name: w.extra[i], Value: value})
		}
		if to, answers := g.replies[at]; answers {
			f.Headers[0].Value = to[n]
		}
		if w.transacted {
			f.Headers = append(f.Headers, stompclient.Header{Name: "transaction", Value: "t"})
		}
		g.sender.DoFrame(f.WithBody([]byte(strconv.Itoa(n) + "\x00end")))
	}
	if w.transacted {
		g.sender.Ask("COMMIT", "transaction", "t")
	}
	g.sender.Ask("SEND", "destination", "/topic/barrier")
}

// difference names the first header in which the two differ.
func difference(got, want map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, found := got[name]; !found || value != want[name] {
			return fmt.Sprintf("header %q: got %q (%t), want %q", name, value, found, want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, sent := want[name]; !sent {
			return fmt.Sprintf("header %q, which was not sent: %q", name, got[name])
		}
	}
	return ""
}

// ours are the headers that the broker sets, or is asked with.
var ours = []string{
	"subscription", "message-id", "destination", "content-length", "x-seq", "timestamp", "x-delivery-count", "redelivered",
	"reply-to", "x-deadline", "expires", "x-executed",
}

// own returns the headers of a MESSAGE that its sender gave it.
func own(f stompclient.Frame) map[string]string {
	got := map[string]string{}
	for _, h := range f.Headers {
		if !slices.Contains(ours, h.Name) {
			got[h.Name] = h.Value
		}
	}
	return got
}

// visible are those headers that a receiver of that version can be told, the first of each name.
func visible(version string, headers []stompclient.Header) map[string]string {
	want := map[string]string{}
	met := map[string]bool{}
	for _, h := range headers {
		if met[h.Name] {
			continue
		}
		met[h.Name] = true
		switch text := h.Name + h.Value; {
		case version != "1.2" && strings.Contains(text, "\r"):
		case version == "1.0" && (strings.Contains(text, "\n") || strings.Contains(h.Name, ":")):
		default:
			want[h.Name] = h.Value
		}
	}
	return want
}

// randomHeaders makes up to a dozen headers; names repeat now and then.
func randomHeaders(r *rand.Rand) []stompclient.Header {
	var list []stompclient.Header
	for range r.IntN(12) {
		h := stompclient.Header{Name: randomName(r), Value: randomValue(r)}
		if len(list) > 0 && r.IntN(8) == 0 {
			h.Name = list[r.IntN(len(list))].Name
		}
		list = append(list, h)
	}
	return list
}

// known are names that mean something somewhere: to NATS, to other brokers, to HTTP, or to us in another spelling.
var known = strings.Fields(`Nats-Rollup Nats-Msg-Id Nats-TTL Nats-Expected-Stream Nats-Expected-Last-Sequence Nats-Expected-Last-Msg-Id
	Nats-Expected-Last-Subject-Sequence Nats-Schedule Nats-Schedule-Target Nats-Batch-Id Nats-Batch-Sequence Nats-Batch-Commit Nats-Incr
	Nats-Marker-Reason Nats-Service-Error Nats-Service-Error-Code Nats-Sequence Nats-Time-Stamp Nats-Subject Nats-Stream Nats-Num-Pending
	Nats-Pin-Id Nats-Stomp-Origin Nats-Request-Info Nats-Trace-Dest Nats- Stomp-Headers Status Description traceparent tracestate
	content-type content-encoding Content-Length Destination Message-Id SUBSCRIPTION Receipt Redelivered X-Seq X-Error X-Delay Expires
	Transaction X-Dedup-Id JMSXGroupSeq JMSType persistent priority type correlation-id Reply-To Host Timeout a b`)

func randomName(r *rand.Rand) string {
	switch r.IntN(6) {
	case 0:
		return known[r.IntN(len(known))]
	case 1: // In another case.
		octets := []byte(known[r.IntN(len(known))])
		name := string(octets)
		for i, c := range octets {
			if r.IntN(2) == 0 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
				octets[i] = c ^ 0x20
			}
		}
		if slices.Contains(means, string(octets)) {
			return name
		}
		return string(octets)
	default:
		return "x" + randomText(r, 1+r.IntN(12))
	}
}

// means are names that no application can use for its own.
var means = []string{
	"content-length", "destination", "message-id", "subscription", "receipt", "redelivered", "x-seq", "x-error", "x-delay", "expires",
	"transaction", "x-dedup-id", "correlation-id", "reply-to", "timeout",
}

func randomValue(r *rand.Rand) string {
	switch r.IntN(8) {
	case 0:
		return ""
	case 1: // Words by which NATS acts.
		words := []string{"100", "204", "404", "409", "423", "503", "all", "sub", "1s", "1", "@at 2020-01-01T00:00:00Z", "0", "-1", "STORE"}
		return words[r.IntN(len(words))]
	case 2:
		return randomText(r, 200+r.IntN(2000))
	case 3:
		blanks := []string{" ", "\t", "\r", "\n", "\r\n", "\r\n\r\n", "  "}
		return blanks[r.IntN(len(blanks))] + randomText(r, r.IntN(10)) + blanks[r.IntN(len(blanks))]
	default:
		return randomText(r, 1+r.IntN(30))
	}
}

// randomText is text of every kind but NUL: ASCII, control characters, what means something in an encoding, other
// scripts, octets that are no UTF-8.
func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		switch r.IntN(8) {
		case 0:
			b.WriteByte(byte(1 + r.IntN(31)))
		case 1:
			b.WriteString(string(":\\%+&=;, \"'\r\n/"[r.IntN(14)]))
		case 2:
			b.WriteRune(rune(0x80 + r.IntN(0x2000)))
		case 3:
			b.WriteRune(rune(0x10000 + r.IntN(0x1000)))
		case 4:
			b.WriteByte(byte(0x7f + r.IntN(0x81)))
		default:
			b.WriteByte(byte('a' + r.IntN(26)))
		}
	}
	return b.String()
}
