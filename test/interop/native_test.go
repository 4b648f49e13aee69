package interop_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

// subject is a channel as NATS has it.
func subject(channel string) string { return strings.ReplaceAll(channel, "/", ".") }

// natsSamples are those samples whose headers NATS carries under their own names.
func natsSamples(c client, version string) []outgoing {
	out := samples(c, version, c, version)
	for i := range out {
		out[i].Headers = slices.DeleteFunc(slices.Clone(out[i].Headers), func(h pair) bool {
			return strings.Contains(h[1], "\n") || strings.TrimSpace(h[1]) != h[1]
		})
	}
	return out
}

// toNATS makes a NATS message of a sample.
func toNATS(subject string, m outgoing) *nats.Msg {
	msg := nats.NewMsg(subject)
	msg.Data = m.Body
	for _, h := range m.Headers {
		msg.Header[h[0]] = []string{h[1]}
	}
	return msg
}

// wantNATS compares what a native client got with a sample.
func wantNATS(t *testing.T, i int, header nats.Header, data []byte, want outgoing) {
	t.Helper()
	if !bytes.Equal(data, want.Body) {
		t.Fatalf("message %d has %d octets %.40q, want %d %.40q", i, len(data), data, len(want.Body), want.Body)
	}
	for _, h := range want.Headers {
		if got := header[h[0]]; len(got) != 1 || got[0] != h[1] {
			t.Errorf("message %d: NATS header %s is %q, want %q", i, h[0], got, h[1])
		}
	}
	for name := range header {
		known := slices.ContainsFunc(want.Headers, func(h pair) bool { return h[0] == name })
		if !known && !strings.HasPrefix(name, "Nats-") {
			t.Errorf("message %d: a NATS header %s:%q that nobody sent", i, name, header[name])
		}
	}
}

func TestNativeTopicSubscriber(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.2"}, func(t *testing.T, c client, version string) {
		nc, _ := rig.Native(t, srv.NATSURL)
		ch := channel(t)
		sub, err := nc.SubscribeSync(subject(ch))
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		sent := append(natsSamples(c, version), outgoing{Body: []byte("bare")})
		c.start(t, srv, "publish", options{
			Version: version, Destination: "/topic/" + ch, Messages: sent,
		}).finish(t)
		for i, want := range sent {
			got, err := sub.NextMsg(rig.Patience)
			if err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
			wantNATS(t, i, got.Header, got.Data, want)
			if len(want.Headers) == 0 && got.Header != nil {
				t.Errorf("a header block with nothing in it: %v", got.Header)
			}
			if got.Reply != "" {
				t.Errorf("a reply subject %q that nobody asked for", got.Reply)
			}
		}
	})
}

func TestNativeTopicPublisher(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.1", "1.2"}, func(t *testing.T, c client, version string) {
		nc, _ := rig.Native(t, srv.NATSURL)
		ch := channel(t)
		consumer := c.start(t, srv, "consume", options{
			Version: version, Destination: "/topic/" + ch, Ack: "auto", Count: len(natsSamples(c, version)),
		})
		consumer.await(t, "ready", 1)
		for _, m := range natsSamples(c, version) {
			msg := toNATS(subject(ch), m)
			// None of these may reach a STOMP client.
			msg.Header["message-id"] = []string{"forged"}
			msg.Header["redelivered"] = []string{"true"}
			msg.Header["Nats-Msg-Id"] = []string{"internal"}
			if err := nc.PublishMsg(msg); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		got := consumer.finish(t).of("message", "consumer")
		wantSamples(t, got, natsSamples(c, version), "/topic/"+ch)
		for _, m := range got {
			for _, name := range []string{"redelivered", "Nats-Msg-Id", "nats-msg-id"} {
				if value, found := m.Headers[name]; found {
					t.Fatalf("header %s:%s reached a STOMP client", name, value)
				}
			}
			if m.Headers["message-id"] == "forged" {
				t.Fatal("a native publisher's message-id reached a STOMP client")
			}
		}
	})
}

func TestNativeQueuePublisher(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.2"}, func(t *testing.T, c client, version string) {
		_, js := rig.Native(t, srv.NATSURL)
		ch := channel(t)
		consumer := c.start(t, srv, "consume", options{
			Version: version, Destination: "/queue/" + ch, Ack: "client-individual", Count: len(natsSamples(c, version)),
		})
		consumer.await(t, "ready", 1) // The first use has made the queue.
		for i, m := range natsSamples(c, version) {
			ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
			ack, err := js.PublishMsg(ctx, toNATS("stomp.queue."+subject(ch), m))
			cancel()
			if err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
			if want := rig.QueueStream(subject(ch)); ack.Stream != want {
				t.Fatalf("stored in stream %q, want %q", ack.Stream, want)
			}
		}
		got := consumer.finish(t).of("message", "consumer")
		wantSamples(t, got, natsSamples(c, version), "/queue/"+ch)
		for _, m := range got {
			if flag, found := m.Headers["redelivered"]; found || m.Headers["x-delivery-count"] != "1" {
				t.Fatalf("a first delivery has redelivered:%q and x-delivery-count:%q", flag, m.Headers["x-delivery-count"])
			}
		}
	})
}

