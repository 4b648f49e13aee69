package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/natstomp/natstomp/connector"
)

// fakeServer does what its functions do; they may be nil.
type fakeServer struct {
	start, shutdown func(ctx context.Context) error
	shutdowns       int
}

func (f *fakeServer) Start(ctx context.Context) error {
	if f.start == nil {
		return nil
	}
	return f.start(ctx)
}

func (f *fakeServer) Shutdown(ctx context.Context) error {
	f.shutdowns++
	if f.shutdown == nil {
		return nil
	}
	return f.shutdown(ctx)
}

func (*fakeServer) Status() connector.Status { return connector.Status{} }

// untilDone waits for the context and returns its error.
func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestRunServer(t *testing.T) {
	failed := errors.New("failed")
	term, interrupt := syscall.SIGTERM, syscall.SIGINT
	for _, test := range []struct {
		name      string
		server    fakeServer
		signals   []os.Signal // There before the start.
		onReady   []os.Signal
		want      error
		ready     bool
		shutdowns int
	}{
		{name: "a signal stops", onReady: []os.Signal{term}, ready: true, shutdowns: 1},
		{name: "interrupt too", onReady: []os.Signal{interrupt}, ready: true, shutdowns: 1},
		{name: "a failed start", server: fakeServer{start: func(context.Context) error { return failed }}, want: failed},
		{
			name: "a failed stop", server: fakeServer{shutdown: func(context.Context) error { return failed }},
			onReady: []os.Signal{term}, want: failed, ready: true, shutdowns: 1,
		},
		{name: "a signal while it starts", server: fakeServer{start: untilDone}, signals: []os.Signal{term}},
		{
			name: "a signal while it starts, too late", signals: []os.Signal{term}, shutdowns: 1,
			server: fakeServer{start: func(ctx context.Context) error { <-ctx.Done(); return nil }},
		},
		{
			name: "a signal while it starts, and a fault", signals: []os.Signal{term}, want: failed,
			server: fakeServer{start: func(ctx context.Context) error { <-ctx.Done(); return failed }},
		},
		{
			name: "two signals while it starts", signals: []os.Signal{term, term}, want: errForced,
			server: fakeServer{start: func(context.Context) error { select {} }},
		},
	} {
		signals := make(chan os.Signal, 2)
		for _, s := range test.signals {
			signals <- s
		}
		ready := false
		err := runServer(&test.server, slog.New(slog.DiscardHandler), func() {
			ready = true
			for _, s := range test.onReady {
				signals <- s
			}
		}, signals)
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
		if ready != test.ready || test.server.shutdowns != test.shutdowns {
			t.Errorf("%s: got ready %v and %d shutdowns, want %v and %d", test.name, ready, test.server.shutdowns, test.ready, test.shutdowns)
		}
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	signals := make(chan os.Signal, 2)
	hanging := &fakeServer{shutdown: func(context.Context) error {
		signals <- syscall.SIGTERM // The second one, while the first is being obeyed.
		select {}
	}}
	err := runServer(hanging, slog.New(slog.DiscardHandler), func() { signals <- syscall.SIGTERM }, signals)
	if !errors.Is(err, errForced) {
		t.Errorf("got %v, want %v", err, errForced)
	}
}

func TestStopHasADeadline(t *testing.T) {
	s := &fakeServer{shutdown: func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("Shutdown has no deadline")
		}
		return nil
	}}
	if err := stop(s, nil); err != nil {
		t.Error(err)
	}
}

