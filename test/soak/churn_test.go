package soak_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const (
	churns = 1_000
	// warmUp is how many cycles go before: the queue is made, and what is made once is.
	warmUp = 50
)

// TestChurn has 1,000 connections come, subscribe, send and go in many ways: descriptors, NATS subscriptions,
// connections, consumers and pulls of the process are then as many as before (FR-155).
func TestChurn(t *testing.T) {
	config := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(config, []byte("http: \"127.0.0.1:-1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := testserver.Start(t, "--nats-embedded-config-file", config, "--log-level", "debug")
	_, js := rig.Native(t, srv.NATSURL)
	keeper := rig.Connect(t, srv.TCPAddr) // What is there before must be there afterwards.
	keeper.AskFrame(rig.Subscribe("k", "/topic/churn/kept"))
	churn(t, srv, warmUp)
	client := &http.Client{Timeout: rig.Patience, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	before := settled(t, func() usage { return observe(t, srv, js, client) })
	churn(t, srv, churns)
	rig.Until(t, func() error {
		if after := observe(t, srv, js, client); after != before {
			return fmt.Errorf("got %+v, want %+v as before", after, before)
		}
		return nil
	})
	keeper.AskFrame(rig.Subscribe("l", "/topic/churn/late"))
	wantAll(t, srv, js)
}

// wantAll reads, as one consumer, all that is in the queue: nothing is stranded with those that have gone.
func wantAll(t *testing.T, srv *testserver.Server, js jetstream.JetStream) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	s, err := js.Stream(ctx, rig.QueueStream("churn"))
	if err != nil {
		t.Fatal(err)
	}
	stored := int(s.CachedInfo().State.Msgs)
	c := rig.Connect(t, srv.TCPAddr)
	c.AskFrame(rig.Subscribe("all", "/queue/churn", "ack", "client"))
	for n := range stored {
		f, err := c.Expect("MESSAGE", rig.Patience)
		if err != nil {
			t.Fatalf("message %d of %d: %v", n, stored, err)
		}
		c.DoFrame(stompclient.New("ACK", "id", f.Get("ack")))
	}
	t.Logf("%d messages were left", stored)
}

// TestChurnGoroutines does the same within this process: no goroutine is left (FR-155).
func TestChurnGoroutines(t *testing.T) {
	server := rig.Start(t, func(c *connector.Config) { c.Logger = nil }) // What is logged is memory of the test.
	srv := &testserver.Server{TCPAddr: server.At("tcp")}
	churn(t, srv, warmUp)
	before := settled(t, runtime.NumGoroutine)
	churn(t, srv, churns)
	rig.Until(t, func() error {
		if n := runtime.NumGoroutine(); n > before {
			return fmt.Errorf("%d goroutines, want %d as before", n, before)
		}
		return nil
	})
}

// settled is what a figure is when it has not changed for a while: what went last may still be on its way out.
func settled[T comparable](t *testing.T, figure func() T) T {
	t.Helper()
	value, since := figure(), time.Now()
	rig.Until(t, func() error {
		if next := figure(); next != value {
			value, since = next, time.Now()
		}
		if time.Since(since) < time.Second {
			return fmt.Errorf("it is %+v", value)
		}
		return nil
	})
	return value
}

// churn runs so many cycles, 20 at a time.
func churn(t *testing.T, srv *testserver.Server, count int) {
	t.Helper()
	var next atomic.Int64
	var team crew
	for range 20 {
		team.launch(func() error {
			for i := next.Add(1); i <= int64(count); i = next.Add(1) {
				kind := cycles[i%int64(len(cycles))]
				if err := cycle(srv, kind.frames, kind.leave, fmt.Sprint(i)); err != nil {
					return fmt.Errorf("cycle %d, %s: %w", i, kind.name, err)
				}
			}
			return nil
		})
	}
	if err := team.wait(); err != nil {
		t.Fatal(err)
	}
}

// cycles are ways to come and go. What is sent is octets; $ is a number of the cycle's own. Nobody acknowledges what is
// in /queue/churn, so that each that waits for a message there gets one; with ack:auto a socket that closes takes some
// along.
var cycles = []struct {
	name   string
	frames []string
	leave  func(*stompclient.Conn) error
}{
	{"nothing", nil, (*stompclient.Conn).Close},
	{"half a command", []string{"CONN"}, (*stompclient.Conn).Reset},
	{"half a CONNECT", []string{"CONNECT\naccept-version:1.2\n"}, (*stompclient.Conn).Close},
	{"CONNECT only", []string{connectFrame}, (*stompclient.Conn).Close},
	{"CONNECT only, reset", []string{connectFrame}, (*stompclient.Conn).Reset},
	{"refused CONNECT", []string{"CONNECT\naccept-version:9\n\n\x00"}, (*stompclient.Conn).Close},
	{"topic", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/topic/churn/a\n\n\x00", "SEND\ndestination:/topic/churn/a\nreceipt:$\n\nx\x00"}, leaveAfter("MESSAGE")},
	{"topic of its own", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/topic/churn/own/$\nreceipt:$\n\n\x00"}, leaveAfter("RECEIPT")},
	{"wide", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/topic/>\n\n\x00", "SEND\ndestination:/topic/churn/a\n\nx\x00"}, leaveAfter("MESSAGE")},
	{"wide at once", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/topic/*/b\n\n\x00"}, (*stompclient.Conn).Reset},
	{"group", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/topic/churn/a\nx-group:g\nreceipt:$\n\n\x00"}, leaveAfter("RECEIPT")},
	{"group at once", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/topic/churn/a\nx-group:g$\n\n\x00"}, (*stompclient.Conn).Close},
	{"queue", []string{connectFrame, "SEND\ndestination:/queue/churn\n\nx\x00", "SUBSCRIBE\nid:1\ndestination:/queue/churn\nack:client\n\n\x00"}, leaveAfter("MESSAGE")},
	{"queue, auto", []string{connectFrame, "SEND\ndestination:/queue/churn/auto\n\nx\x00", "SUBSCRIBE\nid:1\ndestination:/queue/churn/auto\nreceipt:$\n\n\x00"}, leaveAfter("RECEIPT")},
	{"queue at once", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/queue/churn\nack:client-individual\n\n\x00"}, (*stompclient.Conn).Reset},
	{"half a SUBSCRIBE", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/queue/ch"}, (*stompclient.Conn).Close},
	{"half a body", []string{connectFrame, "SEND\ndestination:/queue/churn\ncontent-length:1000\n\nx"}, (*stompclient.Conn).Close},
	{"open transaction", []string{connectFrame, "BEGIN\ntransaction:t\n\n\x00", "SEND\ndestination:/queue/churn\ntransaction:t\nreceipt:$\n\nx\x00"}, leaveAfter("RECEIPT")},
	{"unsubscribed", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/queue/churn/auto\n\n\x00", "UNSUBSCRIBE\nid:1\nreceipt:$\n\n\x00"}, leaveAfter("RECEIPT")},
	{"disconnected", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/queue/churn/auto\n\n\x00", "DISCONNECT\nreceipt:$\n\n\x00"}, leaveAfter("RECEIPT")},
	{"fault", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/topic/churn/>\n\n\x00", "SEND\n\nx\x00"}, leaveAfter("ERROR")},
	{"fault, not read", []string{connectFrame, "SUBSCRIBE\nid:1\ndestination:/queue/churn/auto\n\n\x00", "NONSENSE\n\n\x00"}, (*stompclient.Conn).Reset},
}

const connectFrame = "CONNECT\naccept-version:1.2\nlogin:churn\n\n\x00"

// leaveAfter reads up to the first frame of a command, then closes.
func leaveAfter(command string) func(*stompclient.Conn) error {
	return func(c *stompclient.Conn) error {
		for {
			f, err := c.Read(rig.Patience)
			if err != nil {
				return fmt.Errorf("waiting for %s: %w", command, err)
			}
			if f.Command == command {
				return c.Close()
			}
			if f.Command == "ERROR" {
				return fmt.Errorf("got %s, want %s", f, command)
			}
		}
	}
}

func cycle(srv *testserver.Server, frames []string, leave func(*stompclient.Conn) error, number string) error {
	c, err := stompclient.Dial(srv.TCPAddr)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, f := range frames {
		if err := c.Write([]byte(dollar.ReplaceAllString(f, number))); err != nil {
			return err
		}
	}
	return leave(c)
}

var dollar = regexp.MustCompile(`\$`)

// usage is what a process holds.
type usage struct {
	descriptors, subscriptions, connections, consumers, pulls int
}

func observe(t *testing.T, srv *testserver.Server, js jetstream.JetStream, client *http.Client) usage {
	t.Helper()
	info := consumerInfo(t, js, "churn")
	u := usage{pulls: info.NumWaiting}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	account, err := js.AccountInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	u.consumers = account.Consumers
	var subs struct {
		Subscriptions int `json:"num_subscriptions"`
	}
	var conns struct {
		Connections int `json:"num_connections"`
	}
	monitor(t, srv, client, "/subsz", &subs)
	monitor(t, srv, client, "/connz", &conns)
	u.subscriptions, u.connections = subs.Subscriptions, conns.Connections
	u.descriptors = srv.Descriptors(t)
	return u
}

var monitorLine = regexp.MustCompile(`http monitor on (127\.0\.0\.1:[0-9]+)`)

// monitor asks the embedded NATS server about itself.
func monitor(t *testing.T, srv *testserver.Server, client *http.Client, path string, into any) {
	t.Helper()
	m := monitorLine.FindStringSubmatch(srv.Log())
	if m == nil {
		t.Fatal("no monitor in the log")
	}
	resp, err := client.Get("http://" + m[1] + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // So that the connection is used again: a descriptor more or less would count.
}
