package soak_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

var requests = flag.Int("requests", 6_000, "requests of TestEachRequestIsAnsweredOnce")

// asking is a kind of request and what may answer it beside an overload.
type asking struct {
	destination string
	timeout     int // ms
	want        []string
}

// askings are as many kinds of outcomes as there are. A command that a STOMP responder leaves may come out in any way.
var askings = []asking{
	{"/query/count/ok", 30_000, []string{"reply"}},
	{"/command/count/ok", 30_000, []string{"reply"}},
	{"/query/count/race", 10, []string{"reply", "timeout"}},
	{"/query/count/double", 30_000, []string{"reply"}},
	{"/query/count/silent", 20, []string{"timeout"}},
	{"/command/count/none", 30_000, []string{"no responder"}},
	{"/command/count/service", 30_000, []string{"service 400"}},
	{"/query/count/stomp", 100, []string{"reply", "timeout", "no responder", "service 503"}},
	{"/command/count/stomp", 100, []string{"reply", "timeout", "no responder", "service 503"}},
}

// TestEachRequestIsAnsweredOnce counts the answers to requests of every outcome: replies, late and doubled ones,
// timeouts, service errors, no responder, overload, responders and requesters that die. Each request of a requester
// that lives has one answer, each of one that died at most one, and nobody gets an answer to what he did not ask.
func TestEachRequestIsAnsweredOnce(t *testing.T) {
	srv := testserver.Start(t, "--rpc-stomp-responders", "--limits-rpc-pending", "150")
	nc, _ := rig.Native(t, srv.NATSURL)
	nativeResponders(t, nc)
	ctx, cancel := context.WithCancel(t.Context())
	var responders, requesters sync.WaitGroup
	for i := range 3 {
		responders.Go(func() { stompResponder(ctx, t, srv, uint64(i)) })
	}
	total := &tally{counts: map[string]int{}}
	const workers = 4
	for w := range workers {
		requesters.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(w)))
			for sent := 0; sent < *requests/workers && !t.Failed(); {
				n, err := requestSession(srv, r, fmt.Sprintf("%d-%d", w, sent), total)
				if err != nil {
					t.Errorf("worker %d: %v", w, err)
				}
				sent += n
			}
		})
	}
	requesters.Wait()
	cancel()
	responders.Wait()
	t.Logf("%d requests, %d of requesters that died: %v", total.sent, total.died, total.counts)
	for _, outcome := range []string{"reply", "timeout", "no responder", "service 400", "service 503", "overload"} {
		if total.counts[outcome] == 0 {
			t.Errorf("outcome %s: got none, want some", outcome)
		}
	}
	if total.died == 0 {
		t.Error("requesters that died: got none, want some")
	}
}

// tally counts over all sessions.
type tally struct {
	mu         sync.Mutex
	sent, died int
	counts     map[string]int
}

