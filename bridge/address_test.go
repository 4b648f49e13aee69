package bridge_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// second is another node on the same NATS.
func (g *rig) second() *rig {
	g.t.Helper()
	conn := func() *nats.Conn {
		nc, err := nats.Connect("", nats.InProcessServer(g.nc.Opts.InProcessServer))
		if err != nil {
			g.t.Fatal(err)
		}
		g.t.Cleanup(nc.Close)
		return nc
	}
	control := conn()
	js, err := jetstream.New(control)
	if err != nil {
		g.t.Fatal(err)
	}
	n := &rig{t: g.t, nc: g.nc, js: g.js, router: g.router}
	n.Bridge = bridge.New(bridge.Config{
		Data: conn(), Control: control, Wide: conn(), JS: js, Router: g.router,
		Logger: slog.New(slog.DiscardHandler), PublishTimeout: patience, RequestTimeout: 30 * time.Second,
		Queues: bridge.QueueConfig{DedupWindow: time.Minute, Storage: jetstream.FileStorage},
	})
	if err := n.Start(g.t.Context()); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { n.Stop(g.t.Context()) })
	n.known()
	return n
}

// known waits until NATS knows the node's own subscriptions: others than the node itself may publish to them next.
func (g *rig) known() {
	g.t.Helper()
	c := make(chan error, 1)
	g.AfterPublish(func(err error) { c <- err })
	if err := outcome(g.t, "AfterPublish", c); err != nil {
		g.t.Fatal(err)
	}
}

func toAddress(t *testing.T, g *rig, address, body string) {
	t.Helper()
	if err := g.NewSender().Address(strings.TrimPrefix(address, "/reply/"), nil, []byte(body), nil); err != nil {
		t.Errorf("Address(%q): %v", address, err)
	}
}

