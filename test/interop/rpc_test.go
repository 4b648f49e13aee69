package interop_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

// rpcRequests is how many requests each test sends.
const rpcRequests = 20

func goRequest(r *goRun) error {
	sub, err := r.attach("requester", r.Reply, "auto")
	if err != nil {
		return err
	}
	for n := range r.Count {
		id := strconv.Itoa(n)
		if err := sub.conn.send(r.Destination, id, pair{"reply-to", r.Reply}, pair{"correlation-id", id}); err != nil {
			return err
		}
	}
	if _, err := sub.take(r.Count); err != nil {
		return err
	}
	return sub.conn.close()
}

func goRespond(r *goRun) error {
	sub, err := r.attach("responder", r.Destination, "auto")
	if err != nil {
		return err
	}
	// A receipted SEND behind the SUBSCRIBE says that it is done.
	if err := sub.conn.store("/topic/none", ""); err != nil {
		return err
	}
	r.report("ready", "responder", "")
	for range r.Count {
		m, err := sub.next()
		if err != nil {
			return err
		}
		if err := sub.conn.send(m.Header.Get("reply-to"), string(m.Body)+string(m.Body), pair{"by", "go-stomp"}); err != nil {
			return err
		}
	}
	return sub.conn.close()
}

// wantAnswers checks that a requester got one answer to each request, as want says of its number.
func wantAnswers(t *testing.T, es events, want func(n int) (body string, headers map[string]string)) {
	t.Helper()
	got := map[string]event{}
	for _, e := range es.of("message", "requester") {
		got[e.Headers["correlation-id"]] = e
	}
	if len(es.of("message", "requester")) != rpcRequests {
		t.Errorf("got %d answers, want %d", len(es.of("message", "requester")), rpcRequests)
	}
	for n := range rpcRequests {
		e := got[strconv.Itoa(n)]
		body, headers := want(n)
		if string(e.Body) != body {
			t.Errorf("request %d: got the answer %s, want the body %q", n, e, body)
		}
		for name, value := range headers {
			if v, there := e.Headers[name]; v != value || there != (value != "") {
				t.Errorf("request %d: got %s:%s, want %q", n, name, v, value)
			}
		}
	}
}

// TestMicroServiceAnswers has a nats.go micro service answer half of the requests and fail on the others.
func TestMicroServiceAnswers(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	for _, pattern := range []string{"query", "command"} {
		each(t, []string{"1.0", "1.1", "1.2"}, func(t *testing.T, c client, version string) {
			nc, _ := rig.Native(t, srv.NATSURL)
			ch := channel(t, pattern)
			service, err := micro.AddService(nc, micro.Config{Name: "doubler", Version: "1.0.0"})
			if err != nil {
				t.Fatal(err)
			}
			defer service.Stop()
			handler := micro.HandlerFunc(func(r micro.Request) {
				n, err := strconv.Atoi(string(r.Data()))
				switch {
				case err != nil:
					_ = r.Error("400", err.Error(), nil) // A lost answer shows as a timeout.
				case n%2 == 1:
					_ = r.Error("422", "odd number", []byte("detail")) // See above.
				default:
					_ = r.Respond([]byte(fmt.Sprint(2*n)), micro.WithHeaders(micro.Headers{"unit": {"pieces"}})) // See above.
				}
			})
			if err := service.AddGroup("stomp."+pattern).AddEndpoint("double", handler, micro.WithEndpointSubject(subject(ch))); err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			es := c.start(t, srv, "request", options{
				Version: version, Destination: "/" + pattern + "/" + ch, Reply: "/reply/double", Count: rpcRequests,
			}).finish(t)
			wantAnswers(t, es, func(n int) (string, map[string]string) {
				executed := map[string]string{"query even": "", "query odd": "", "command even": "true", "command odd": "false"}
				if n%2 == 1 {
					return "detail", map[string]string{
						"x-error": "service", "x-error-code": "422", "x-error-text": "odd number", "unit": "",
						"x-executed": executed[pattern+" odd"], "destination": "/reply/double",
					}
				}
				return fmt.Sprint(2 * n), map[string]string{
					"x-error": "", "unit": "pieces", "x-executed": executed[pattern+" even"], "destination": "/reply/double",
				}
			})
		})
	}
}

