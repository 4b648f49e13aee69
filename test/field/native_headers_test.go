package field_test

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// forged is the value of every header by which a native publisher tries to be the broker.
const forged = "forged"

// brokerOwned are the headers that only the broker sets.
var brokerOwned = strings.Fields(`message-id subscription ack destination content-length receipt transaction redelivered session server
	heart-beat login passcode x-delivery-count x-seq x-dead-letter-reason x-dead-letter-from x-error x-error-code x-error-text x-executed x-deadline`)

// acting are headers by which NATS stores a message or not: they are the native publisher's right.
func acting(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), "nats-") && !slices.Contains([]string{
		"Nats-Sequence", "Nats-Time-Stamp", "Nats-Subject", "Nats-Stream", "Nats-Num-Pending", "Nats-Last-Sequence", "Nats-Pin-Id",
		"Nats-Stomp-Origin", "Nats-Pending-Messages", "Nats-Service-Error-x", "Nats-Last-Consumer",
	}, name)
}

// nativeHeaders makes the headers of a hostile native publisher.
func nativeHeaders(r *rand.Rand) nats.Header {
	h := nats.Header{}
	for range r.IntN(10) {
		name := brokerOwned[r.IntN(len(brokerOwned))]
		value := forged
		if r.IntN(2) == 0 {
			name, value = randomHeaderName(r), randomText(r, r.IntN(40))
		}
		if r.IntN(4) == 0 && len(name) > 1 {
			value = []string{"404", "503", "100", "204", "1"}[r.IntN(5)]
			name = []string{"Status", "Description", "Nats-Sequence", "Nats-Pin-Id", "Nats-Num-Pending", "Nats-Time-Stamp", "Nats-Subject"}[r.IntN(7)]
		}
		if !acting(name) {
			h[name] = append(h[name], strings.NewReplacer("\r", "", "\n", "").Replace(value))
		}
	}
	if r.IntN(2) == 0 {
		h["Stomp-Headers"] = []string{packedHeaders(r)}
	}
	return h
}

// randomHeaderName is one that nats.go writes.
func randomHeaderName(r *rand.Rand) string {
	name := known[r.IntN(len(known))]
	if acting(name) || r.IntN(2) == 0 {
		return "x-" + strconv.Itoa(r.IntN(1000))
	}
	return name
}

// packedHeaders is what claims to be packed by natstomp: of every form, with a broker's headers, with what breaks frames.
func packedHeaders(r *rand.Rand) string {
	var parts []string
	for range r.IntN(6) {
		name, value := randomText(r, r.IntN(6))+"\x00", randomText(r, r.IntN(20))+"\x00\n\n\x00ERROR\n"
		switch r.IntN(4) {
		case 0:
			name, value = brokerOwned[r.IntN(len(brokerOwned))], forged
		case 1:
			name, value = "y"+randomText(r, 3), randomText(r, 10)
		case 2:
			parts = append(parts, strings.NewReplacer("\r", "", "\n", "").Replace(randomText(r, 10))+"%zz&=&%")
			continue
		}
		parts = append(parts, url.QueryEscape(name)+"="+url.QueryEscape(value))
	}
	return strings.Join(parts, "&")
}

// nativeWay is how a native client reaches a STOMP client.
type nativeWay struct {
	name, destination, subject string
	browse, request, answer    bool
}

// TestNativeHeadersAreHarmless has a native client write whatever it can into headers, on every pattern: a STOMP client
// of each version reads well-formed frames, each with the body that was sent, and none of the broker's headers is the
// native client's.
func TestNativeHeadersAreHarmless(t *testing.T) {
	srv := testserver.Start(t, "--rpc-stomp-responders")
	seed := *headerSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed %d", seed)
	for i, w := range []nativeWay{
		{name: "topic", destination: "/topic/native/a", subject: "native.a"},
		{name: "wildcard", destination: "/topic/native/b/*", subject: "native.b.c"},
		{name: "stored topic", destination: "/topic-store/native/a", subject: "stomp.store.native.a"},
		{name: "queue", destination: "/queue/native/a", subject: "stomp.queue.native.a"},
		{name: "browser", destination: "/queue/native/b", subject: "stomp.queue.native.b", browse: true},
		{name: "request", destination: "/query/native/a", subject: "stomp.query.native.a", request: true},
		{name: "answer", destination: "/reply/a", subject: "stomp.command.native.b", answer: true},
	} {
		for _, version := range versions {
			t.Run(w.name+"/"+version, func(t *testing.T) {
				w.check(t, srv, version, rand.New(rand.NewPCG(seed, uint64(i))))
			})
		}
	}
}

