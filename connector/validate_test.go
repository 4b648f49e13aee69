package connector_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge/broker"
	"github.com/natstomp/natstomp/connector"
)

func TestDefaultConfigIsValid(t *testing.T) {
	if err := connector.DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

// badValue is a change of one key and the paths of the faults that it must give, and no others.
type badValue struct {
	name   string
	change func(c *connector.Config)
	want   []string
}

// bad makes the paths of a badValue.
func bad(paths ...string) []string { return paths }

func listenerFaults() []badValue {
	const tcp = "listeners.tcp.address"
	var values []badValue
	for _, address := range []string{
		"61613", "localhost", ":", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:65536", "::1:61613", "127.0.0.1 :1", "a/b:1", "tcp://127.0.0.1:1",
		"on", "Off", "[::1]:http", "127.0.0.1:1:2", "b\u00fccher:1",
	} {
		values = append(values, badValue{"tcp at " + address, func(c *connector.Config) { c.Listeners.TCP.Address = address }, bad(tcp)})
	}
	return append(values,
		badValue{"tcp in the open", func(c *connector.Config) { c.Listeners.TCP.Address = "0.0.0.0:61613" }, bad(tcp)},
		badValue{"tcp on all addresses", func(c *connector.Config) { c.Listeners.TCP.Address = ":61613" }, bad(tcp)},
		badValue{"tcp on a named host", func(c *connector.Config) { c.Listeners.TCP.Address = "example.org:61613" }, bad(tcp)},
		badValue{"tcp on all IPv6 addresses", func(c *connector.Config) { c.Listeners.TCP.Address = "[::]:61613" }, bad(tcp)},
		badValue{"admin in the open", func(c *connector.Config) { c.Listeners.Admin.Address = "10.0.0.1:8161" }, bad("listeners.admin.address")},
		badValue{"ws in the open", func(c *connector.Config) { c.Listeners.WS.Address = "10.0.0.1:1" }, bad("listeners.ws.address")},
		badValue{"ws and tcp on one port", func(c *connector.Config) { c.Listeners.WS.Address = "localhost:61613" }, bad("listeners.ws.address")},
		badValue{"NATS port taken by admin", func(c *connector.Config) { c.NATS.Embedded.Listen = "127.0.0.1:8161" }, bad("nats.embedded.listen")},
		badValue{
			"everywhere takes the port of an address",
			func(c *connector.Config) { c.AllowInsecure = true; c.Listeners.Admin.Address = ":61613" },
			bad("listeners.admin.address"),
		},
		badValue{"tls without files", func(c *connector.Config) { c.Listeners.TLS.Address = "127.0.0.1:61614" }, bad("listeners.tls.cert_file", "listeners.tls.key_file")},
		badValue{"tls in the open", func(c *connector.Config) {
			c.Listeners.TLS = connector.TLSListener{Address: ":61614", CertFile: "a", KeyFile: "b"}
		}, bad("listeners.tls.address")},
		badValue{"tls key alone", func(c *connector.Config) { c.Listeners.TLS.KeyFile = "k" }, bad("listeners.tls.cert_file")},
		badValue{"wss certificate alone", func(c *connector.Config) { c.Listeners.WSS.CertFile = "k" }, bad("listeners.wss.key_file")},
		badValue{"wss key alone", func(c *connector.Config) { c.Listeners.WSS.KeyFile = "k" }, bad("listeners.wss.cert_file")},
		badValue{"wss nowhere", func(c *connector.Config) {
			c.Listeners.WSS = connector.WSListener{Address: "x", CertFile: "a", KeyFile: "b", Paths: []string{"/"}}
		}, bad("listeners.wss.address")},
		badValue{"ws with a certificate", func(c *connector.Config) { c.Listeners.WS.CertFile = "k" }, bad("listeners.ws.cert_file")},
		badValue{"ws with a key", func(c *connector.Config) { c.Listeners.WS.KeyFile = "k" }, bad("listeners.ws.key_file")},
		badValue{"ws without path", func(c *connector.Config) { c.Listeners.WS.Paths = nil }, bad("listeners.ws.paths")},
		badValue{"ws paths", func(c *connector.Config) {
			c.Listeners.WS.Paths = []string{"/a", "b", "/a", "/a b", "/{x}", "/a?b", ""}
		}, bad("listeners.ws.paths[1]", "listeners.ws.paths[2]", "listeners.ws.paths[3]", "listeners.ws.paths[4]", "listeners.ws.paths[5]", "listeners.ws.paths[6]")},
		badValue{"wss paths", func(c *connector.Config) { c.Listeners.WSS.Paths = []string{"b"} }, bad("listeners.wss.paths[0]")},
		badValue{"ws origins", func(c *connector.Config) {
			c.Listeners.WS.Origins = []string{"*", "https://a", "https://a:1", "a", "https://a/", "https://u@a", "//a", ":"}
		}, bad("listeners.ws.origins[3]", "listeners.ws.origins[4]", "listeners.ws.origins[5]", "listeners.ws.origins[6]", "listeners.ws.origins[7]")},
		badValue{"wss origins", func(c *connector.Config) { c.Listeners.WSS.Origins = []string{"x"} }, bad("listeners.wss.origins[0]")},
	)
}

func authFaults() []badValue {
	jwt := func(c *connector.Config) *connector.JWT {
		c.Auth.Mode, c.Auth.JWT.HMACSecret = "jwt", connector.Secret(strings.Repeat("k", 32))
		return &c.Auth.JWT
	}
	return []badValue{
		{"mode", func(c *connector.Config) { c.Auth.Mode = "open" }, bad("auth.mode")},
		{"no mode", func(c *connector.Config) { c.Auth.Mode = "" }, bad("auth.mode")},
		{"users without file", func(c *connector.Config) { c.Auth.Mode = "users" }, bad("auth.users_file")},
		{"users file in mode none", func(c *connector.Config) { c.Auth.UsersFile = "f" }, bad("auth.users_file")},
		{"users file in mode jwt", func(c *connector.Config) { jwt(c); c.Auth.UsersFile = "f" }, bad("auth.users_file")},
		{"jwt without key", func(c *connector.Config) { c.Auth.Mode = "jwt" }, bad("auth.jwt")},
		{"short secret", func(c *connector.Config) { jwt(c).HMACSecret = "0123456789012345678901234567890" }, bad("auth.jwt.hmac_secret")},
		{"keys in mode none", func(c *connector.Config) {
			jwt(c).JWKS = "f"
			c.Auth.JWT.PublicKeyFiles = []string{"f"}
			c.Auth.Mode = "none"
		}, bad("auth.jwt.hmac_secret", "auth.jwt.public_key_files", "auth.jwt.jwks")},
		{"key files", func(c *connector.Config) { jwt(c).PublicKeyFiles = []string{"a", "", "a"} }, bad("auth.jwt.public_key_files[1]", "auth.jwt.public_key_files[2]")},
		{"JWKS over http", func(c *connector.Config) { jwt(c).JWKS = "http://example.org/keys" }, bad("auth.jwt.jwks")},
		{"JWKS without host", func(c *connector.Config) { jwt(c).JWKS = "https:///keys" }, bad("auth.jwt.jwks")},
		{"JWKS no URL", func(c *connector.Config) { jwt(c).JWKS = "https://%zz" }, bad("auth.jwt.jwks")},
		{"leeway", func(c *connector.Config) { jwt(c).Leeway = -1 }, bad("auth.jwt.leeway")},
		{"lifetime", func(c *connector.Config) { jwt(c).MaxTokenLifetime = -time.Hour }, bad("auth.jwt.max_token_lifetime")},
		{"cookie", func(c *connector.Config) { jwt(c).Cookie = "a b" }, bad("auth.jwt.cookie")},
		{"cookie of another mode", func(c *connector.Config) { c.Auth.JWT.Cookie = "token" }, bad("auth.jwt.cookie")},
		{"cookie for every page", func(c *connector.Config) {
			jwt(c).Cookie = "token"
			c.Listeners.WS.Origins = []string{"*"}
		}, bad("auth.jwt.cookie")},
		{"no claims", func(c *connector.Config) { jwt(c).ClientIDClaims = nil }, bad("auth.jwt.client_id_claims")},
		{"claims", func(c *connector.Config) { jwt(c).ClientIDClaims = []string{"", "sub", "sub"} }, bad("auth.jwt.client_id_claims[0]", "auth.jwt.client_id_claims[2]")},
		{"model without policy", func(c *connector.Config) { c.Authz.Model = "m" }, bad("authz.model")},
	}
}

func natsFaults() []badValue {
	external := func(c *connector.Config) *broker.Config {
		c.NATS.URL = "nats://example.org:4222"
		return &c.NATS
	}
	values := []badValue{
		{"context", func(c *connector.Config) { c.NATS.Context = "a b" }, bad("nats.context")},
		{"credentials for nobody", func(c *connector.Config) {
			n := &c.NATS
			n.Creds, n.NKey, n.User, n.Password, n.Token = "f", "f", "u", "p", "t"
		}, bad("nats.creds", "nats.nkey", "nats.user", "nats.token")},
		{"TLS for nobody", func(c *connector.Config) { c.NATS.TLS.First = true }, bad("nats.tls")},
		{"CA for nobody", func(c *connector.Config) { c.NATS.TLS.CAFile = "f" }, bad("nats.tls")},
		{"two credentials", func(c *connector.Config) { n := external(c); n.Creds, n.Token = "f", "t" }, bad("nats.token")},
		{"all credentials", func(c *connector.Config) {
			n := external(c)
			n.URL = "nats://u:p@example.org"
			n.Creds, n.NKey, n.User, n.Token = "f", "f", "u", "t"
		}, bad("nats.creds", "nats.nkey", "nats.user", "nats.token")},
		{"password without user", func(c *connector.Config) { external(c).Password = "p" }, bad("nats.password")},
		{"client certificate alone", func(c *connector.Config) { external(c).TLS.CertFile = "f" }, bad("nats.tls.key_file")},
		{"client key alone", func(c *connector.Config) { external(c).TLS.KeyFile = "f" }, bad("nats.tls.cert_file")},
		{"domain", func(c *connector.Config) { external(c).Domain = "a.b" }, bad("nats.domain")},
		{"replicas", func(c *connector.Config) { c.NATS.Replicas = "2" }, bad("nats.replicas")},
		{"durability of the embedded", func(c *connector.Config) { c.NATS.Durability = "x" }, bad("nats.durability")},
		{"durability with line end", func(c *connector.Config) { external(c).Durability = "a\nb:c" }, bad("nats.durability")},
		{"durability with backslash", func(c *connector.Config) { external(c).Durability = `a\n` }, bad("nats.durability")},
		{"long durability", func(c *connector.Config) { external(c).Durability = strings.Repeat("x", 65) }, bad("nats.durability")},
		{"publish timeout", func(c *connector.Config) { c.NATS.PublishTimeout = 0 }, bad("nats.publish_timeout")},
		{"no store", func(c *connector.Config) { c.NATS.Embedded.StoreDir = "" }, bad("nats.embedded.store_dir")},
		{"embedded durability", func(c *connector.Config) { c.NATS.Embedded.Durability = "disk" }, bad("nats.embedded.durability")},
		{"embedded listen", func(c *connector.Config) { c.NATS.Embedded.Listen = "4222" }, bad("nats.embedded.listen")},
		{"embedded listen in the open", func(c *connector.Config) { c.NATS.Embedded.Listen = "0.0.0.0:4222" }, bad("nats.embedded.listen")},
		{"embedded users", func(c *connector.Config) {
			c.NATS.Embedded.Users = []string{"a:b", "secret", ":p", "u:", "u u:p", "a:c"}
		}, bad("nats.embedded.users[1]", "nats.embedded.users[2]", "nats.embedded.users[3]", "nats.embedded.users[4]", "nats.embedded.users[5]")},
	}
	for _, list := range []string{
		"nats://a,", "nats://", "http://a", "nats://a:x", "nats://a:0", "nats://a:99999", "nats://a,,nats://b", "nats://a,ws://b", "nats://a b", "a:b:c",
	} {
		values = append(values, badValue{"url " + list, func(c *connector.Config) { c.NATS.URL = list }, bad("nats.url")})
	}
	return values
}

func destinationFaults() []badValue {
	const at = "destinations.bindings[0]"
	binding := func(b connector.Binding) func(c *connector.Config) {
		return func(c *connector.Config) { c.Destinations.Bindings = []connector.Binding{b} }
	}
	return []badValue{
		{"pattern", func(c *connector.Config) { c.Destinations.DefaultPattern = "topic" }, bad("destinations.default_pattern")},
		{"topic prefix", func(c *connector.Config) { c.Destinations.Subjects.Topic = "$x." }, bad("destinations.subjects.topic")},
		{"store prefix", func(c *connector.Config) { c.Destinations.Subjects.Store = "" }, bad("destinations.subjects.store")},
		{"queue prefix", func(c *connector.Config) { c.Destinations.Subjects.Queue = "q" }, bad("destinations.subjects.queue")},
		{"command prefix", func(c *connector.Config) { c.Destinations.Subjects.Command = "a..b." }, bad("destinations.subjects.command")},
		{"query prefix", func(c *connector.Config) { c.Destinations.Subjects.Query = "stomp.store.x." }, bad("destinations.subjects.query")},
		{"all prefixes", func(c *connector.Config) { c.Destinations.Subjects = connector.Subjects{Topic: "*."} }, bad(
			"destinations.subjects.topic", "destinations.subjects.store", "destinations.subjects.queue",
			"destinations.subjects.command", "destinations.subjects.query",
		)},
		{"empty binding", binding(connector.Binding{}), bad(at+".destination", at)},
		{"binding of nothing", binding(connector.Binding{Destination: "/queue/a"}), bad(at)},
		{"binding of a bad destination", binding(connector.Binding{Destination: "/queue/a b", Subject: "a"}), bad(at + ".destination")},
		{"binding of a pattern", binding(connector.Binding{Destination: "/topic/a/*", Subject: "a"}), bad(at + ".destination")},
		{"binding of a reply address", binding(connector.Binding{Destination: "/reply/a", Subject: "a"}), bad(at + ".destination")},
		{"binding to a wildcard", binding(connector.Binding{Destination: "/topic/a", Subject: "a.*"}), bad(at + ".subject")},
		{"binding to an empty token", binding(connector.Binding{Destination: "/topic/a", Subject: "a..b"}), bad(at + ".subject")},
		{"consumer without stream", binding(connector.Binding{Destination: "/queue/a", Subject: "a", Consumer: "c"}), bad(at + ".consumer")},
		{"names", binding(connector.Binding{Destination: "/queue/a", Stream: "a.b", Consumer: "c d"}), bad(at+".stream", at+".consumer")},
		{"topic with a stream", binding(connector.Binding{Destination: "/topic/a", Subject: "a", Stream: "S"}), bad(at + ".stream")},
		{"query with a stream", binding(connector.Binding{Destination: "/query/a", Stream: "S"}), bad(at+".stream", at+".subject")},
		{"store without a stream", binding(connector.Binding{Destination: "/topic-store/a", Subject: "a"}), bad(at + ".stream")},
		{"prefix without a subject", binding(connector.Binding{Destination: "/queue/a/", Stream: "S"}), bad(at + ".subject")},
		{"prefix with a consumer", binding(connector.Binding{Destination: "/queue/a/", Subject: "a", Stream: "S", Consumer: "c"}), bad(at + ".consumer")},
		{"binding to the API", binding(connector.Binding{Destination: "/topic/a/", Subject: "$JS.API"}), bad(at)},
		{"binding into another pattern", binding(connector.Binding{Destination: "/topic/a", Subject: "stomp.queue.a"}), bad(at)},
		{"binding twice by an alias", func(c *connector.Config) {
			c.Destinations.Bindings = []connector.Binding{{Destination: "/queue/a", Stream: "S"}, {Destination: "/queues/a", Stream: "T"}}
		}, bad("destinations.bindings[1]")},
		{"binding twice", func(c *connector.Config) {
			c.Destinations.Bindings = []connector.Binding{{Destination: "/queue/a", Stream: "S"}, {Destination: "/queue/a", Stream: "T"}}
		}, bad("destinations.bindings[1]")},
		{"stored topics", func(c *connector.Config) {
			c.Destinations.StoredTopics = []string{"/topic/a/>", "/topic/>/a", "/queue/a", "", "/topic/a/>"}
		}, bad("destinations.stored_topics[1]", "destinations.stored_topics[2]", "destinations.stored_topics[3]", "destinations.stored_topics[4]")},
	}
}

func limitFaults() []badValue {
	values := []badValue{
		{"connections", func(c *connector.Config) { c.Limits.Connections = -1 }, bad("limits.connections")},
		{"connections per user", func(c *connector.Config) { c.Limits.ConnectionsPerUser = -1 }, bad("limits.connections_per_user")},
		{"connect timeout", func(c *connector.Config) { c.Limits.ConnectTimeout = 0 }, bad("limits.connect_timeout")},
		{"negative heartbeat", func(c *connector.Config) { c.Limits.Heartbeat = -time.Second }, bad("limits.heartbeat")},
		{"heartbeat in microseconds", func(c *connector.Config) { c.Limits.Heartbeat = 1500 * time.Microsecond }, bad("limits.heartbeat")},
		{"subscriptions", func(c *connector.Config) { c.Limits.Subscriptions = -1 }, bad("limits.subscriptions")},
		{"transactions", func(c *connector.Config) { c.Limits.Transactions = -1 }, bad("limits.transactions")},
		{"no transaction frames", func(c *connector.Config) { c.Limits.TransactionFrames = 0 }, bad("limits.transaction_frames")},
		{"transaction frames", func(c *connector.Config) { c.Limits.TransactionFrames = 901 }, bad("limits.transaction_frames")},
		{"transaction bytes", func(c *connector.Config) { c.Limits.TransactionBytes = 0 }, bad("limits.transaction_bytes")},
		{"negative unacked", func(c *connector.Config) { c.Limits.Unacked = -1 }, bad("limits.unacked")},
		{"negative unacked bytes", func(c *connector.Config) { c.Limits.UnackedBytes = -1 }, bad("limits.unacked_bytes")},
		{"both unacked off", func(c *connector.Config) { c.Limits.Unacked, c.Limits.UnackedBytes = 0, 0 }, bad("limits.unacked")},
		{"rpc pending", func(c *connector.Config) { c.Limits.RPCPending = 0 }, bad("limits.rpc_pending")},
		{"queues", func(c *connector.Config) { c.Limits.Queues = -1 }, bad("limits.queues")},
		{"durables", func(c *connector.Config) { c.Limits.Durables = -1 }, bad("limits.durables")},
		{"no destination", func(c *connector.Config) { c.Limits.Destination = 0 }, bad("limits.destination")},
		{"destination", func(c *connector.Config) { c.Limits.Destination = 513 }, bad("limits.destination")},
		{"id", func(c *connector.Config) { c.Limits.ID = 0 }, bad("limits.id")},
		{"headers", func(c *connector.Config) { c.Limits.Headers = 0 }, bad("limits.headers")},
		{"header line", func(c *connector.Config) { c.Limits.HeaderLine = 0 }, bad("limits.header_line")},
		{"passcode", func(c *connector.Config) { c.Limits.Passcode = c.Limits.HeaderLine - 1 }, bad("limits.passcode")},
		{"frame before connect", func(c *connector.Config) { c.Limits.FrameBeforeConnect = c.Limits.Passcode - 1 }, bad("limits.frame_before_connect")},
		{"no body", func(c *connector.Config) { c.Limits.Body = 0 }, bad("limits.body")},
		{"body", func(c *connector.Config) { c.Limits.Body, c.Limits.PendingBytes = 30<<20+1, 64<<20 }, bad("limits.body")},
		{"no pending bytes", func(c *connector.Config) { c.Limits.PendingBytes = 0 }, bad("limits.pending_bytes")},
		{"pending bytes", func(c *connector.Config) { c.Limits.PendingBytes = c.Limits.Body - 1 }, bad("limits.pending_bytes")},
		{"slow consumer", func(c *connector.Config) { c.Limits.SlowConsumer = "wait" }, bad("limits.slow_consumer")},
		{"write stall", func(c *connector.Config) { c.Limits.WriteStall = 0 }, bad("limits.write_stall")},
		{"frames per second", func(c *connector.Config) { c.Limits.FramesPerSecond = -1 }, bad("limits.frames_per_second")},
		{"publish window", func(c *connector.Config) { c.Limits.PublishWindow = 0 }, bad("limits.publish_window")},
		{"memory limit", func(c *connector.Config) { c.MemoryLimit = 1 << 20 }, bad("memory_limit")},
		{"negative memory limit", func(c *connector.Config) { c.MemoryLimit = -1 }, bad("memory_limit")},
		{"rpc timeout", func(c *connector.Config) { c.RPC.Timeout = 0 }, bad("rpc.timeout")},
		{"rpc timeout in microseconds", func(c *connector.Config) { c.RPC.Timeout = 1500 * time.Microsecond }, bad("rpc.timeout")},
		{"remember", func(c *connector.Config) { c.Transactions.Remember = time.Millisecond }, bad("transactions.remember")},
		{"level", func(c *connector.Config) { c.Log.Level = "trace" }, bad("log.level")},
		{"format", func(c *connector.Config) { c.Log.Format = "xml" }, bad("log.format")},
		{"store age", func(c *connector.Config) { c.Store.MaxAge = time.Millisecond }, bad("store.max_age")},
		{"store bytes", func(c *connector.Config) { c.Store.MaxBytes = 1 << 20 }, bad("store.max_bytes")},
	}
	return append(values, queueFaults()...)
}

func queueFaults() []badValue {
	setting := func(s connector.QueueSetting) func(c *connector.Config) {
		return func(c *connector.Config) { c.Queues.Settings = []connector.QueueSetting{s} }
	}
	const at = "queues.settings[0]"
	return []badValue{
		{"ack timeout", func(c *connector.Config) { c.Queues.AckTimeout = 0 }, bad("queues.ack_timeout")},
		{"deliveries", func(c *connector.Config) { c.Queues.MaxDeliveries = 0 }, bad("queues.max_deliveries")},
		{"returns", func(c *connector.Config) { c.Queues.MaxReturns = 0 }, bad("queues.max_returns")},
		{"delay", func(c *connector.Config) { c.Queues.RedeliveryDelay = -1 }, bad("queues.redelivery_delay")},
		{"largest delay", func(c *connector.Config) { c.Queues.RedeliveryDelayMax = time.Millisecond }, bad("queues.redelivery_delay_max")},
		{"prefetch", func(c *connector.Config) { c.Queues.Prefetch = 0 }, bad("queues.prefetch")},
		{"bytes", func(c *connector.Config) { c.Queues.MaxBytes = 1 << 20 }, bad("queues.max_bytes")},
		{"negative bytes", func(c *connector.Config) { c.Queues.MaxBytes = -1 }, bad("queues.max_bytes")},
		{"idle delete", func(c *connector.Config) { c.Queues.IdleDelete = time.Minute }, bad("queues.idle_delete")},
		{"negative idle delete", func(c *connector.Config) { c.Queues.IdleDelete = -1 }, bad("queues.idle_delete")},
		{"delayed bytes", func(c *connector.Config) { c.Queues.DelayedMaxBytes = 1 << 20 }, bad("queues.delayed_max_bytes")},
		{"dedup window", func(c *connector.Config) { c.Queues.DedupWindow = 14 * time.Second }, bad("queues.dedup_window")},
		{"declare", func(c *connector.Config) {
			c.Queues.Declare = []string{"a.b", "/queue/c", "a/b", "", "/topic/a", "/queue/", "a.*", "a.b", "a b"}
		}, bad("queues.declare[2]", "queues.declare[3]", "queues.declare[4]", "queues.declare[5]", "queues.declare[6]", "queues.declare[7]", "queues.declare[8]")},
		{"auto delete", func(c *connector.Config) {
			c.Queues.AutoDelete = []string{"a.*", ">", "*.b", "a*", ">.a", "a.#", "a.**", "/queue/a", "", "a..b"}
		}, bad("queues.auto_delete[3]", "queues.auto_delete[4]", "queues.auto_delete[5]", "queues.auto_delete[6]", "queues.auto_delete[7]", "queues.auto_delete[8]", "queues.auto_delete[9]")},
		{"empty setting", setting(connector.QueueSetting{}), bad(at + ".queue")},
		{"setting for a bad queue", setting(connector.QueueSetting{Queue: "a b"}), bad(at + ".queue")},
		{"exclusive and prioritized", setting(connector.QueueSetting{Queue: "a", Exclusive: true, Prioritized: true}), bad(at + ".prioritized")},
		{"setting of all", setting(connector.QueueSetting{Queue: "a", AckTimeout: -1, MaxDeliveries: -1, MaxBytes: 5, MaxAge: time.Millisecond}), bad(
			at+".ack_timeout", at+".max_deliveries", at+".max_bytes", at+".max_age",
		)},
		{"settings twice", func(c *connector.Config) {
			c.Queues.Settings = []connector.QueueSetting{{Queue: "a"}, {Queue: "b"}, {Queue: "a"}}
		}, bad("queues.settings[2]")},
	}
}

func allFaults() []badValue {
	return slices.Concat(listenerFaults(), authFaults(), natsFaults(), destinationFaults(), limitFaults())
}

func TestValidateFindsEachFault(t *testing.T) {
	for _, b := range allFaults() {
		c := connector.DefaultConfig()
		b.change(&c)
		if got := faultPaths(t, c); !slices.Equal(got, b.want) {
			t.Errorf("%s: got faults of %q, want %q\n%v", b.name, got, b.want, c.Validate())
		}
	}
}

// faultPaths returns the paths of the faults of c and checks that they are complete.
func faultPaths(t *testing.T, c connector.Config) []string {
	t.Helper()
	err := c.Validate()
	var faults connector.Faults
	if err != nil && !errors.As(err, &faults) {
		t.Fatalf("got an error of type %T, want Faults", err)
	}
	var paths []string
	for _, f := range faults {
		if f.Path == "" || f.Reason == "" || strings.ContainsAny(f.Error(), "\n\r") || !strings.HasPrefix(f.Error(), f.Path+": ") {
			t.Errorf("bad fault %#v", f)
		}
		paths = append(paths, f.Path)
	}
	return paths
}

// TestValidateKnowsEachKey makes sure that a new key is either in the table or known to take any value.
func TestValidateKnowsEachKey(t *testing.T) {
	tested := map[string]bool{}
	for _, b := range allFaults() {
		for _, path := range b.want {
			name, _, _ := strings.Cut(path, "[")
			if rest := path[len(name):]; strings.Contains(rest, "].") {
				name += "[]" + rest[strings.Index(rest, "]")+1:]
			}
			tested[name] = true
		}
	}
	free := []string{
		"auth.jwt.issuer", "auth.jwt.audience", "auth.jwt.roles_claim", // Any text.
		"authz.policy", "listeners.tls.client_ca_file", "log.audit", "nats.embedded.config_file", // Any path.
		"nats.tls.ca_file", "nats.url", // Tested with their sections.
	}
	for _, path := range leaves(reflect.TypeFor[connector.Config](), "") {
		if !tested[path] && !slices.Contains(free, path) {
			t.Errorf("%s has no bad value in the table", path)
		}
	}
}

// leaves returns the paths of all keys but the bools, which cannot be wrong.
func leaves(typ reflect.Type, prefix string) []string {
	var paths []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		name := f.Tag.Get("yaml")
		switch {
		case name == "-" || f.Type.Kind() == reflect.Bool:
		case f.Type.Kind() == reflect.Struct:
			paths = append(paths, leaves(f.Type, prefix+name+".")...)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			paths = append(paths, leaves(f.Type.Elem(), prefix+name+"[].")...)
		default:
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

func TestValidateFindsAllFaultsAtOnce(t *testing.T) {
	c := connector.DefaultConfig()
	c.Listeners.TCP.Address = "x"
	c.Auth.Mode = "x"
	c.NATS.Replicas = "x"
	c.Destinations.DefaultPattern = "x"
	c.Destinations.StoredTopics = []string{"/queue/x"}
	c.Limits.Body = -1
	c.Queues.Prefetch = 0
	c.Store.MaxAge = 1
	c.Log.Level = "x"
	want := []string{
		"listeners.tcp.address", "auth.mode", "nats.replicas", "destinations.default_pattern", "destinations.stored_topics[0]",
		"limits.body", "queues.prefetch", "store.max_age", "log.level",
	}
	if got := faultPaths(t, c); !slices.Equal(got, want) {
		t.Errorf("got faults of %q, want %q", got, want)
	}
	if got, want := strings.Count(c.Validate().Error(), "\n"), len(want)-1; got != want {
		t.Errorf("got %d line ends in the error, want %d", got, want)
	}
}

func TestValidateAccepts(t *testing.T) {
	for name, change := range map[string]func(c *connector.Config){
		"off": func(c *connector.Config) {
			c.Listeners = connector.Listeners{TCP: connector.Listener{Address: "off"}}
			c.NATS.Embedded.Listen = ""
		},
		"loopback": func(c *connector.Config) {
			c.Listeners.TCP.Address, c.Listeners.WS.Address, c.Listeners.Admin.Address = "localhost:0", "[::1]:15674", "127.9.9.9:61613"
		},
		"ports of the system's choice": func(c *connector.Config) {
			c.Listeners.TCP.Address, c.Listeners.WS.Address, c.Listeners.Admin.Address = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
			c.NATS.Embedded.Listen = "127.0.0.1:0"
		},
		"the open, on purpose": func(c *connector.Config) {
			c.AllowInsecure = true
			c.Listeners.TCP.Address, c.NATS.Embedded.Listen = ":61613", "0.0.0.0:4222"
		},
		"the open, with users": func(c *connector.Config) {
			c.Auth.Mode, c.Auth.UsersFile = "users", "f"
			c.Listeners.TCP.Address, c.NATS.Embedded.Listen, c.NATS.Embedded.Users = ":61613", ":4222", []string{"a:b:c"}
		},
		"limits off": func(c *connector.Config) {
			l := &c.Limits
			l.Connections, l.Heartbeat, l.Subscriptions, l.Transactions, l.Unacked, l.Queues, l.FramesPerSecond = 0, 0, 0, 0, 0, 0, 0
			c.Queues.MaxBytes, c.Queues.RedeliveryDelay, c.Store.MaxAge, c.Store.MaxBytes = 0, 0, 0, 0
		},
		"external": func(c *connector.Config) {
			c.NATS.URL, c.NATS.User, c.NATS.Password = "nats://a:4222, tls://b,c:1", "u", "p"
			c.NATS.Durability, c.NATS.Domain, c.NATS.Replicas = "nats;r=3", "hub", "3"
			c.NATS.TLS = broker.TLS{CAFile: "a", CertFile: "b", KeyFile: "c", First: true}
			c.NATS.Embedded.StoreDir = ""
		},
		"context with a URL": func(c *connector.Config) { c.NATS.Context, c.NATS.URL = "prod", "ws://a,wss://b:443/nats" },
		"jwt": func(c *connector.Config) {
			c.Auth.Mode = "jwt"
			c.Auth.JWT.PublicKeyFiles, c.Auth.JWT.JWKS = []string{"a", "b"}, "https://example.org/keys"
		},
		"bindings": func(c *connector.Config) {
			c.Destinations.Bindings = []connector.Binding{
				{Destination: "/queue/orders", Stream: "ORDERS", Consumer: "workers"},
				{Destination: "/query/stock/", Subject: "inventory.get"},
			}
			c.Destinations.StoredTopics = []string{"/topic/a/*", "/events/b"}
		},
		"queues": func(c *connector.Config) {
			c.Queues.Declare = []string{"a", "/queue/b/c", "/queues/d", "stomp.x"}
			c.Queues.AutoDelete = []string{"amq.*.x", "tmp.>", ">"}
			c.Queues.Settings = []connector.QueueSetting{{Queue: "a", Exclusive: true, MaxBytes: 1 << 30}, {Queue: ">", MaxAge: time.Hour}}
		},
	} {
		c := connector.DefaultConfig()
		change(&c)
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFaultsShowNoSecrets(t *testing.T) {
	c := connector.DefaultConfig()
	c.Auth.JWT.HMACSecret = canary
	c.NATS.URL = "http://user:" + canary + "@a,nats://user:" + canary + "@b:x"
	c.NATS.Password, c.NATS.Token, c.NATS.Creds = canary, canary, "f"
	c.NATS.Embedded.Users = []string{canary, "a:" + canary, "a:" + canary}
	err := c.Validate()
	if err == nil {
		t.Fatal("got no fault")
	}
	leaks(t, fmt.Sprintf("%v %+v %#v", err, err, err), "the error")
}

func TestFaultText(t *testing.T) {
	for want, f := range map[string]connector.Fault{
		`a.b: "x" is wrong (do y)`: {Path: "a.b", Value: `"x"`, Reason: "is wrong", Hint: "do y"},
		"a: is missing":            {Path: "a", Reason: "is missing"},
	} {
		if got := f.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	c := connector.DefaultConfig()
	c.Auth.Mode = strings.Repeat("\u00e4", 1000)
	if got := len(c.Validate().Error()); got > 250 {
		t.Errorf("a fault of a long value has %d octets", got)
	}
}
