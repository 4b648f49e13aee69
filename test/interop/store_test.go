package interop_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

// What a client has stored is replayed to one that comes later, whole.
func TestStoreReplay(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.1", "1.2"}, func(t *testing.T, c client, version string) {
		ch := channel(t)
		sent := natsSamples(c, version)
		c.start(t, srv, "publish", options{Version: version, Destination: "/topic-store/" + ch, Messages: sent}).finish(t)
		got := c.start(t, srv, "consume", options{
			Version: version, Destination: "/topic-store/" + ch, Ack: "auto", Count: len(sent),
			Headers: []pair{{"x-start", "first"}},
		}).finish(t).of("message", "consumer")
		wantSamples(t, got, sent, "/topic-store/"+ch)
		for _, m := range got {
			if m.Headers["x-seq"] == "" || m.Headers["timestamp"] == "" || m.Headers["redelivered"] != "" {
				t.Fatalf("headers of a replayed message: %v", m.Headers)
			}
		}
	})
}

// A durable subscription goes on where the client before it stopped, in each client mode.
func TestStoreDurable(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.1", "1.2"}, func(t *testing.T, c client, version string) {
		for _, mode := range []string{"auto", "client", "client-individual"} {
			ch := channel(t, mode)
			attach := options{
				Version: version, Destination: "/topic-store/" + ch, Ack: mode, Count: 3,
				Headers: []pair{{"durable-subscription-name", ch}, {"x-start", "first"}, {"prefetch-count", "1"}},
			}
			var sent []outgoing
			for _, body := range numbers(0, 6) {
				sent = append(sent, outgoing{Body: []byte(body)})
			}
			publish := options{Version: version, Destination: "/topic-store/" + ch, Messages: sent[:3]}
			c.start(t, srv, "publish", publish).finish(t)
			wantBodies(t, c.start(t, srv, "consume", attach).finish(t).of("message", "consumer"), numbers(0, 3))
			publish.Messages = sent[3:]
			c.start(t, srv, "publish", publish).finish(t)
			wantBodies(t, c.start(t, srv, "consume", attach).finish(t).of("message", "consumer"), numbers(3, 6))
		}
	})
}

func TestNativeStorePublisher(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.1", "1.2"}, func(t *testing.T, c client, version string) {
		nc, js := rig.Native(t, srv.NATSURL)
		ch := channel(t)
		consumer := c.start(t, srv, "consume", options{
			Version: version, Destination: "/topic-store/" + ch, Ack: "auto", Count: 2 * len(natsSamples(c, version)),
			Headers: []pair{{"x-start", "first"}}, // go-stomp does not know when a subscription is live.
		})
		consumer.await(t, "ready", 1)
		for i, m := range natsSamples(c, version) {
			ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
			ack, err := js.PublishMsg(ctx, toNATS("stomp.store."+subject(ch), m))
			cancel()
			if err != nil || ack.Stream != "STORE" {
				t.Fatalf("message %d: %+v, %v, want it in STORE", i, ack, err)
			}
		}
		for _, m := range natsSamples(c, version) { // A plain publish is stored too.
			if err := nc.PublishMsg(toNATS("stomp.store."+subject(ch), m)); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		got := consumer.finish(t).of("message", "consumer")
		wantSamples(t, got, append(natsSamples(c, version), natsSamples(c, version)...), "/topic-store/"+ch)
	})
}

// A native ordered consumer reads what STOMP clients stored.
func TestNativeStoreConsumer(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.2"}, func(t *testing.T, c client, version string) {
		_, js := rig.Native(t, srv.NATSURL)
		ch := channel(t)
		sent := append(natsSamples(c, version), outgoing{Body: []byte("bare")})
		c.start(t, srv, "publish", options{Version: version, Destination: "/topic-store/" + ch, Messages: sent}).finish(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*rig.Patience)
		defer cancel()
		ordered, err := js.OrderedConsumer(ctx, "STORE", jetstream.OrderedConsumerConfig{FilterSubjects: []string{"stomp.store." + subject(ch)}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range sent {
			m, err := ordered.Next(jetstream.FetchMaxWait(rig.Patience))
			if err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
			wantNATS(t, i, m.Headers(), m.Data(), want)
		}
	})
}

// A native reader of a durable subscription's consumer takes part in it: what it has taken no STOMP client gets.
func TestNativeStoreDurable(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.2"}, func(t *testing.T, c client, version string) {
		_, js := rig.Native(t, srv.NATSURL)
		ch := channel(t)
		attach := options{
			Version: version, Destination: "/topic-store/" + ch, Ack: "client-individual", Count: 1,
			Headers: []pair{{"durable-subscription-name", ch}, {"x-start", "first"}, {"prefetch-count", "1"}},
		}
		consumer := c.start(t, srv, "consume", attach)
		consumer.await(t, "ready", 1)
		ctx, cancel := context.WithTimeout(t.Context(), 2*rig.Patience)
		defer cancel()
		publish := func(body string) {
			t.Helper()
			if _, err := js.Publish(ctx, "stomp.store."+subject(ch), []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		publish("0")
		wantBodies(t, consumer.finish(t).of("message", "consumer"), []string{"0"})

		publish("1")
		publish("2")
		m, err := durableOf(ctx, t, js, ch).Next(jetstream.FetchMaxWait(rig.Patience))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.Data()); got != "1" {
			t.Errorf("the native reader got %q, want 1", got)
		}
		if err := m.DoubleAck(ctx); err != nil {
			t.Fatal(err)
		}
		wantBodies(t, c.start(t, srv, "consume", attach).finish(t).of("message", "consumer"), []string{"2"})
	})
}

// durableOf finds the consumer of a durable subscription by the name that its metadata has.
func durableOf(ctx context.Context, t *testing.T, js jetstream.JetStream, name string) jetstream.Consumer {
	t.Helper()
	s, err := js.Stream(ctx, "STORE")
	if err != nil {
		t.Fatal(err)
	}
	list := s.ListConsumers(ctx)
	found := ""
	for info := range list.Info() {
		if info.Config.Metadata["natstomp_name"] == name {
			found = info.Name
		}
	}
	if list.Err() != nil || found == "" {
		t.Fatalf("no consumer of the durable subscription %s: %v", name, list.Err())
	}
	c, err := s.Consumer(ctx, found)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