func (w nativeWay) check(t *testing.T, srv *testserver.Server, version string, r *rand.Rand) {
	nc, js := rig.Native(t, srv.NATSURL)
	unique := "v" + strings.ReplaceAll(version, ".", "")
	destination, subject := w.destination, w.subject
	if !w.answer {
		destination, subject = strings.Replace(destination, "native", "native/"+unique, 1), strings.Replace(subject, "native", "native."+unique, 1)
	}
	c := rig.ConnectVersion(t, srv.TCPAddr, version)
	if w.browse {
		c.Ask("SEND", "destination", destination) // Makes the queue.
		next := rig.ConnectVersion(t, srv.TCPAddr, version)
		next.Ask("SUBSCRIBE", "id", "all", "destination", destination)
		takeOne(t, next)
		_ = next.Close() // Its end is not part of the test.
	} else {
		c.Ask("SUBSCRIBE", "id", "s", "destination", destination)
	}
	const messages = 60
	headers := make([]nats.Header, messages)
	for n := range headers {
		headers[n] = nativeHeaders(r)
	}
	if w.answer {
		w.answers(t, nc, c, subject, headers)
	} else {
		for n, h := range headers {
			m := &nats.Msg{Subject: subject, Header: h, Data: []byte(strconv.Itoa(n))}
			if w.request {
				m.Reply = nc.NewInbox()
			}
			var err error
			if w.browse { // It shows what is stored when it comes.
				_, err = js.PublishMsg(t.Context(), m)
			} else {
				err = nc.PublishMsg(m)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if w.browse {
		c.DoFrame(stompclient.New("SUBSCRIBE", "id", "s", "destination", destination, "browser", "true"))
	}
	seen := map[string]bool{}
	for range messages {
		f := c.Next("MESSAGE") // Strict about what it reads.
		n, err := strconv.Atoi(string(f.Body))
		if err != nil || n >= messages || seen[string(f.Body)] {
			t.Fatalf("got %s, want each message once", f)
		}
		seen[string(f.Body)] = true
		for _, h := range f.Headers {
			if slices.Contains(brokerOwned, h.Name) && h.Value == forged {
				t.Errorf("header %s is the native client's: %s", h.Name, f)
			}
		}
		if f.Get("subscription") != "s" || !strings.HasPrefix(f.Get("destination"), "/") {
			t.Errorf("got %s, want its own destination and subscription", f)
		}
	}
	if w.browse {
		c.Next("MESSAGE") // browser:end
	}
	c.Ask("SEND", "destination", "/topic/barrier/"+unique)
}

// takeOne reads the one message that is there and waits until it is settled.
func takeOne(t *testing.T, c *rig.Client) {
	t.Helper()
	c.Next("MESSAGE")
	c.Ask("UNSUBSCRIBE", "id", "all")
}

// answers has a native responder answer the requests of c with those headers.
func (w nativeWay) answers(t *testing.T, nc *nats.Conn, c *rig.Client, subject string, headers []nats.Header) {
	t.Helper()
	sub, err := nc.QueueSubscribeSync(subject, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for range headers {
		c.DoFrame(stompclient.New("SEND", "destination", "/command/native/b", "reply-to", "/reply/a"))
	}
	for n, h := range headers {
		m, err := sub.NextMsg(rig.Patience)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.RespondMsg(&nats.Msg{Header: h, Data: []byte(strconv.Itoa(n))}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}
