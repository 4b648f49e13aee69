package broker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge/broker"
)

// withFile is a configuration whose config_file has that text.
func withFile(t *testing.T, text string) broker.Config {
	t.Helper()
	cfg := config(t)
	cfg.Embedded.Listen = "127.0.0.1:0"
	cfg.Embedded.ConfigFile = filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(cfg.Embedded.ConfigFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestConfigFileWithAccounts: accounts of others leave natstomp its own, with JetStream, also at the next start.
func TestConfigFileWithAccounts(t *testing.T) {
	cfg := withFile(t, "accounts { A: { users: [{user: a, password: b}], jetstream: enabled } }\n")
	cfg.Embedded.Users = []string{"own:pw"}
	for _, there := range []string{"", "S"} {
		b := start(t, cfg)
		if there == "" {
			if _, err := b.JS.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
				t.Error(err)
			}
		}
		for user, want := range map[string]string{"own:pw": "S", "a:b": ""} {
			name, password, _ := strings.Cut(user, ":")
			nc, err := nats.Connect("nats://"+b.ClientAddress(), nats.UserInfo(name, password))
			if err != nil {
				t.Fatal(err)
			}
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for stream := range js.StreamNames(t.Context()).Name() {
				got += stream
			}
			nc.Close()
			if got != want {
				t.Errorf("streams of %s: got %q, want %q", user, got, want)
			}
		}
		stop(t, b, nil)
	}
}

// TestConfigFileWithCluster: a start that would wait for other servers, and change what is theirs, is refused.
func TestConfigFileWithCluster(t *testing.T) {
	for _, text := range []string{
		"cluster { name: c, listen: \"127.0.0.1:-1\", routes: [\"nats://127.0.0.1:1\"] }\n",
		"cluster { name: c, port: 6222 }\n",
	} {
		_, err := broker.Start(t.Context(), withFile(t, text), options())
		if err == nil || !strings.Contains(err.Error(), "nats.url") {
			t.Errorf("%s: got %v, want a refusal that names nats.url", text, err)
		}
	}
}