func TestStartBlock(t *testing.T) {
	var out bytes.Buffer
	err := writeBlock(&out, build{version: "1.2.3"}, loaded{file: "natstomp.yaml"}, connector.Status{
		Listeners:  []connector.ListenerStatus{{Name: "tcp", Address: "127.0.0.1:61613"}, {Name: "admin", Address: "127.0.0.1:8161"}},
		NATS:       connector.NATSStatus{Mode: "embedded", ServerVersion: "2.15.3", ClientAddress: "127.0.0.1:4222", StoreDir: "/data"},
		Durability: "os",
		AuthMode:   "none",
		Skipped:    []string{"listener ws is skipped", "memory_limit has no effect"},
	})
	want := `natstomp 1.2.3
  configuration  natstomp.yaml
  tcp            127.0.0.1:61613
  admin          127.0.0.1:8161
  nats           embedded nats-server 2.15.3, store /data
  nats clients   nats://127.0.0.1:4222
  durability     os: a RECEIPT means that a stored message is written to the operating system, which puts it on disk within about a second
  identity       none: anyone may connect, every login and passcode is accepted
  skipped        listener ws is skipped
  skipped        memory_limit has no effect
ready
`
	if got := out.String(); err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestStartBlockOfExternalNATS(t *testing.T) {
	var out bytes.Buffer
	err := writeBlock(&out, build{}, loaded{}, connector.Status{
		NATS: connector.NATSStatus{
			Mode: "external", ServerVersion: "2.15.3", ServerName: "n1", Cluster: "c", Address: "nats://a:1,nats://b:1", Replicas: 3,
		},
		Durability: "nats;r=3", AuthMode: "jwt",
	})
	for _, want := range []string{
		"external nats-server 2.15.3 n1 of the cluster c, at nats://a:1,nats://b:1, new streams with replicas: 3\n", "\nready\n", "nats;r=3: a RECEIPT means that a stored message is stored by NATS", "jwt: clients log in with a signed token", "no file, defaults",
	} {
		if !strings.Contains(out.String(), want) || err != nil {
			t.Errorf("got %v\n%s\nwant %q in it", err, out.String(), want)
		}
	}
}

func TestStartBlockWithoutNATS(t *testing.T) {
	var out bytes.Buffer
	err := writeBlock(&out, build{}, loaded{}, connector.Status{
		NATS: connector.NATSStatus{Mode: "external", Address: "nats://a:1"}, AuthMode: "none", NotReady: "NATS is not available: why",
	})
	for _, want := range []string{"external, at nats://a:1, not connected\n", "\nnot ready, trying on: NATS is not available: why\n"} {
		if !strings.Contains(out.String(), want) || err != nil {
			t.Errorf("got %v\n%s\nwant %q in it", err, out.String(), want)
		}
	}
	if strings.Contains(out.String(), "durability") {
		t.Errorf("a durability that is not known:\n%s", out.String())
	}
}

func TestBuild(t *testing.T) {
	info := &debug.BuildInfo{
		Main:     debug.Module{Version: "v0.0.0-20261130-abc+dirty"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abcdef"}, {Key: "vcs.modified", Value: "true"}},
		Deps:     []*debug.Module{{Path: "github.com/nats-io/nats-server/v2", Version: "v2.1.0"}, {Path: "github.com/nats-io/nats.go", Version: "v1.2.0"}},
	}
	if got, want := buildOf("", info).version, "0.0.0-20261130-abc+dirty"; got != want {
		t.Errorf("version of the module: got %q, want %q", got, want)
	}
	b := buildOf("v1.2.3", info)
	if b.version != "1.2.3" || b.commit != "abcdef (modified)" || b.natsServer != "v2.1.0" || b.natsGo != "v1.2.0" || !strings.HasPrefix(b.goVersion, "go1.") {
		t.Errorf("got %+v", b)
	}
	for _, bare := range []*debug.BuildInfo{{}, {Main: debug.Module{Version: "(devel)"}}} {
		if b := buildOf("", bare); b.version != "dev" || b.commit != "unknown" || b.natsGo != "unknown" {
			t.Errorf("of nothing: got %+v", b)
		}
	}
}

func TestLogger(t *testing.T) {
	for _, test := range []struct {
		config connector.Log
		want   string
	}{
		{connector.Log{Level: "info", Format: "auto"}, `"msg":"seen"`}, // A buffer is no terminal.
		{connector.Log{Level: "info", Format: "json"}, `"msg":"seen"`},
		{connector.Log{Level: "info", Format: "text"}, "msg=seen"},
	} {
		var out bytes.Buffer
		log := newLogger(test.config, &out)
		log.Debug("hidden")
		log.Info("seen")
		if got := out.String(); !strings.Contains(got, test.want) || strings.Contains(got, "hidden") {
			t.Errorf("%+v: got %q, want %q in it", test.config, got, test.want)
		}
	}
	for level, want := range map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError} {
		log := newLogger(connector.Log{Level: level, Format: "text"}, &bytes.Buffer{})
		if !log.Enabled(t.Context(), want) || log.Enabled(t.Context(), want-1) {
			t.Errorf("level %s is not %v", level, want)
		}
	}
}
