package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
)

func TestEnvFaults(t *testing.T) {
	empty := writeFile(t, "\n")
	token := writeFile(t, "t\n")
	for _, test := range []struct {
		name    string
		environ []string
		want    []string
	}{
		{"none", []string{"HOME=/x", "natstomp_limits_id=5", "NATSTOMP=x", "ODD"}, nil},
		{"no settings", []string{"NATSTOMP_URL=tcp://127.0.0.1:61613", "NATSTOMP_CONFIG="}, nil},
		{"near", []string{"NATSTOMP_LIMITS_BODDY=1MiB"}, []string{"NATSTOMP_LIMITS_BODDY: is not a known variable (did you mean NATSTOMP_LIMITS_BODY?)"}},
		{"section", []string{"NATSTOMP_LIMITS=x"}, []string{"NATSTOMP_LIMITS: is not a known variable (did you mean NATSTOMP_LIMITS_ID?)"}},
		{"like nothing", []string{"NATSTOMP_ZEBRA_CROSSING=1"}, []string{"NATSTOMP_ZEBRA_CROSSING: is not a known variable"}},
		{"bare prefix", []string{"NATSTOMP_=1"}, []string{"NATSTOMP_: is not a known variable"}},
		{"entries", []string{"NATSTOMP_QUEUES_SETTINGS=[]"}, []string{"NATSTOMP_QUEUES_SETTINGS: queues.settings: can be set in the configuration file only"}},
		{"file of what is not secret", []string{"NATSTOMP_NATS_USER_FILE=/x"}, []string{"NATSTOMP_NATS_USER_FILE: is not a known variable (only secrets have such a variable; set NATSTOMP_NATS_USER)"}},
		{"empty number", []string{"NATSTOMP_LIMITS_ID="}, []string{`NATSTOMP_LIMITS_ID: limits.id: "" is no whole number`}},
		{"empty text", []string{"NATSTOMP_LISTENERS_ADMIN_ADDRESS="}, nil},
		{"empty list", []string{"NATSTOMP_QUEUES_DECLARE="}, nil},
		{"empty entry", []string{"NATSTOMP_QUEUES_DECLARE=a,,b"}, []string{`NATSTOMP_QUEUES_DECLARE: queues.declare: "a,,b" has an empty entry: separate the entries by single commas`}},
		{"secret and its file", []string{"NATSTOMP_NATS_TOKEN=t", "NATSTOMP_NATS_TOKEN_FILE=" + token, "NATSTOMP_NATS_URL=a"}, []string{
			"NATSTOMP_NATS_TOKEN_FILE: nats.token: is also set by NATSTOMP_NATS_TOKEN (keep one of the two)",
		}},
		{"missing file of a secret", []string{"NATSTOMP_NATS_EMBEDDED_USERS_FILE=none"}, []string{
			`NATSTOMP_NATS_EMBEDDED_USERS_FILE: nats.embedded.users: "none" cannot be read: no such file or directory`,
		}},
		{"empty file of a secret", []string{"NATSTOMP_NATS_EMBEDDED_USERS_FILE=" + empty}, []string{
			`NATSTOMP_NATS_EMBEDDED_USERS_FILE: nats.embedded.users: "` + empty + `" is an empty file`,
		}},
		{"no file of a secret", []string{"NATSTOMP_NATS_EMBEDDED_USERS_FILE="}, nil},
		{"Kubernetes services", []string{
			"NATSTOMP_SERVICE_HOST=10.0.0.1", "NATSTOMP_SERVICE_PORT=61613", "NATSTOMP_SERVICE_PORT_STOMP_TCP=61613", "NATSTOMP_PORT=tcp://10.0.0.1:61613",
			"NATSTOMP_PORT_61613_TCP=tcp://10.0.0.1:61613", "NATSTOMP_PORT_61613_TCP_PROTO=tcp", "NATSTOMP_PORT_61613_TCP_PORT=61613",
			"NATSTOMP_PORT_61613_TCP_ADDR=10.0.0.1", "NATSTOMP_ADMIN_SERVICE_HOST=10.0.0.1", "NATSTOMP_ADMIN_PORT=udp://10.0.0.1:1",
		}, nil},
		{"a port that is no service", []string{"NATSTOMP_PORT=61613", "NATSTOMP_LISTENERS_TCP_PORT=61613"}, []string{
			"NATSTOMP_LISTENERS_TCP_PORT: is not a known variable (did you mean NATSTOMP_LISTENERS_TCP_ADDRESS?)",
			"NATSTOMP_PORT: is not a known variable",
		}},
	} {
		got := faultLines(t, setting{environ: test.environ})
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

func TestSecretFiles(t *testing.T) {
	for content, want := range map[string]string{
		"secret":         "secret",
		"secret\n":       "secret",
		"secret\r\n":     "secret",
		"secret\n\n":     "secret\n",
		" se,cret ":      " se,cret ",
		"two\nlines\n":   "two\nlines",
		"\u00e4\x00\xff": "\u00e4\x00\xff",
	} {
		s := setting{environ: []string{"NATSTOMP_AUTH_JWT_HMAC_SECRET_FILE=" + writeFile(t, content)}}
		l := s.loader(t)
		config, _, err := l.merge("")
		if err != nil || len(l.faults) > 0 {
			t.Fatal(err, l.faults)
		}
		if got := config.Auth.JWT.HMACSecret.Reveal(); got != want {
			t.Errorf("%q: got %q, want %q", content, got, want)
		}
	}
	for _, content := range []string{"a:b\nc:d\n", "a:b,c:d", "a:b\r\nc:d\r\n"} {
		s := setting{environ: []string{"NATSTOMP_NATS_EMBEDDED_USERS_FILE=" + writeFile(t, content)}}
		config, _, err := s.loader(t).merge("")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := config.NATS.Embedded.Users, []string{"a:b", "c:d"}; !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", content, got, want)
		}
	}
}

func TestEnvFaultsShowNoSecrets(t *testing.T) {
	got := strings.Join(faultLines(t, setting{environ: []string{
		"NATSTOMP_NATS_EMBEDDED_USERS=canary,,canary", "NATSTOMP_NATS_PASSWORD=canary", "NATSTOMP_NATS_TOKEN=canary", "NATSTOMP_NATS_TOKN=canary",
		"NATSTOMP_AUTH_JWT_HMAC_SECRET=canary", "NATS_URL=bad://user:canary@h",
	}}), "\n")
	if strings.Contains(got, "canary") {
		t.Errorf("shows a secret:\n%s", got)
	}
	if n := strings.Count(got, "\n") + 1; n < 5 {
		t.Errorf("got %d faults, want at least 5:\n%s", n, got)
	}
}

func TestVariablesOfTheNATSCommand(t *testing.T) {
	for _, test := range []struct {
		name       string
		environ    []string
		file       string
		url, creds string
		warnings   int
	}{
		{"both", []string{"NATS_URL=nats://a", "NATS_CREDS=c"}, "", "nats://a", "c", 0},
		{"over the file", []string{"NATS_URL=nats://a"}, "nats: {url: b, creds: d}\n", "nats://a", "d", 0},
		{"below ours", []string{"NATS_URL=nats://a", "NATSTOMP_NATS_URL=b", "NATS_CREDS=c", "NATSTOMP_NATS_CREDS=d"}, "", "b", "d", 0},
		{"empty", []string{"NATS_URL=", "NATS_CREDS="}, "nats: {url: b, creds: d}\n", "b", "d", 0},
		{"others", []string{"NATS_PASSWORD=x", "NATS_CONTEXT=y"}, "", "", "", 0},
		{"creds for nothing", []string{"NATS_CREDS=c"}, "", "", "", 1},
		{"creds for a context", []string{"NATS_CREDS=c"}, "nats: {context: b}\n", "", "c", 0},
	} {
		s := setting{file: test.file, environ: test.environ}
		l := s.loader(t)
		config, _, err := l.merge(s.write(t))
		if err != nil || len(l.faults) > 0 {
			t.Errorf("%s: %v, %v", test.name, err, l.faults)
		}
		if n := config.NATS; n.URL != test.url || n.Creds != test.creds || n.Password != "" || len(l.warnings) != test.warnings {
			t.Errorf("%s: got %q, %q, %q, want %q, %q, %d warnings", test.name, n.URL, n.Creds, l.warnings, test.url, test.creds, test.warnings)
		}
	}
}

func TestVariablesOfKubeMQ(t *testing.T) {
	s := setting{
		file: "listeners:\n  tcp: {address: \"[::1]:1\"}\n  tls: {address: \"localhost:1\", cert_file: f, key_file: f}\n",
		environ: []string{
			"CONNECTORS_STOMP_ENABLE=true", "CONNECTORS_STOMP_PORT=61700", "CONNECTORS_STOMP_TLS_PORT=61701", "CONNECTORS_STOMP_DEFAULT_PATTERN=queues",
			"CONNECTORS_STOMP_SUB_BUFF_SIZE=100", "CONNECTORS_STOMP_MAX_CONNECTIONS=0", "CONNECTORS_STOMP_MAX_BODY_SIZE=1000000",
			"CONNECTORS_STOMP_HEARTBEAT_MS=5000", "CONNECTORS_STOMP_QUEUE_ACK_TIMEOUT_SECONDS=45", "CONNECTORS_STOMP_RPC_TIMEOUT_SECONDS=20",
			"CONNECTORS_STOMP_RPC_MAX_PENDING=99", "CONNECTORS_STOMP_OTHER=1", "CONNECTORS_MQTT_PORT=5",
		},
	}
	l := s.loader(t)
	got, _, err := l.merge(s.write(t))
	if err != nil || len(l.faults) > 0 {
		t.Fatal(err, l.faults)
	}
	want := connector.DefaultConfig()
	want.Listeners.TCP.Address = "[::1]:61700"
	want.Destinations.DefaultPattern = "queues"
	want.Limits.Connections, want.Limits.Body, want.Limits.Heartbeat, want.Limits.RPCPending = 0, 1_000_000, 5*time.Second, 99
	want.Queues.AckTimeout, want.RPC.Timeout = 45*time.Second, 20*time.Second
	if got.Listeners.TCP != want.Listeners.TCP || got.Listeners.TLS.Address != "localhost:61701" || got.Limits != want.Limits || got.RPC != want.RPC ||
		got.Queues.AckTimeout != want.Queues.AckTimeout || got.Destinations.DefaultPattern != "queues" {
		t.Errorf("got %+v", got)
	}
	if len(l.warnings) != 12 {
		t.Errorf("got %d warnings, want 12:\n%s", len(l.warnings), strings.Join(l.warnings, "\n"))
	}
	for _, line := range []string{
		"CONNECTORS_STOMP_PORT is a variable of KubeMQ and is taken as listeners.tcp.address: [::1]:61700; better set NATSTOMP_LISTENERS_TCP_ADDRESS",
		"CONNECTORS_STOMP_ENABLE has no effect: natstomp serves STOMP as long as it runs",
		"CONNECTORS_STOMP_OTHER is not known and has no effect",
	} {
		if !slices.Contains(l.warnings, line) {
			t.Errorf("there is no warning %q in\n%s", line, strings.Join(l.warnings, "\n"))
		}
	}
}

func TestVariablesOfKubeMQAlone(t *testing.T) {
	s := setting{environ: []string{"CONNECTORS_STOMP_PORT=61700", "CONNECTORS_STOMP_TLS_PORT=61614", "CONNECTORS_STOMP_HEARTBEAT_MS="}}
	l := s.loader(t)
	got, err := l.load("")
	if err != nil {
		t.Fatal(err)
	}
	if got.config.Listeners.TCP.Address != "127.0.0.1:61700" || got.config.Listeners.TLS.Address != "" {
		t.Errorf("got %q and %q, want the port on loopback, and no TLS", got.config.Listeners.TCP.Address, got.config.Listeners.TLS.Address)
	}
	if len(got.warnings) != 2 || !strings.Contains(got.warnings[1], "CONNECTORS_STOMP_TLS_PORT has no effect: a TLS listener needs") {
		t.Errorf("got warnings %q", got.warnings)
	}
}

func TestBadVariablesOfKubeMQ(t *testing.T) {
	got := faultLines(t, setting{environ: []string{
		"CONNECTORS_STOMP_PORT=0", "CONNECTORS_STOMP_MAX_CONNECTIONS=many", "CONNECTORS_STOMP_MAX_BODY_SIZE=104857600",
		"CONNECTORS_STOMP_DEFAULT_PATTERN=topics", "CONNECTORS_STOMP_RPC_TIMEOUT_SECONDS=99999999999", "CONNECTORS_STOMP_HEARTBEAT_MS=-1",
	}})
	want := []string{
		`CONNECTORS_STOMP_DEFAULT_PATTERN: destinations.default_pattern: "topics" is none of events, queues, store, none`,
		`CONNECTORS_STOMP_HEARTBEAT_MS: limits.heartbeat: -1ms is less than 0s (0 offers none)`,
		`CONNECTORS_STOMP_MAX_BODY_SIZE: limits.body: 100MiB is more than 30MiB (JetStream stores no larger message)`,
		`CONNECTORS_STOMP_MAX_CONNECTIONS: limits.connections: "many" is no whole number`,
		`CONNECTORS_STOMP_PORT: listeners.tcp.address: "0" is no port from 1 to 65535`,
		`CONNECTORS_STOMP_RPC_TIMEOUT_SECONDS: rpc.timeout: "99999999999" is a longer time than fits`,
		`limits.pending_bytes: 16MiB is less than limits.body (100MiB) (one message must fit)`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
