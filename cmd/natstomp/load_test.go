package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/natstomp/natstomp/connector"
)

// setting is what a configuration is loaded from.
type setting struct {
	file    string // The text of the file; empty for none.
	environ []string
	args    []string
}

// loader returns a loader that looks for no file.
func (s setting) loader(t *testing.T) *loader {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	addSettingFlags(flags)
	if err := flags.Parse(s.args); err != nil {
		t.Fatal(err)
	}
	l := newLoader(s.environ, flags)
	l.search = nil
	return l
}

// write writes the file, if there is one, and returns its name.
func (s setting) write(t *testing.T) string {
	t.Helper()
	if s.file == "" {
		return ""
	}
	return writeFile(t, s.file)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// faultLines returns the faults of s without the name of the file.
func faultLines(t *testing.T, s setting) []string {
	t.Helper()
	name := s.write(t)
	_, err := s.loader(t).load(name)
	if err == nil {
		return nil
	}
	var found faults
	if !errors.As(err, &found) {
		t.Fatalf("got an error of type %T: %v", err, err)
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		if name != "" {
			lines[i] = strings.ReplaceAll(line, name, "file")
		}
	}
	return lines
}

func TestLaterLayersWin(t *testing.T) {
	all := setting{
		file:    "limits: {id: 2, headers: 2, body: 2KiB, connections: 2}\nlisteners: {ws: {paths: [/f, /g]}}\n",
		environ: []string{"NATSTOMP_LIMITS_ID=3", "NATSTOMP_LIMITS_HEADERS=3", "NATSTOMP_LISTENERS_WS_PATHS=/e", "CONNECTORS_STOMP_MAX_CONNECTIONS=5"},
		args:    []string{"--limits-id", "4"},
	}
	got, err := all.loader(t).load(all.write(t))
	if err != nil {
		t.Fatal(err)
	}
	l := got.config.Limits
	if l.ID != 4 || l.Headers != 3 || l.Body != 2048 || l.Connections != 5 || l.Destination != 512 {
		t.Errorf("got id %d, headers %d, body %d, connections %d, destination %d, want 4, 3, 2048, 5, 512",
			l.ID, l.Headers, l.Body, l.Connections, l.Destination)
	}
	if got, want := got.config.Listeners.WS.Paths, []string{"/e"}; !slices.Equal(got, want) {
		t.Errorf("paths: got %q, want %q", got, want)
	}
}

func TestEntriesAreRead(t *testing.T) {
	s := setting{file: "queues:\n  settings:\n  - {queue: a.*, max_bytes: 5MiB, max_age: 1h, exclusive: true, max_deliveries: 2}\n  - queue: b\n"}
	config, _, err := s.loader(t).merge(s.write(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []connector.QueueSetting{
		{Queue: "a.*", MaxBytes: 5 << 20, MaxAge: time.Hour, Exclusive: true, MaxDeliveries: 2},
		{Queue: "b"},
	}
	if got := config.Queues.Settings; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSearchOrder(t *testing.T) {
	dir := t.TempDir()
	name := func(n string) string { return filepath.Join(dir, n) }
	for n, id := range map[string]string{"flag": "1", "variable": "2", "here": "3", "etc": "4"} {
		if err := os.WriteFile(name(n), []byte("limits: {id: "+id+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		named, variable string
		search          []string
		want            int
		file            string
	}{
		{name("flag"), name("variable"), []string{name("here"), name("etc")}, 1, "flag"},
		{"", name("variable"), []string{name("here"), name("etc")}, 2, "variable"},
		{"", "", []string{name("here"), name("etc")}, 3, "here"},
		{"", "", []string{name("missing"), name("etc")}, 4, "etc"},
		{"", "", []string{name("missing"), name("missing")}, 1024, ""},
	} {
		l := setting{environ: []string{configVariable + "=" + test.variable}}.loader(t)
		l.search = test.search
		got, err := l.load(test.named)
		if err != nil {
			t.Errorf("%+v: %v", test, err)
			continue
		}
		if got.config.Limits.ID != test.want || got.file != "" && filepath.Base(got.file) != test.file || (got.file == "") != (test.file == "") {
			t.Errorf("%+v: got id %d of %q", test, got.config.Limits.ID, got.file)
		}
	}
	if got, want := searchedFiles(), []string{"natstomp.yaml", "/etc/natstomp/natstomp.yaml"}; !slices.Equal(got, want) {
		t.Errorf("searched files: got %q, want %q", got, want)
	}
}

func TestNamedFileMustExist(t *testing.T) {
	for _, environ := range [][]string{nil, {configVariable + "=missing.yaml"}} {
		named := ""
		if environ == nil {
			named = "missing.yaml"
		}
		_, err := setting{environ: environ}.loader(t).load(named)
		if want := "missing.yaml: cannot be read: no such file or directory"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := (setting{}).loader(t).load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: got %v", err)
	}
}

func TestFaultsOfAllLayersAtOnce(t *testing.T) {
	got := faultLines(t, setting{
		file:    "limits:\n  body: 5MB\n  id: 0\nlog: {level: loud}\n",
		environ: []string{"NATSTOMP_LIMITS_HEADERS=many", "NATSTOMP_AUTH_MODE=jwt", "NATSTOMP_NONE=1"},
		args:    []string{"--limits-heartbeat=10", "--nats-context=prod", "--creds=none.creds"},
	})
	want := []string{
		`file:2: limits.body: "5MB" has the unknown unit "MB": use B, KiB, MiB or GiB`,
		`file:3: limits.id: 0 is less than 1 (it cannot be turned off)`,
		`file:4: log.level: "loud" is not one of debug, info, warn, error`,
		`NATSTOMP_AUTH_MODE: auth.mode: jwt is not built yet: only none is, with which everybody is let in`,
		`NATSTOMP_LIMITS_HEADERS: limits.headers: "many" is no whole number`,
		`NATSTOMP_NONE: is not a known variable`,
		`--creds: nats.creds: "none.creds" cannot be read: no such file or directory`,
		`--limits-heartbeat: limits.heartbeat: "10" has no unit: write for instance 500ms, 10s or 1h30m`,
		`auth.jwt: has no key to check tokens with (set hmac_secret, public_key_files or jwks)`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestUnreadValuesGiveNoFurtherFaults(t *testing.T) {
	for name, test := range map[string]struct {
		setting
		want []string
	}{
		"entry": {setting{file: "queues: {settings: [{quue: a}, {queue: b c}]}\n"}, []string{
			"file:1: queues.settings[0].quue: is not a known key (did you mean queue?)",
			`file:1: queues.settings[1].queue: destination "/queue/b c": it holds a space (write a channel with dots, where "*" is one token and a last ">" the rest: orders.*)`,
		}},
		"section": {setting{file: "auth: {mode: jwt, jwt: {hmac_secret: [a]}}\n"}, []string{
			"file:1: auth.jwt.hmac_secret: must be a single value, not a list",
			"file:1: auth.mode: jwt is not built yet: only none is, with which everybody is let in",
		}},
		"given twice": {setting{file: "limits: {id: 0, id: 5}\n"}, []string{
			"file:1: limits.id: 0 is less than 1 (it cannot be turned off)",
			"file:1: limits.id: is given twice, first in line 1",
		}},
	} {
		got := faultLines(t, test.setting)
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

func TestFlagListsAddUp(t *testing.T) {
	s := setting{args: []string{"--queues-declare", "a,b", "--queues-declare", "c", "--allow-insecure"}}
	config, _, err := s.loader(t).merge("")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := config.Queues.Declare, []string{"a", "b", "c"}; !slices.Equal(got, want) || !config.AllowInsecure {
		t.Errorf("got %q and %v, want %q and true", got, config.AllowInsecure, want)
	}
}

func TestShortFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--context", "prod", "--creds", "f"},
		{"--nats-context", "prod", "--nats-creds", "f"},
		{"--nats-context", "other", "--context", "prod", "--creds", "f"},
	} {
		config, _, err := setting{args: args}.loader(t).merge("")
		if err != nil {
			t.Fatal(err)
		}
		if got := config.NATS.Context + " " + config.NATS.Creds; got != "prod f" {
			t.Errorf("%q: got %q, want %q", args, got, "prod f")
		}
	}
	got := faultLines(t, setting{args: []string{"--limits-id=x", "--limits-id=y"}})
	if len(got) != 1 {
		t.Errorf("got %q, want one fault", got)
	}
}

func TestNamedFilesAreOpened(t *testing.T) {
	good := writeFile(t, "x")
	got := faultLines(t, setting{args: []string{
		"--auth-mode=jwt", "--auth-jwt-jwks", "no.json", "--auth-jwt-public-key-files", good + ",no.pem", "--nats-embedded-config-file", t.TempDir(),
	}})
	var unread []string
	for _, line := range got {
		if strings.Contains(line, "cannot be read") {
			unread = append(unread, line)
		}
	}
	if len(unread) != 3 || !strings.Contains(unread[0], "no.json") || !strings.Contains(unread[1], "no.pem") || !strings.Contains(unread[2], "is a directory") {
		t.Errorf("got %q, want no.json, no.pem and the directory", unread)
	}
	if got := faultLines(t, setting{args: []string{"--auth-mode=jwt", "--auth-jwt-jwks", "https://example.org/keys"}}); len(got) != 1 {
		t.Errorf("a URL: got %q, want only that jwt is not built", got)
	}
}

func TestAListenerIsNeeded(t *testing.T) {
	for _, address := range []string{"", "off"} {
		got := faultLines(t, setting{args: []string{"--listeners-tcp-address", address, "--listeners-ws-address", address}})
		if len(got) != 1 || !strings.HasPrefix(got[0], "--listeners-tcp-address: listeners.tcp.address: is off") {
			t.Errorf("%q: got %q, want one fault", address, got)
		}
	}
}
