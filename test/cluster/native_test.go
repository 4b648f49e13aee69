package cluster_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestNative has native clients of an external NATS and STOMP clients take part in every pattern, each way.
func TestNative(t *testing.T) {
	t.Parallel()
	n := single(t, "")
	srv := testserver.Start(t, "--nats-url", n.url(), "--rpc-stomp-responders")
	nc, js := native(t, n.url())
	for name, test := range map[string]func(*testing.T, *rig.Client, *nats.Conn, jetstream.JetStream){
		"topic to native": topicToNative, "topic from native": topicFromNative,
		"queue to native": queueToNative, "queue from native": queueFromNative,
		"store to native": storeToNative, "store from native": storeFromNative,
		"request to native": requestToNative, "request to micro service": requestToMicro, "request from native": requestFromNative,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, rig.Connect(t, srv.TCPAddr), nc, js)
		})
	}
}

// wantMsg compares what a native client got.
func wantMsg(t *testing.T, header nats.Header, data []byte, kind, body string) {
	t.Helper()
	if got := header.Get("kind"); string(data) != body || got != kind {
		t.Errorf("got %q with kind %q, want %q with %q", data, got, body, kind)
	}
}

// wantFrame compares what a STOMP client got.
func wantFrame(t *testing.T, f stompclient.Frame, kind, body string) {
	t.Helper()
	if f.Command != "MESSAGE" || string(f.Body) != body || f.Get("kind") != kind {
		t.Errorf("got %s, want a MESSAGE %q with kind:%s", f, body, kind)
	}
}

func message(subject, kind, body string) *nats.Msg {
	return &nats.Msg{Subject: subject, Header: nats.Header{"kind": {kind}}, Data: []byte(body)}
}

func topicToNative(t *testing.T, c *rig.Client, nc *nats.Conn, _ jetstream.JetStream) {
	sub, err := nc.SubscribeSync("out.>")
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.AskFrame(rig.Send("/topic/out/x", "hello", "kind", "k"))
	m, err := sub.NextMsg(rig.Patience)
	if err != nil {
		t.Fatal(err)
	}
	wantMsg(t, m.Header, m.Data, "k", "hello")
	if m.Subject != "out.x" || len(m.Header) != 1 {
		t.Errorf("got subject %s and headers %v, want out.x and kind alone", m.Subject, m.Header)
	}
}

func topicFromNative(t *testing.T, c *rig.Client, nc *nats.Conn, _ jetstream.JetStream) {
	c.AskFrame(rig.Subscribe("s", "/topic/in/*"))
	if err := nc.PublishMsg(message("in.x", "k", "hello")); err != nil {
		t.Fatal(err)
	}
	f := c.Any()
	wantFrame(t, f, "k", "hello")
	if got, want := f.Get("destination"), "/topic/in/x"; got != want {
		t.Errorf("destination: got %s, want %s", got, want)
	}
}

func queueToNative(t *testing.T, c *rig.Client, _ *nats.Conn, js jetstream.JetStream) {
	c.AskFrame(rig.Send("/queue/out", "hello", "kind", "k"))
	consumer, err := js.Consumer(t.Context(), rig.QueueStream("out"), "stomp")
	if err != nil {
		t.Fatal(err)
	}
	m, err := consumer.Next(jetstream.FetchMaxWait(rig.Patience))
	if err != nil {
		t.Fatal(err)
	}
	wantMsg(t, m.Headers(), m.Data(), "k", "hello")
	if err := m.DoubleAck(t.Context()); err != nil {
		t.Error(err)
	}
	if err := messages(t, js, "out", 0); err != nil {
		t.Error(err)
	}
}

func queueFromNative(t *testing.T, c *rig.Client, _ *nats.Conn, js jetstream.JetStream) {
	c.AskFrame(rig.Subscribe("s", "/queue/in", "ack", "client"))
	if _, err := js.PublishMsg(t.Context(), message("stomp.queue.in", "k", "hello")); err != nil {
		t.Fatal(err)
	}
	f := c.Any()
	wantFrame(t, f, "k", "hello")
	c.AskFrame(stompclient.New("ACK", "id", f.Get("ack")))
	if err := messages(t, js, "in", 0); err != nil {
		t.Error(err)
	}
}

