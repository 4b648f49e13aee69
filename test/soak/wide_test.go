package soak_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	wideTopics = 600
	wideEnd    = "end"
)

// wideFilters are subscriptions that NATS answers with everything, and which of our topics each must get: those of one
// token, of two, or both.
var wideFilters = []struct {
	destination string
	one, two    bool
}{
	{"/topic/>", true, true},
	{"/topic/#", true, true},
	{"/topic/**", true, true},
	{"/events/>", true, true},
	{"/topic/*", true, false},
	{"/topic/*/*", false, true},
	{"/topic/*/>", false, true},
	{"/topic/*/b", false, true},
}

// TestWideFilter has subscriptions open that begin with a wildcard while queues run at full speed and native NATS
// clients use the subjects that no topic may have. They show the topics, all of them and in order, and nothing else.
func TestWideFilter(t *testing.T) {
	srv := testserver.Start(t)
	var watchers crew
	for i, filter := range wideFilters {
		c := rig.Connect(t, srv.TCPAddr)
		c.AskFrame(rig.Subscribe("w", filter.destination))
		watchers.launch(func() error {
			if err := watch(c.Conn, filter.one, filter.two); err != nil {
				return fmt.Errorf("filter %d, %s: %w", i, filter.destination, err)
			}
			return nil
		})
	}
	var stop atomic.Bool
	load := queueLoad(t, srv, &stop)
	load.launch(func() error { return noise(t, srv, &stop) })
	topics := rig.Connect(t, srv.TCPAddr)
	nc, _ := rig.Native(t, srv.NATSURL)
	for n := range wideTopics {
		body := fmt.Appendf(nil, "stomp %d", n)
		topics.DoFrame(rig.Send([]string{"/topic/a", "/topic/a/b"}[n%2], body))
		if err := nc.Publish([]string{"a", "a.b"}[n%2], fmt.Appendf(nil, "native %d", n)); err != nil {
			t.Fatal(err)
		}
		if n%10 == 9 { // As fast as NATS takes them, but no faster.
			topics.AskFrame(rig.Send("/topic/paced/by/this", ""))
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop.Store(true)
	if err := load.wait(); err != nil {
		t.Error(err)
	}
	// Whatever the others sent has reached NATS before the end, so it would have been shown before that.
	for _, destination := range []string{"/topic/" + wideEnd, "/topic/" + wideEnd + "/b"} {
		topics.AskFrame(rig.Send(destination, []byte(wideEnd)))
	}
	if err := watchers.wait(); err != nil {
		t.Error(err)
	}
}

// watch reads to the end of the topics and wants those of one token, of two, or both, each in order per publisher.
func watch(c *stompclient.Conn, one, two bool) error {
	next := map[string]int{"/topic/a stomp": 0, "/topic/a native": 0, "/topic/a/b stomp": 1, "/topic/a/b native": 1}
	want := map[string]bool{"/topic/a": one, "/topic/a/b": two}
	for {
		f, err := c.Expect("MESSAGE", rig.Patience)
		if err != nil {
			return fmt.Errorf("after %v: %w", next, err)
		}
		destination, _ := f.Lookup("destination")
		switch body := string(f.Body); {
		case body == wideEnd && strings.HasPrefix(destination, "/topic/"+wideEnd):
			if two && destination != "/topic/"+wideEnd+"/b" {
				continue // The second is sent after the first.
			}
			for stream, n := range next {
				if wanted := want[strings.Fields(stream)[0]]; wanted && n < wideTopics {
					return fmt.Errorf("of %s the messages from %d on are missing", stream, n)
				}
			}
			return nil
		case destination == "/topic/paced/by/this" && body == "" && two:
		default:
			publisher, number, _ := strings.Cut(body, " ")
			stream := destination + " " + publisher
			n, known := next[stream]
			if !known || !want[destination] || number != fmt.Sprint(n) {
				return fmt.Errorf("got %s, want message %d of %s", f, n, stream)
			}
			next[stream] += 2
		}
	}
}

// noise uses, as a native client, what no topic may have, until it is told to stop.
func noise(t *testing.T, srv *testserver.Server, stop *atomic.Bool) error {
	nc, js := rig.Native(t, srv.NATSURL)
	subjects := []string{
		"stomp", "stomp.b", "stomp.queue.none", "stomp.store.x", "stomp.command.svc", "stomp.query.svc", "stomp.a.b.c",
		"_natstomp", "_natstomp.b", "_natstomp.once.x", "_INBOX.b", "_INBOX.x.y", "_R_", "_R_.b",
		"$", "$JS", "$JS.b", "$JS.API.NONE", "$JS.ACK.x.y.z", "$SYS.x", "$KV.bucket.key", "$O.x", "$SRV.PING", "$G.b",
	}
	for n := 0; !stop.Load(); n++ {
		m := nats.NewMsg(subjects[n%len(subjects)])
		m.Data = []byte("must not be seen")
		if err := nc.PublishMsg(m); err != nil {
			return err
		}
		if n%len(subjects) == 0 {
			if _, err := js.AccountInfo(t.Context()); err != nil { // Requests and answers of JetStream itself.
				return err
			}
		}
	}
	return nc.Flush()
}

// queueLoad runs two queues at full speed, each with a producer that keeps 100 receipts in flight and two consumers,
// until stop is true. What is sent must be received; the caller waits for that.
func queueLoad(t *testing.T, srv *testserver.Server, stop *atomic.Bool) *crew {
	t.Helper()
	load := &crew{}
	for _, queue := range []string{"/queue/load/one", "/queue/load/two"} {
		sent, received := new(atomic.Int64), new(atomic.Int64)
		producer := rig.Connect(t, srv.TCPAddr)
		done := make(chan struct{})
		for _, mode := range []string{"auto", "client"} {
			consumer := rig.Connect(t, srv.TCPAddr)
			consumer.AskFrame(rig.Subscribe("q", queue, "ack", mode, "prefetch-count", "200"))
			load.launch(func() error { return consumeLoad(consumer.Conn, received) })
			load.launch(func() error {
				<-done
				return consumer.Close()
			})
		}
		load.launch(func() error {
			defer close(done)
			err := produceLoad(producer.Conn, queue, stop, sent)
			if err == nil {
				err = waitEqual(received, sent)
			}
			return err
		})
	}
	return load
}