// TestClientAnswersNative has STOMP clients answer nats.go requests.
func TestClientAnswersNative(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t, "--rpc-stomp-responders")
	each(t, []string{"1.0", "1.1", "1.2"}, func(t *testing.T, c client, version string) {
		nc, _ := rig.Native(t, srv.NATSURL)
		ch := channel(t)
		responder := c.start(t, srv, "respond", options{Version: version, Destination: "/query/" + ch, Count: rpcRequests})
		responder.await(t, "ready", 1)
		for n := range rpcRequests {
			body := fmt.Sprint(n)
			m, err := nc.RequestMsg(&nats.Msg{Subject: "stomp.query." + subject(ch), Data: []byte(body)}, rig.Patience)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(m.Data), body+body; got != want || m.Header.Get("by") == "" {
				t.Errorf("request %d: got %q with the headers %v, want %q with by", n, got, m.Header, want)
			}
		}
		responder.finish(t)
		began := time.Now()
		if _, err := nc.Request("stomp.query."+subject(ch), nil, rig.Patience); !errors.Is(err, nats.ErrNoResponders) || time.Since(began) > rig.Patience/2 {
			t.Errorf("after the responder left: got %v after %v, want %v at once", err, time.Since(began), nats.ErrNoResponders)
		}
	})
}

// TestClientsAnswerEachOther has each client ask each other, by the reply addresses of KubeMQ, RabbitMQ and ActiveMQ.
func TestClientsAnswerEachOther(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t, "--rpc-stomp-responders")
	for _, pattern := range []string{"/query/", "/queue/", "/topic/"} {
		for _, reply := range []string{"/reply/mine", "/temp-queue/mine", "/temp-topic/mine"} {
			for i, requester := range clients {
				responder := clients[(i+1)%len(clients)]
				t.Run(strings.Trim(pattern, "/")+reply+"/"+requester.String(), func(t *testing.T) {
					t.Parallel()
					ch := channel(t)
					answering := responder.start(t, srv, "respond", options{Destination: pattern + ch, Count: rpcRequests})
					answering.await(t, "ready", 1)
					es := requester.start(t, srv, "request", options{Destination: pattern + ch, Reply: reply, Count: rpcRequests}).finish(t)
					for _, e := range answering.finish(t).of("message", "responder") {
						if to := e.Headers["reply-to"]; !strings.HasPrefix(to, "/reply/") || strings.Contains(to, "mine") {
							t.Errorf("got reply-to %q, want an opaque address", to)
						}
					}
					seen := map[string]bool{}
					for _, e := range es.of("message", "requester") {
						seen[string(e.Body)] = true
						if e.Headers["destination"] != reply || e.Headers["by"] == "" {
							t.Errorf("got the answer %s, want it on %s", e, reply)
						}
					}
					for n := range rpcRequests {
						if want := fmt.Sprintf("%d%d", n, n); !seen[want] {
							t.Errorf("no answer %q", want)
						}
					}
				})
			}
		}
	}
}

// TestImplicitReplyAddress has the JavaScript clients ask as RabbitMQ's users do, without a SUBSCRIBE.
func TestImplicitReplyAddress(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t, "--rpc-stomp-responders")
	on(t, slices.Concat(javascriptClients, oldBrowserClients), []string{"queue", "query"}, func(t *testing.T, c client, pattern string) {
		destination, reply := "/"+pattern+"/"+channel(t), "/temp-queue/answers"
		answering := goStomp{}.start(t, srv, "respond", options{Destination: destination, Count: rpcRequests})
		answering.await(t, "ready", 1)
		es := c.start(t, srv, "request_implicitly", options{Destination: destination, Reply: reply, Count: rpcRequests}).finish(t)
		answering.finish(t)
		want := map[string]bool{}
		for n := range rpcRequests {
			want[fmt.Sprintf("%d%d", n, n)] = true
		}
		for _, e := range es.of("message", "requester") {
			if !want[string(e.Body)] || e.Headers["destination"] != reply || e.Headers["subscription"] != reply {
				t.Errorf("got the answer %s, want one to each request, on %s", e, reply)
			}
			delete(want, string(e.Body))
		}
		if len(want) > 0 {
			t.Errorf("no answers %v", want)
		}
	})
}