// nativeResponders answer as the names of their subjects say.
func nativeResponders(t *testing.T, nc *nats.Conn) {
	t.Helper()
	respond := func(m *nats.Msg) { _ = m.Respond(m.Data) } // What is lost shows as a wrong outcome.
	for subject, f := range map[string]nats.MsgHandler{
		"stomp.*.count.ok":       respond,
		"stomp.query.count.race": func(m *nats.Msg) { time.AfterFunc(rand.N(20*time.Millisecond), func() { respond(m) }) },
		"stomp.query.count.double": func(m *nats.Msg) {
			respond(m)
			time.AfterFunc(rand.N(5*time.Millisecond), func() { respond(m) })
		},
		"stomp.query.count.silent": func(*nats.Msg) {},
		"stomp.command.count.service": func(m *nats.Msg) {
			_ = m.RespondMsg(&nats.Msg{Header: nats.Header{
				"Nats-Service-Error-Code": {"400"}, "Nats-Service-Error": {"bad request"},
			}})
		},
	} {
		if _, err := nc.Subscribe(subject, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// stompResponder is one responder after the other: each answers most of what comes, forgets some, and leaves in some way.
func stompResponder(ctx context.Context, t *testing.T, srv *testserver.Server, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for ctx.Err() == nil {
		c, err := rig.Open(srv.TCPAddr)
		if err != nil {
			t.Error(err)
			return
		}
		err = respondFor(ctx, c, r)
		_ = c.Close() // It may be closed.
		if err != nil {
			t.Errorf("responder: %v", err)
			return
		}
	}
}

func respondFor(ctx context.Context, c *stompclient.Conn, r *rand.Rand) error {
	for id, destination := range map[string]string{"q": "/query/count/stomp", "c": "/command/count/stomp"} {
		if err := c.Send(rig.Subscribe(id, destination)); err != nil {
			return err
		}
	}
	for life := 20 + r.IntN(200); life > 0; life-- {
		f, err := nextOf(ctx, c)
		if err != nil || f.Command == "" {
			return err
		}
		if f.Command != "MESSAGE" {
			return fmt.Errorf("got %s, want a request", f)
		}
		if r.IntN(10) == 0 {
			continue // Forgotten.
		}
		if err := c.Send(rig.Send(f.Get("reply-to"), f.Body)); err != nil {
			return err
		}
	}
	switch r.IntN(3) {
	case 0:
		return c.Reset()
	case 1:
		return c.Send(stompclient.New("DISCONNECT"))
	}
	return nil
}

// nextOf reads one frame; none when ctx ends.
func nextOf(ctx context.Context, c *stompclient.Conn) (stompclient.Frame, error) {
	for {
		f, err := c.Read(100 * time.Millisecond)
		if err == nil || !isTimeout(err) || ctx.Err() != nil {
			if ctx.Err() != nil {
				return stompclient.Frame{}, nil
			}
			return f, err
		}
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// requestSession is one requester: some requests at once, and either their answers or a sudden end.
func requestSession(srv *testserver.Server, r *rand.Rand, name string, total *tally) (sent int, err error) {
	c, err := rig.Open(srv.TCPAddr)
	if err != nil {
		return 1, err
	}
	defer c.Close()
	if err := c.Send(rig.Subscribe("s", "/reply/"+name)); err != nil {
		return 1, err
	}
	sent = 1 + r.IntN(300)
	s := &session{conn: c, name: name, kinds: make([]asking, sent), answers: make([]int, sent), counts: map[string]int{}}
	for i := range s.kinds {
		s.kinds[i] = askings[r.IntN(len(askings))]
	}
	dies := r.IntN(6) == 0
	read := make(chan error, 1)
	go func() { read <- s.read(dies) }()
	for i, kind := range s.kinds {
		err := c.Send(rig.Send(kind.destination, []byte(s.id(i)), "reply-to", "/reply/"+name,
			"correlation-id", s.id(i), "timeout", strconv.Itoa(kind.timeout)))
		if err != nil {
			return sent, err
		}
	}
	if dies {
		_ = c.Reset() // The reader sees it.
	}
	err = <-read
	total.mu.Lock()
	defer total.mu.Unlock()
	total.sent += sent
	if dies {
		total.died += sent
	}
	for outcome, n := range s.counts {
		total.counts[outcome] += n
	}
	return sent, err
}

// session is one requester's books.
type session struct {
	conn    *stompclient.Conn
	name    string
	kinds   []asking
	answers []int // by request
	counts  map[string]int
}

func (s *session) id(i int) string { return s.name + "/" + strconv.Itoa(i) }

// read takes an answer to each request, then leaves: nothing may come before DISCONNECT's RECEIPT. One that dies takes
// what comes.
func (s *session) read(dies bool) error {
	for range s.kinds {
		f, err := s.conn.Expect("MESSAGE", rig.Patience)
		if err != nil && dies {
			return nil
		}
		if err != nil {
			return fmt.Errorf("session %s with %v answered: %w", s.name, s.counts, err)
		}
		if err := s.take(f); err != nil {
			return err
		}
	}
	if dies {
		return nil
	}
	for i, n := range s.answers {
		if n != 1 {
			return fmt.Errorf("request %s: got %d answers, want 1", s.id(i), n)
		}
	}
	return s.conn.Confirm(stompclient.New("DISCONNECT"), rig.Patience)
}

// take notes one answer and checks that it is one to the request.
func (s *session) take(f stompclient.Frame) error {
	name, number, _ := strings.Cut(f.Get("correlation-id"), "/")
	i, err := strconv.Atoi(number)
	if err != nil || name != s.name || i >= len(s.answers) {
		return fmt.Errorf("session %s: got %s, which it did not ask", s.name, f)
	}
	s.answers[i]++
	if s.answers[i] > 1 {
		return fmt.Errorf("request %s: a second answer %s", s.id(i), f)
	}
	outcome := f.Get("x-error")
	switch outcome {
	case "":
		outcome = "reply"
		if string(f.Body) != s.id(i) {
			return fmt.Errorf("request %s: answered by %s", s.id(i), f)
		}
	case "service":
		outcome += " " + f.Get("x-error-code")
	}
	s.counts[outcome]++
	kind := s.kinds[i]
	if !contains(append(kind.want, "overload"), outcome) {
		return fmt.Errorf("request %s to %s: got the outcome %q, want one of %q", s.id(i), kind.destination, outcome, kind.want)
	}
	executed, told := f.Lookup("x-executed")
	wantTold := strings.HasPrefix(kind.destination, "/command/") && outcome != "timeout"
	if told != wantTold || told && (executed == "true") != (outcome == "reply") {
		return fmt.Errorf("request %s to %s: x-executed %q with the outcome %q", s.id(i), kind.destination, executed, outcome)
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
