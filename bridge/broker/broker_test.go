package broker_test

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/bridge/broker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(t *testing.T) broker.Config {
	t.Helper()
	cfg := broker.DefaultConfig()
	cfg.Embedded.StoreDir = t.TempDir()
	cfg.Embedded.Listen = "off"
	cfg.Embedded.Durability = broker.DurabilityOS
	return cfg
}

func options() broker.Options {
	return broker.Options{Logger: slog.New(slog.DiscardHandler), MaxPayload: 5 << 20}
}

func start(t *testing.T, cfg broker.Config) *broker.Broker {
	t.Helper()
	b, err := broker.Start(t.Context(), cfg, options())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func stop(t *testing.T, b *broker.Broker, marks map[string]uint64) {
	t.Helper()
	if err := b.Stop(time.Minute, broker.Marks{Clean: true, Delivered: marks}); err != nil {
		t.Error(err)
	}
}

func TestStoreSurvivesRestart(t *testing.T) {
	cfg := config(t)
	b := start(t, cfg)
	if err := b.Ready(); err != nil {
		t.Error(err)
	}
	if _, err := b.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, MaxBytes: 1 << 50}); err != nil {
		t.Fatalf("a reservation above the disk: %v", err)
	}
	if _, err := b.JS.Publish(t.Context(), "s", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	stop(t, b, nil)
	if err := b.Ready(); err == nil {
		t.Error("ready after Stop")
	}

	b = start(t, cfg)
	defer stop(t, b, nil)
	s, err := b.JS.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().State.Msgs; got != 1 {
		t.Errorf("%d messages after the restart, want 1", got)
	}
}

func TestMarksTellCleanFromUnclean(t *testing.T) {
	cfg := config(t)
	marks := func(b *broker.Broker) broker.Marks {
		t.Helper()
		m, err := b.Marks()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	b := start(t, cfg)
	if m := marks(b); m.Clean {
		t.Error("a new store counts as cleanly stopped")
	}
	stop(t, b, map[string]uint64{"Q_a": 7})

	b = start(t, cfg)
	if m := marks(b); !m.Clean || m.Delivered["Q_a"] != 7 {
		t.Errorf("after a clean stop: %+v", m)
	}
	// What the file says while the process runs is what a killed one leaves behind.
	left, err := os.ReadFile(filepath.Join(cfg.Embedded.StoreDir, "natstomp-marks.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(left), `"clean":false`) {
		t.Errorf("while running the marks say %s", left)
	}
	stop(t, b, nil)

	if err := os.WriteFile(filepath.Join(cfg.Embedded.StoreDir, "natstomp-marks.json"), []byte(`{"clean":tr`), 0o600); err != nil {
		t.Fatal(err)
	}
	b = start(t, cfg)
	defer stop(t, b, nil)
	if m := marks(b); m.Clean {
		t.Error("a torn file counts as a clean stop")
	}
}

func TestStoreIsForOneProcess(t *testing.T) {
	cfg := config(t)
	b := start(t, cfg)
	_, err := broker.Start(t.Context(), cfg, options())
	if err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("second start on one store: %v", err)
	}
	stop(t, b, nil)
	b = start(t, cfg)
	stop(t, b, nil)
}

func TestClientPort(t *testing.T) {
	cfg := config(t)
	cfg.Embedded.Listen = "127.0.0.1:0"
	b := start(t, cfg)
	defer stop(t, b, nil)
	nc, err := nats.Connect("nats://" + b.ClientAddress())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got, want := nc.MaxPayload(), int64(5<<20); got != want {
		t.Errorf("max_payload is %d, want %d", got, want)
	}
}

func TestClientPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := config(t)
	cfg.Embedded.Listen = l.Addr().String()
	_, err = broker.Start(t.Context(), cfg, options())
	if err == nil {
		t.Fatal("started on a port that is taken")
	}
	for _, want := range []string{"--nats-url nats://" + cfg.Embedded.Listen, "--nats-embedded-listen off"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
	cfg.Embedded.Listen = "off"
	stop(t, start(t, cfg), nil) // The failed start left nothing behind.
}

func TestUsersProtectTheClientPort(t *testing.T) {
	cfg := config(t)
	cfg.Embedded.Listen = "127.0.0.1:0"
	cfg.Embedded.Users = []string{"app:secret:with:colons"}
	b := start(t, cfg)
	defer stop(t, b, nil)
	url := "nats://" + b.ClientAddress()
	if nc, err := nats.Connect(url, nats.Timeout(5*time.Second)); err == nil {
		nc.Close()
		t.Error("connected without a login")
	}
	nc, err := nats.Connect(url, nats.UserInfo("app", "secret:with:colons"))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

func TestConfigFile(t *testing.T) {
	cfg := config(t)
	cfg.Embedded.Listen = "127.0.0.1:0"
	cfg.Embedded.ConfigFile = filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(cfg.Embedded.ConfigFile, []byte("server_name: mine\nauthorization { user: u, password: p }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := start(t, cfg)
	defer stop(t, b, nil)
	nc, err := nats.Connect("nats://"+b.ClientAddress(), nats.UserInfo("u", "p"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got := nc.ConnectedServerName(); got != "mine" {
		t.Errorf("server name %q, want mine", got)
	}
	cfg.Embedded.StoreDir = t.TempDir()
	cfg.Embedded.ConfigFile = filepath.Join(t.TempDir(), "missing.conf")
	if _, err := broker.Start(t.Context(), cfg, options()); err == nil || !strings.Contains(err.Error(), "config_file") {
		t.Errorf("missing config_file: %v", err)
	}
}

func TestDurability(t *testing.T) {
	for durability, want := range map[string]jetstream.StorageType{
		broker.DurabilityFsync:  jetstream.FileStorage,
		broker.DurabilityOS:     jetstream.FileStorage,
		broker.DurabilityMemory: jetstream.MemoryStorage,
	} {
		cfg := config(t)
		cfg.Embedded.Durability = durability
		b := start(t, cfg)
		if got := b.Storage(); got != want {
			t.Errorf("%s: storage %s, want %s", durability, got, want)
		}
		if got := b.Durability(); got != durability {
			t.Errorf("durability %q, want %q", got, durability)
		}
		stop(t, b, nil)
	}
}