func storeToNative(t *testing.T, c *rig.Client, _ *nats.Conn, js jetstream.JetStream) {
	c.AskFrame(rig.Send("/topic-store/out/x", "hello", "kind", "k"))
	consumer, err := js.OrderedConsumer(t.Context(), "STORE", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"stomp.store.out.x"}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := consumer.Next(jetstream.FetchMaxWait(rig.Patience))
	if err != nil {
		t.Fatal(err)
	}
	wantMsg(t, m.Headers(), m.Data(), "k", "hello")
}

func storeFromNative(t *testing.T, c *rig.Client, _ *nats.Conn, js jetstream.JetStream) {
	// The stream is made at the first use of a stored topic.
	c.AskFrame(rig.Subscribe("new", "/topic-store/in/x"))
	if _, err := js.PublishMsg(t.Context(), message("stomp.store.in.x", "k", "hello")); err != nil {
		t.Fatal(err)
	}
	wantFrame(t, c.Any(), "k", "hello")
	c.DoFrame(rig.Subscribe("d", "/topic-store/in/x", "durable-subscription-name", "d", "x-start", "first", "ack", "client"))
	f := c.Any()
	wantFrame(t, f, "k", "hello")
	if f.Get("subscription") != "d" {
		t.Errorf("got %s, want it for the durable subscription", f)
	}
}

// respond answers requests on a subject.
func respond(t *testing.T, nc *nats.Conn, subject string) {
	t.Helper()
	_, err := nc.Subscribe(subject, func(m *nats.Msg) {
		_ = m.RespondMsg(message("", m.Header.Get("kind"), string(m.Data)+" answered")) // A lost answer shows.
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func requestToNative(t *testing.T, c *rig.Client, nc *nats.Conn, _ jetstream.JetStream) {
	respond(t, nc, "stomp.query.echo")
	c.AskFrame(rig.Subscribe("r", "/reply/r"))
	c.DoFrame(rig.Send("/query/echo", "hello", "kind", "k", "reply-to", "/reply/r", "correlation-id", "1"))
	f := c.Any()
	wantFrame(t, f, "k", "hello answered")
	if f.Get("correlation-id") != "1" || f.Get("x-error") != "" {
		t.Errorf("got %s, want correlation-id:1 and no x-error", f)
	}
}

func requestToMicro(t *testing.T, c *rig.Client, nc *nats.Conn, _ jetstream.JetStream) {
	service, err := micro.AddService(nc, micro.Config{Name: "odd", Version: "1.0.0", Endpoint: &micro.EndpointConfig{
		Subject: "stomp.command.odd",
		Handler: micro.HandlerFunc(func(r micro.Request) {
			if string(r.Data()) == "fail" {
				_ = r.Error("422", "not today", []byte("detail")) // A lost answer shows.
				return
			}
			_ = r.Respond([]byte("done"))
		}),
	}})
	if err == nil {
		defer func() { _ = service.Stop() }()
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.AskFrame(rig.Subscribe("r", "/reply/r"))
	for body, want := range map[string]map[string]string{
		"go":   {"x-executed": "true", "x-error": "", "body": "done"},
		"fail": {"x-executed": "false", "x-error": "service", "x-error-code": "422", "x-error-text": "not today", "body": "detail"},
	} {
		c.DoFrame(rig.Send("/command/odd", body, "reply-to", "/reply/r"))
		f := c.Any()
		for name, value := range want {
			got := f.Get(name)
			if name == "body" {
				got = string(f.Body)
			}
			if got != value {
				t.Errorf("%s: %s: got %q, want %q in %s", body, name, got, value, f)
			}
		}
	}
}

func requestFromNative(t *testing.T, c *rig.Client, nc *nats.Conn, _ jetstream.JetStream) {
	c.AskFrame(rig.Subscribe("s", "/query/stomp"))
	type answer struct {
		m   *nats.Msg
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		m, err := nc.RequestMsg(message("stomp.query.stomp", "k", "hello"), rig.Patience)
		answers <- answer{m, err}
	}()
	f := c.Any()
	wantFrame(t, f, "k", "hello")
	c.AskFrame(rig.Send(f.Get("reply-to"), "hello answered", "kind", "k2"))
	a := <-answers
	if a.err != nil {
		t.Fatal(a.err)
	}
	wantMsg(t, a.m.Header, a.m.Data, "k2", "hello answered")
}
