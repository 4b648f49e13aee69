package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

func TestRequest(t *testing.T) {
	for _, tt := range []struct {
		name, destination, replyTo string
		args                       []string
		headers                    []frame.Header
		code                       int
		stdout, stderr             string
	}{
		{"query", "/query/stock", "/reply/", nil, nil, 0, "12\n", ""},
		{"alias", "commands/go", "/reply/", nil, []frame.Header{header("x-executed", "true")}, 0, "12\n", ""},
		{"queue", "/queue/work", "/temp-queue/", nil, nil, 0, "12\n", ""},
		{"nobody", "/query/stock", "/reply/", nil, []frame.Header{header("x-error", "no responder")}, 1, "", "requesting /query/stock: no reply: no responder\n"},
		{"service", "/query/stock", "/reply/", nil, []frame.Header{
			header("x-error", "service"), header("x-error-code", "404"), header("x-error-text", "no tea"),
		}, 1, "", "no reply: service 404: no tea\n"},
		{"json", "/query/stock", "/reply/", []string{"--output", "json"}, []frame.Header{header("x", "1")}, 0, `"x":"1"},"body":"12"}` + "\n", ""},
		{"own headers", "/query/stock", "/reply/", []string{"-H", "correlation-id:mine", "--timeout", "2500ms"}, nil, 0, "12\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, frames := scripted(t, func(f *frame.Frame) []frame.Frame {
				if f.Command == frame.Send {
					return reply(f, "12", tt.headers...)
				}
				return nil
			})
			stdout := wants(t, tt.code, tt.stderr, append([]string{"request", "--url", url, tt.destination, "tea"}, tt.args...)...)
			if !strings.HasSuffix(stdout, tt.stdout) || tt.stdout == "" && stdout != "" {
				t.Errorf("got %q, want %q", stdout, tt.stdout)
			}
			var got []string
			var send frame.Frame
			for len(frames) > 0 {
				f := <-frames
				got = append(got, f.Command.String()+" "+f.Get("destination"))
				if f.Command == frame.Send {
					send = f
				}
			}
			to := send.Get("reply-to")
			want := []string{"CONNECT ", "SUBSCRIBE " + to, "SEND " + tt.destination}
			if tt.replyTo != "/reply/" {
				want = []string{"CONNECT ", "SEND " + tt.destination}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || !strings.HasPrefix(to, tt.replyTo) || len(to) < len(tt.replyTo)+20 || string(send.Body) != "tea" {
				t.Errorf("got %q to %q, want %q", got, to, want)
			}
			if tt.name == "own headers" && (send.Get("correlation-id") != "mine" || send.Get("timeout") != "2500") {
				t.Errorf("got %v", send.Headers)
			}
		})
	}
}

// TestRequestToAServer asks responders of natstomp: a STOMP client for commands, the program for a message of a queue.
func TestRequestToAServer(t *testing.T) {
	s, u := serving(t)
	responder, err := stompclient.Dial(strings.TrimPrefix(u.tcp, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer responder.Close()
	if _, err := responder.Connect("1.2"); err != nil {
		t.Fatal(err)
	}
	if err := responder.Send(stompclient.New("SUBSCRIBE", "id", "1", "destination", "/command/brew", "receipt", "1")); err != nil {
		t.Fatal(err)
	}
	if f, err := responder.Read(rig.Patience); err != nil || f.Command != "RECEIPT" {
		t.Fatalf("got %s, %v", f, err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		f, err := responder.Read(rig.Patience)
		if err == nil {
			err = responder.Send(stompclient.New("SEND", "destination", f.Get("reply-to")).WithBody(append([]byte("brewed "), f.Body...)))
		}
		if err != nil {
			t.Error(err)
		}
	}()
	got := wants(t, 0, "", "request", "--url", u.ws, "/command/brew", "tea", "--output", "json")
	if !strings.Contains(got, `"x-executed":"true"`) || !strings.HasSuffix(got, `"body":"brewed tea"}`+"\n") {
		t.Errorf("got %s", got)
	}
	<-answered
	begun := time.Now()
	wants(t, 1, "no reply: no responder", "request", "--url", u.tcp, "/query/nobody")
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the answer took %v, want it at once", took)
	}

	listener, err := s.Subscribe(t.Context(), "/queue/work", nil, func(ctx context.Context, m connector.Message) error {
		return s.Publish(ctx, m.Headers["reply-to"], nil, append([]byte("done: "), m.Body...))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := wants(t, 0, "", "request", "--url", u.tcp, "/queue/work", "sweep"); got != "done: sweep\n" {
		t.Errorf("got %q", got)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}

func TestRequestTimesOut(t *testing.T) {
	url, _ := scripted(t, func(*frame.Frame) []frame.Frame { return nil })
	begun := time.Now()
	wants(t, 1, "no answer within --timeout (1ms)", "request", "--url", url, "/query/x", "--timeout", "1ms")
	if took := time.Since(begun); took < requestGrace {
		t.Errorf("gave up after %v: the server's own answer may still come", took)
	}
}