// TestAddressReachesItsNode sends to an address of one node through another, through itself and as a native client.
func TestAddressReachesItsNode(t *testing.T) {
	g := newRig(t, nil)
	n := g.second()
	l := newListener()
	g.known()
	a := g.OpenAddress(bridge.View{Version: frame.V12, Destination: "/temp-queue/a"}, l)
	want := ""
	for i, send := range []func(body string){
		func(body string) { toAddress(t, n, a.String(), body) },
		func(body string) { toAddress(t, g, a.String(), body) },
		func(body string) { _ = g.nc.Publish("_natstomp.reply."+a.Channel(), []byte(body)) }, // Seen below.
	} {
		send(fmt.Sprint(i))
		want = "/temp-queue/a=" + fmt.Sprint(i)
		if got := l.destinations(t, 1); got != "["+want+"]" {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	a.Close()
	toAddress(t, n, a.String(), "for nobody")
	eventually(t, "undeliverable", func() (got, want any) { return g.Stats().Undeliverable, uint64(1) })
	l.none(t)
}

// nativeAddress is the reply-to that a STOMP subscriber of the node sees on a native request.
func nativeAddress(t *testing.T, g *rig, reply string) string {
	t.Helper()
	l := newListener()
	defer g.listen("/topic/asked", "", frame.V12, l).Close()
	if err := g.nc.PublishRequest("asked", reply, nil); err != nil {
		t.Fatal(err)
	}
	f := l.next(t, frame.V12)
	return f.Get("reply-to")
}

func TestSealedReplySubject(t *testing.T) {
	g := newRig(t, nil)
	n := g.second()
	const inbox = "_INBOX.native.secret"
	sub, err := g.nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	address := nativeAddress(t, g, inbox)
	if again := nativeAddress(t, g, inbox); again == address || !strings.HasPrefix(address, "/reply/") || strings.Contains(address, "secret") {
		t.Errorf("got the addresses %q and %q, want two that show nothing", address, again)
	}
	for i, node := range []*rig{g, n, g} {
		toAddress(t, node, address, fmt.Sprint(i))
		m, err := sub.NextMsg(patience)
		if err != nil || string(m.Data) != fmt.Sprint(i) {
			t.Errorf("got %v, %v, want the message %d", m, err, i)
		}
	}
}

// TestForgedSeals changes each character of a sealed address.
func TestForgedSeals(t *testing.T) {
	g := newRig(t, nil)
	n := g.second()
	const inbox = "_INBOX.native.secret"
	sub, err := g.nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	channel := strings.TrimPrefix(nativeAddress(t, g, inbox), "/reply/")
	node := strings.IndexByte(channel, '.')
	forwarded := uint64(0)
	for i := node + 2; i < len(channel)-1; i++ { // Of the last character, some bits mean nothing.
		changed := []byte(channel)
		changed[i] = 'A'
		if channel[i] == 'A' {
			changed[i] = 'B'
		}
		if err := g.NewSender().Address(string(changed), nil, nil, nil); !errors.Is(err, bridge.ErrAddress) {
			t.Errorf("character %d changed: got %v, want %v", i, err, bridge.ErrAddress)
		}
		if err := n.NewSender().Address(string(changed), nil, nil, nil); err != nil {
			t.Errorf("character %d changed, through another node: got %v, want no error", i, err)
		}
		forwarded++
	}
	eventually(t, "undeliverable", func() (got, want any) { return g.Stats().Undeliverable, forwarded })
	if m, err := sub.NextMsg(50 * time.Millisecond); err == nil {
		t.Errorf("got %v on the inbox, want nothing", m)
	}
}

func TestOldSealIsDropped(t *testing.T) {
	g := newRig(t, nil)
	sub, err := g.nc.SubscribeSync("_INBOX.native.old")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	toAddress(t, g, g.SealedAt("_INBOX.native.old", time.Now().Add(-25*time.Hour)), "too late")
	if got := g.Stats().Undeliverable; got != 1 {
		t.Errorf("undeliverable: got %d, want 1", got)
	}
	toAddress(t, g, g.SealedAt("_INBOX.native.old", time.Now().Add(-23*time.Hour)), "in time")
	if m, err := sub.NextMsg(patience); err != nil || string(m.Data) != "in time" {
		t.Errorf("got %v, %v, want the second message only", m, err)
	}
}

// TestReplySubjectsNotOffered has native reply subjects that no client may be made to publish to, and one that is too
// long for a destination.
func TestReplySubjectsNotOffered(t *testing.T) {
	g := newRig(t, nil)
	for _, reply := range []string{
		"$KV.bucket.key", "$SYS.x", "stomp.queue.a", "stomp.store.a", "stomp.command.a", "_natstomp.once.a", "_natstomp.reply.a.b",
		"_INBOX." + strings.Repeat("long", 120),
	} {
		if got := nativeAddress(t, g, reply); got != "" {
			t.Errorf("reply subject %.40s: got reply-to %q, want none", reply, got)
		}
	}
	for _, reply := range []string{"_INBOX.a", "answers.here", "_INBOX_team.a"} {
		if got := nativeAddress(t, g, reply); !strings.HasPrefix(got, "/reply/") {
			t.Errorf("reply subject %s: got reply-to %q, want an address", reply, got)
		}
	}
}

func TestIsAddress(t *testing.T) {
	node, secret := strings.Repeat("n", 22), strings.Repeat("s", 22)
	for channel, want := range map[string]bool{
		node + ".t" + secret:                          true,
		node + ".n" + secret:                          true,
		node + ".n" + strings.Repeat("s", 481):        true,
		node + ".n" + strings.Repeat("s", 482):        false,
		node + ".t" + secret[1:]:                      false,
		node + ".t" + secret + "s":                    false,
		node + ".x" + secret:                          false,
		node + "." + secret:                           false,
		node + ".n":                                   false,
		node + ".":                                    false,
		node:                                          false,
		"":                                            false,
		node[1:] + ".t" + secret:                      false,
		node + ".t" + secret[1:] + "*":                false,
		node + ".t" + secret[1:] + ">":                false,
		node + ".t" + secret[1:] + " ":                false,
		node + ".t" + secret[2:] + ".a":               false,
		strings.Repeat("*", 22) + ".t" + secret:       false,
		strings.Repeat("n", 20) + ".a.t" + secret[1:]: false,
		strings.Repeat("\u00fc", 11) + ".t" + secret:  false,
		node + ".t" + strings.Repeat("\u00fc", 11):    false,
		node + "-t" + secret:                          false,
		"q0123456789abcdef-1-1234567890123":           false,
	} {
		if got := bridge.IsAddress(channel); got != want {
			t.Errorf("%q: got %v, want %v", channel, got, want)
		}
	}
}

func FuzzIsAddress(f *testing.F) {
	f.Add(strings.Repeat("n", 22) + ".t" + strings.Repeat("s", 22))
	r, err := router.New(router.DefaultConfig())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, channel string) {
		if !bridge.IsAddress(channel) {
			return
		}
		// What is an address is a destination as it stands, and so a subject without blank or wildcard.
		route, err := r.Parse("/reply/"+channel, router.Send)
		if err != nil || route.Channel != channel {
			t.Errorf("%q: got %+v, %v", channel, route, err)
		}
	})
}