func TestNativeQueueConsumer(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.2"}, func(t *testing.T, c client, version string) {
		_, js := rig.Native(t, srv.NATSURL)
		ch := channel(t)
		sent := natsSamples(c, version)
		c.start(t, srv, "publish", options{
			Version: version, Destination: "/queue/" + ch, Messages: sent,
		}).finish(t)

		ctx, cancel := context.WithTimeout(t.Context(), 2*rig.Patience)
		defer cancel()
		durable, err := js.Consumer(ctx, rig.QueueStream(subject(ch)), "stomp")
		if err != nil {
			t.Fatalf("the shared durable of stream %s: %v", rig.QueueStream(subject(ch)), err)
		}
		for taken := 0; taken < len(sent); {
			batch, err := durable.Fetch(len(sent)-taken, jetstream.FetchMaxWait(rig.Patience))
			if err != nil {
				t.Fatal(err)
			}
			for m := range batch.Messages() {
				wantNATS(t, taken, m.Headers(), m.Data(), sent[taken])
				if err := m.DoubleAck(ctx); err != nil {
					t.Fatal(err)
				}
				taken++
			}
			if err := batch.Error(); err != nil {
				t.Fatalf("after %d messages: %v", taken, err)
			}
		}

		// A STOMP consumer finds nothing of it, and a native NAK comes to it flagged.
		if _, err := js.Publish(ctx, "stomp.queue."+subject(ch), []byte("given back")); err != nil {
			t.Fatal(err)
		}
		m, err := durable.Next(jetstream.FetchMaxWait(rig.Patience))
		if err != nil {
			t.Fatal(err)
		}
		consumer := c.start(t, srv, "consume", options{
			Version: version, Destination: "/queue/" + ch, Ack: "client", Count: 1,
		})
		consumer.await(t, "ready", 1)
		if err := m.Nak(); err != nil {
			t.Fatal(err)
		}
		wantDeliveries(t, consumer.finish(t).of("message", "consumer"), []string{"given back"}, 2)
		info, err := durable.Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if info.NumPending != 0 {
			t.Errorf("%d messages left in the queue, want none", info.NumPending)
		}
	})
}

// All libraries and a native consumer share one queue's durable.
func TestNativeCompeting(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	const share = 40
	_, js := rig.Native(t, srv.NATSURL)
	ch := channel(t)
	var running []*session
	for _, c := range clients {
		s := c.start(t, srv, "consume", options{
			Destination: "/queue/" + ch, Ack: "client-individual", Count: share,
			Headers: []pair{{"prefetch-count", "1"}},
		})
		s.await(t, "ready", 1)
		running = append(running, s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*rig.Patience)
	defer cancel()
	durable, err := js.Consumer(ctx, rig.QueueStream(subject(ch)), "stomp")
	if err != nil {
		t.Fatal(err)
	}
	seen := newShares()
	settled := make(chan error, 1)
	go func() { // Takes its own share.
		for range share {
			m, err := durable.Next(jetstream.FetchMaxWait(rig.Patience))
			if err != nil {
				settled <- err
				return
			}
			meta, err := m.Metadata()
			if err == nil {
				seen.add(m.Data(), meta.NumDelivered == 1)
				err = m.DoubleAck(ctx)
			}
			if err != nil {
				settled <- err
				return
			}
		}
		settled <- nil
	}()
	for n := range (len(clients) + 1) * share {
		if _, err := js.Publish(ctx, "stomp.queue."+subject(ch), fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-settled; err != nil {
		t.Fatalf("the native consumer: %v", err)
	}
	for _, s := range running {
		got := s.finish(t).of("message", "consumer")
		wantSwift(t, got)
		for _, m := range got {
			seen.add(m.Body, m.Headers["redelivered"] != "true")
		}
	}
	seen.want(t, (len(clients)+1)*share)
}

// A wildcard subscription sees native messages of its topics, and nothing of queues or of NATS's own subjects.
func TestNativeWildcard(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	each(t, []string{"1.1", "1.2"}, func(t *testing.T, c client, version string) {
		nc, js := rig.Native(t, srv.NATSURL)
		ch := channel(t)
		all := c.start(t, srv, "consume", options{
			Version: version, Destination: "/topic/" + ch + "/>", Ack: "auto", Count: 3,
		})
		one := c.start(t, srv, "consume", options{
			Version: version, Destination: "/topic/" + ch + "/*/b", Ack: "auto", Count: 1,
		})
		all.await(t, "ready", 1)
		one.await(t, "ready", 1)
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		defer cancel()
		_, err := js.Publish(ctx, "stomp.queue."+subject(ch)+".none", []byte("no such queue"))
		if err == nil || !errors.Is(err, jetstream.ErrNoStreamResponse) {
			t.Errorf("publishing to a queue that nobody uses: %v, want no response", err)
		}
		for _, tail := range []string{"a", "a.b", "a.b.c"} {
			if err := nc.Publish(subject(ch)+"."+tail, []byte(tail)); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		got := all.finish(t).of("message", "consumer")
		wantBodies(t, got, []string{"a", "a.b", "a.b.c"})
		for i, want := range []string{"a", "a/b", "a/b/c"} {
			if got, want := got[i].Headers["destination"], "/topic/"+ch+"/"+want; got != want {
				t.Errorf("destination is %q, want %q", got, want)
			}
		}
		wantBodies(t, one.finish(t).of("message", "consumer"), []string{"a.b"})
	})
}
