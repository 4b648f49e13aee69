package soak_test

import (
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

// slowFlags make a connection full after 1 MiB beyond what the sockets hold.
var slowFlags = []string{
	"--rpc-stomp-responders", "--limits-body", "100KiB", "--limits-pending-bytes", "1MiB", "--limits-slow-consumer", "drop",
}

// TestSlowResponderIsRefusedAtOnce has a responder that does not read: what finds no room is refused at once, what it
// got it can still answer.
func TestSlowResponderIsRefusedAtOnce(t *testing.T) {
	srv := testserver.Start(t, append(slowFlags, "--limits-rpc-pending", "100000")...)
	nc, _ := rig.Native(t, srv.NATSURL)
	r := rig.Connect(t, srv.TCPAddr)
	r.AskFrame(rig.Subscribe("1", "/query/slow"))
	const inbox = "_INBOX.slow"
	answers, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 64<<10)
	sent, refused := 0, 0
	for refused < 10 && sent < 2000 {
		if err := nc.PublishMsg(&nats.Msg{Subject: "stomp.query.slow", Reply: inbox, Data: body}); err != nil {
			t.Fatal(err)
		}
		sent++
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		for {
			n, _, err := answers.Pending()
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			m, err := answers.NextMsg(rig.Patience)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := m.Header.Get("Nats-Service-Error"), "responder overloaded"; got != want {
				t.Fatalf("got the answer %v %.20q, want the error %q", m.Header, m.Data, want)
			}
			refused++
		}
	}
	if refused < 10 {
		t.Fatalf("%d requests of %d octets: got %d refusals, want 10", sent, len(body), refused)
	}
	// Now it reads, and answers whatever it got.
	go func() {
		for {
			f, err := r.Expect("MESSAGE", rig.Patience)
			if err != nil {
				return // What is missing shows below.
			}
			if err := r.Send(rig.Send(f.Get("reply-to"), "")); err != nil {
				return // See above.
			}
		}
	}()
	answered := 0
	for refused+answered < sent {
		m, err := answers.NextMsg(rig.Patience)
		if err != nil {
			t.Fatalf("%d requests, %d refused, %d answered: %v", sent, refused, answered, err)
		}
		if m.Header.Get("Nats-Service-Error") != "" {
			refused++ // After the last look.
		} else {
			answered++
		}
	}
	t.Logf("%d requests, %d refused, %d answered", sent, refused, answered)
}

// TestSlowRequesterLosesNoSingleAnswer has a requester that does not read: its connection ends, even where topic messages
// would be dropped, for an answer left out would be waited for in vain.
func TestSlowRequesterLosesNoSingleAnswer(t *testing.T) {
	srv := testserver.Start(t, slowFlags...)
	nc, _ := rig.Native(t, srv.NATSURL)
	body := make([]byte, 64<<10)
	if _, err := nc.Subscribe("stomp.query.large", func(m *nats.Msg) { _ = m.Respond(body) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	c := rig.Connect(t, srv.TCPAddr)
	c.AskFrame(rig.Subscribe("1", "/reply/a"))
	sent := 0
	for ; sent < 1000; sent++ {
		if err := c.Send(rig.Send("/query/large", "", "reply-to", "/reply/a", "correlation-id", strconv.Itoa(sent))); err != nil {
			break // It is closed already.
		}
	}
	seen := map[string]bool{}
	for {
		f, err := c.Read(rig.Patience)
		if err != nil {
			t.Fatalf("after %d answers: %v, want an ERROR", len(seen), err)
		}
		if f.Command == "ERROR" {
			if got, want := f.Get("message"), "slow consumer"; got != want {
				t.Errorf("ERROR: got %q, want %q", got, want)
			}
			break
		}
		id := f.Get("correlation-id")
		if seen[id] || f.Get("x-error") != "" {
			t.Errorf("got %s, want one reply to each", f)
		}
		seen[id] = true
	}
	if len(seen) == 0 || len(seen) >= sent {
		t.Errorf("answers before the end: got %d of %d, want some", len(seen), sent)
	}
}
