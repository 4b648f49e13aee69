package connector

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/natstomp/natstomp/bridge/broker"
	"github.com/natstomp/natstomp/router"
)

// Config is the whole configuration of a Server. Start from DefaultConfig; New validates it. The yaml tags are the
// keys of DESIGN section 9; fields without one are for host programs only.
type Config struct {
	// AllowInsecure lets listeners without authentication bind addresses other than loopback, and the admin listener take
	// changes from other machines. Default false.
	AllowInsecure bool `yaml:"allow_insecure"`
	// Listeners are the addresses natstomp serves.
	Listeners Listeners `yaml:"listeners"`
	// Auth says who a client is.
	Auth Auth `yaml:"auth"`
	// NATS says which NATS natstomp works on.
	NATS broker.Config `yaml:"nats"`
	// Authz says who may do what.
	Authz Authz `yaml:"authz"`
	// Destinations maps destinations onto subjects.
	Destinations Destinations `yaml:"destinations"`
	// Limits guard memory and time.
	Limits Limits `yaml:"limits"`
	// MemoryLimit is the memory near which publishers are paused and the longest queues to clients closed, at least 64MiB;
	// 0 turns it off. Default 0.
	MemoryLimit Size `yaml:"memory_limit"`
	// Queues configures /queue.
	Queues Queues `yaml:"queues"`
	// Store configures /topic-store.
	Store Store `yaml:"store"`
	// RPC configures /command and /query.
	RPC RPC `yaml:"rpc"`
	// Transactions configures COMMIT.
	Transactions Transactions `yaml:"transactions"`
	// Log configures the process log.
	Log Log `yaml:"log"`

	// Registerer gets the metrics too that Admin serves; from Start to Shutdown. Default nil: Admin alone shows them.
	Registerer prometheus.Registerer `yaml:"-"`
	// Logger receives the log of the server. Default: discard.
	Logger *slog.Logger `yaml:"-"`
	// Audit receives the audit log, each record with stream=audit: who came, what was refused, what an operator did. Default:
	// Logger.
	Audit *slog.Logger `yaml:"-"`
	// Version is what CONNECTED shows as natstomp/<version>. Default "dev".
	Version string `yaml:"-"`
}

// Listeners are the addresses natstomp serves; an empty address or "off" turns a listener off.
type Listeners struct {
	// TCP serves STOMP. Default 127.0.0.1:61613.
	TCP Listener `yaml:"tcp"`
	// TLS serves STOMP over TLS. Default off.
	TLS TLSListener `yaml:"tls"`
	// WS serves STOMP over WebSocket. Default 127.0.0.1:15674.
	WS WSListener `yaml:"ws"`
	// WSS serves STOMP over WebSocket and TLS. Default off.
	WSS WSListener `yaml:"wss"`
	// Admin serves the HTTP endpoints for operators. Default 127.0.0.1:8161.
	Admin Listener `yaml:"admin"`
}

// Listener is a plain TCP listener.
type Listener struct {
	// Address is the host:port to listen on; empty or "off" turns the listener off, port 0 lets the system choose one.
	Address string `yaml:"address"`
	// Optional lets the process go on when this listener cannot start. Default false.
	Optional bool `yaml:"optional"`
}

// TLSListener is a STOMP listener over TLS. Off by default; 61614 by convention.
type TLSListener struct {
	// Address is the host:port to listen on; empty or "off" turns the listener off, port 0 lets the system choose one.
	Address string `yaml:"address"`
	// CertFile is the path of a PEM file with the server's certificate chain.
	CertFile string `yaml:"cert_file"`
	// KeyFile is the path of a PEM file with the key of that certificate.
	KeyFile string `yaml:"key_file"`
	// ClientCAFile is the path of a PEM file with the authorities that sign client certificates; empty asks for none.
	ClientCAFile string `yaml:"client_ca_file"`
	// Optional lets the process go on when this listener cannot start. Default false.
	Optional bool `yaml:"optional"`
}

// WSListener is a STOMP listener over WebSocket, with TLS where it is listeners.wss.
type WSListener struct {
	// Address is the host:port to listen on; empty or "off" turns the listener off, port 0 lets the system choose one.
	Address string `yaml:"address"`
	// Paths are the URL paths at which a WebSocket is accepted. Default /stomp and /ws.
	Paths []string `yaml:"paths"`
	// Origins are the browser origins that may connect, such as https://example.org; * is any. Empty accepts requests
	// without an origin, the listener's own host and, on loopback, any loopback origin.
	Origins []string `yaml:"origins"`
	// CertFile is the path of a PEM file with the server's certificate chain; for listeners.wss only.
	CertFile string `yaml:"cert_file"`
	// KeyFile is the path of a PEM file with the key of that certificate; for listeners.wss only.
	KeyFile string `yaml:"key_file"`
	// Optional lets the process go on when this listener cannot start. Default false.
	Optional bool `yaml:"optional"`
}

// Auth says who a client is.
type Auth struct {
	// Mode is one of none, users and jwt. With none every login and passcode is accepted. Default none.
	Mode string `yaml:"mode"`
	// UsersFile is the path of a file with lines of name:bcrypt hash:role,role, for mode users.
	UsersFile string `yaml:"users_file"`
	// JWT configures mode jwt.
	JWT JWT `yaml:"jwt"`
}

// JWT configures auth.mode jwt.
type JWT struct {
	// HMACSecret is the key of tokens signed with HS256, at least 32 octets; behind HS384: or HS512: that of such tokens.
	HMACSecret Secret `yaml:"hmac_secret"`
	// PublicKeyFiles are the paths of PEM files with public keys or certificates. Each key is good for one algorithm: RS256,
	// ES256, ES384, ES512 or EdDSA by its kind, or another that stands before the path, as in PS256:/etc/natstomp/key.pem.
	PublicKeyFiles []string `yaml:"public_key_files"`
	// JWKS is the path or the https URL of a JSON Web Key Set.
	JWKS string `yaml:"jwks"`
	// Issuer is what the claim iss must be; empty accepts any.
	Issuer string `yaml:"issuer"`
	// Audience is what the claim aud must contain; empty accepts any.
	Audience string `yaml:"audience"`
	// Leeway is how far the clocks of issuer and server may differ. Default 30 s.
	Leeway time.Duration `yaml:"leeway"`
	// MaxTokenLifetime is how far ahead a token may expire; 0 sets no bound. Default 24 h.
	MaxTokenLifetime time.Duration `yaml:"max_token_lifetime"`
	// ClientIDClaims are the claims that may name the client; the first one present does. Default ClientID, client_id, sub.
	ClientIDClaims []string `yaml:"client_id_claims"`
	// RolesClaim is the claim that lists the client's roles, or the path to it, such as realm_access.roles; empty for none.
	// Default roles.
	RolesClaim string `yaml:"roles_claim"`
	// Cookie is the cookie that may hold the token in a WebSocket handshake; empty for none. It needs lists of origins that
	// do not let everybody in.
	Cookie string `yaml:"cookie"`
}

// Authz names the Casbin files. No policy: everything is allowed in auth.mode none, nothing otherwise.
type Authz struct {
	// Model is the path of a Casbin model; empty is the one shipped.
	Model string `yaml:"model"`
	// Policy is the path of a Casbin policy; empty for none.
	Policy string `yaml:"policy"`
	// KV takes the policy from the NATS bucket natstomp_policy. Default false.
	KV bool `yaml:"kv"`
}

// Destinations maps destinations onto subjects (DESIGN section 2).
type Destinations struct {
	// DefaultPattern is what an unknown first segment means: events, queues, store or none, which refuses it. Default events.
	DefaultPattern string `yaml:"default_pattern"`
	// Subjects are the subject prefixes of the patterns.
	Subjects Subjects `yaml:"subjects"`
	// Bindings are entries that map destinations onto existing subjects, streams and durables.
	Bindings []Binding `yaml:"bindings"`
	// StoredTopics are the topics, such as /topic/news/>, that are kept and replayed as those of /topic-store are.
	StoredTopics []string `yaml:"stored_topics"`
}

// Subjects are the subject prefixes of the patterns, each empty or ending with a dot.
type Subjects struct {
	// Topic is the subject prefix of /topic; empty keeps the first tokens of the other prefixes away from topics.
	// Default empty.
	Topic string `yaml:"topic"`
	// Store is the subject prefix of /topic-store. Default "stomp.store.".
	Store string `yaml:"store"`
	// Queue is the subject prefix of /queue. Default "stomp.queue.".
	Queue string `yaml:"queue"`
	// Command is the subject prefix of /command. Default "stomp.command.".
	Command string `yaml:"command"`
	// Query is the subject prefix of /query. Default "stomp.query.".
	Query string `yaml:"query"`
}

// Binding maps a destination, or a prefix of one, onto something that exists on NATS.
type Binding struct {
	// Destination is what STOMP clients write, such as /queue/orders; with a slash at its end it is a prefix, and what
	// follows it is appended to the subject.
	Destination string `yaml:"destination"`
	// Subject is the NATS subject that stands for it.
	Subject string `yaml:"subject"`
	// Stream is the JetStream stream that holds its messages.
	Stream string `yaml:"stream"`
	// Consumer is the durable consumer of that stream that STOMP subscribers share.
	Consumer string `yaml:"consumer"`
}

// Limits guard memory and time (DESIGN section 7). 0 means no limit where the field says so; the others, which bound
// what a client can make natstomp hold, cannot be turned off.
type Limits struct {
	// Connections is how many connections may be open; 0 sets no limit. Default 10,000.
	Connections int `yaml:"connections"`
	// ConnectionsPerUser is how many connections of one identity may be open on a node; without a name they are not counted.
	// 0 sets no limit. Default 0.
	ConnectionsPerUser int `yaml:"connections_per_user"`
	// ConnectTimeout is the time until CONNECT must be complete. Default 10 s.
	ConnectTimeout time.Duration `yaml:"connect_timeout"`
	// Heartbeat is the interval the server offers in both directions, in whole milliseconds; 0 offers none. Default 10 s.
	Heartbeat time.Duration `yaml:"heartbeat"`
	// Subscriptions is how many subscriptions a connection may have; 0 sets no limit. Default 256.
	Subscriptions int `yaml:"subscriptions"`
	// Transactions is how many transactions a connection may have open; 0 sets no limit. Default 16.
	Transactions int `yaml:"transactions"`
	// TransactionFrames is how many frames one transaction holds, from 1 to 900. Default 900.
	TransactionFrames int `yaml:"transaction_frames"`
	// TransactionBytes is how many octets the open transactions of a connection hold together. Default 16 MiB.
	TransactionBytes Size `yaml:"transaction_bytes"`
	// Unacked is how many messages a connection may hold unacknowledged; pulling from queues pauses there. 0 sets no
	// limit, provided that unacked_bytes does. Default 1,000.
	Unacked int `yaml:"unacked"`
	// UnackedBytes is how many octets the bodies of those messages may have; a larger one comes alone. 0 sets no limit,
	// provided that unacked does. Default 16 MiB.
	UnackedBytes Size `yaml:"unacked_bytes"`
	// RPCPending is how many requests of a connection may wait for an answer, and how many requests it may have to
	// answer. Default 1,024.
	RPCPending int `yaml:"rpc_pending"`
	// Queues is how many queues are created by use; 0 sets no limit. Default 1,000.
	Queues int `yaml:"queues"`
	// Durables is how many durable subscriptions the stream of stored topics may have; 0 sets no limit. Default 1,000.
	Durables int `yaml:"durables"`
	// Destination is how many octets a destination may have, from 1 to 512. Default 512.
	Destination int `yaml:"destination"`
	// ID is how many octets ids, receipts and transaction names may have. Default 1,024.
	ID int `yaml:"id"`
	// Headers is how many headers a frame may have. Default 64.
	Headers int `yaml:"headers"`
	// HeaderLine is how many octets one header line may have. Default 8 KiB.
	HeaderLine Size `yaml:"header_line"`
	// Passcode is how many octets the line of the passcode header may have; not less than header_line. Default 16 KiB.
	Passcode Size `yaml:"passcode"`
	// FrameBeforeConnect is how many octets a frame may have before the client is connected; not less than passcode.
	// Default 32 KiB.
	FrameBeforeConnect Size `yaml:"frame_before_connect"`
	// Body is how many octets the body of a SEND may have, up to 30MiB, or less where the NATS server takes less.
	// Default 4 MiB.
	Body Size `yaml:"body"`
	// PendingBytes is how many octets may wait to be written to a connection; not less than body. Default 16 MiB.
	PendingBytes Size `yaml:"pending_bytes"`
	// SlowConsumer says what happens when topic messages exceed pending_bytes: close the connection, or drop the newest
	// message. Default close.
	SlowConsumer string `yaml:"slow_consumer"`
	// WriteStall is how long a socket may accept nothing before it is closed. Default 10 s.
	WriteStall time.Duration `yaml:"write_stall"`
	// FramesPerSecond is how many frames a connection may send per second; 0 sets no limit. Default 0.
	FramesPerSecond int `yaml:"frames_per_second"`
	// PublishWindow is how many frames of a connection may wait for NATS at once; 1 keeps strict order. Default 1,024.
	PublishWindow int `yaml:"publish_window"`
}

// Queues configures /queue (DESIGN section 4.3).
type Queues struct {
	// AckTimeout is how long a live client may hold a message. Default 10 m.
	AckTimeout time.Duration `yaml:"ack_timeout"`
	// MaxDeliveries is the delivery count from which a NACK is final. Default 5.
	MaxDeliveries int `yaml:"max_deliveries"`
	// MaxReturns is the delivery count from which a return without NACK is final. Default 100.
	MaxReturns int `yaml:"max_returns"`
	// RedeliveryDelay is the delay after the first NACK, doubled per delivery; 0 redelivers at once. Default 1 s.
	RedeliveryDelay time.Duration `yaml:"redelivery_delay"`
	// RedeliveryDelayMax bounds that delay. Default 30 s.
	RedeliveryDelayMax time.Duration `yaml:"redelivery_delay_max"`
	// Prefetch is how many messages one subscription takes in advance. Default 64.
	Prefetch int `yaml:"prefetch"`
	// MaxBytes is the size of one queue; a full queue refuses; 0 sets no limit. Default 1 GiB.
	MaxBytes Size `yaml:"max_bytes"`
	// DedupWindow is how long an x-dedup-id is remembered; not less than nats.publish_timeout. Default 2 m.
	DedupWindow time.Duration `yaml:"dedup_window"`
	// Declare lists the queues made at start: destinations such as /queue/orders/eu, or channels such as orders.eu.
	Declare []string `yaml:"declare"`
	// AutoDelete lists queues that vanish with their last consumer: channels in dot form, * and > allowed.
	AutoDelete []string `yaml:"auto_delete"`
	// IdleDelete is after what time a queue is deleted that is empty and not used by anybody; 0 keeps it. Not less than
	// dedup_window; queues of declare are kept. Default 0.
	IdleDelete time.Duration `yaml:"idle_delete"`
	// DelayedMaxBytes is the size of all messages together whose delay has not passed; a SEND above it is refused; 0 sets
	// no limit. Default 1 GiB.
	DelayedMaxBytes Size `yaml:"delayed_max_bytes"`
	// Settings are entries that override the above for the queues that match; the first that matches a queue counts.
	Settings []QueueSetting `yaml:"settings"`
}

// QueueSetting overrides settings of the queues whose channel matches Queue. What is 0 is not overridden.
type QueueSetting struct {
	// Queue is a channel in dot form, * and > allowed.
	Queue string `yaml:"queue"`
	// Exclusive gives the queue to one subscription at a time. Default false.
	Exclusive bool `yaml:"exclusive"`
	// Prioritized serves subscriptions in the order of their priority; not with exclusive. Default false.
	Prioritized bool `yaml:"prioritized"`
	// AckTimeout overrides queues.ack_timeout.
	AckTimeout time.Duration `yaml:"ack_timeout"`
	// MaxDeliveries overrides queues.max_deliveries.
	MaxDeliveries int `yaml:"max_deliveries"`
	// MaxBytes overrides queues.max_bytes.
	MaxBytes Size `yaml:"max_bytes"`
	// MaxAge is how long a message is kept; 0 keeps it until it is consumed.
	MaxAge time.Duration `yaml:"max_age"`
}

// Store configures /topic-store (DESIGN section 4.2).
type Store struct {
	// MaxAge is how long a stored message is kept; 0 keeps it until it is pushed out. Default 168 h.
	MaxAge time.Duration `yaml:"max_age"`
	// MaxBytes is the size of the stream, which drops its oldest messages; 0 sets no limit. Default 10 GiB.
	MaxBytes Size `yaml:"max_bytes"`
}

// RPC configures /command and /query (DESIGN section 4.4).
type RPC struct {
	// Timeout is the longest time a request may wait, in whole milliseconds. Default 30 s.
	Timeout time.Duration `yaml:"timeout"`
	// StompResponders lets STOMP clients answer requests. Default false.
	StompResponders bool `yaml:"stomp_responders"`
}

// Transactions configures COMMIT (DESIGN section 4.6).
type Transactions struct {
	// Remember is how long an x-dedup-id of a COMMIT is remembered; at least 1 s. Default 24 h.
	Remember time.Duration `yaml:"remember"`
}

// Log configures the process log.
type Log struct {
	// Level is one of debug, info, warn and error. Default info.
	Level string `yaml:"level"`
	// Format is one of auto, text and json; auto is text on a terminal. Default auto.
	Format string `yaml:"format"`
	// Audit is the path of a file that the audit log is appended to as JSON lines, whatever the level; empty puts it into
	// the log. SIGHUP opens the file anew. Default empty.
	Audit string `yaml:"audit"`
}

// DefaultConfig returns the defaults of DESIGN sections 7 and 9.
func DefaultConfig() Config {
	subjects := router.DefaultConfig().Subjects
	return Config{
		Listeners: Listeners{
			TCP:   Listener{Address: "127.0.0.1:61613"},
			WS:    WSListener{Address: "127.0.0.1:15674", Paths: []string{"/stomp", "/ws"}},
			WSS:   WSListener{Paths: []string{"/stomp", "/ws"}},
			Admin: Listener{Address: "127.0.0.1:8161"},
		},
		Auth: Auth{Mode: "none", JWT: JWT{
			Leeway:           30 * time.Second,
			MaxTokenLifetime: 24 * time.Hour,
			ClientIDClaims:   []string{"ClientID", "client_id", "sub"},
			RolesClaim:       "roles",
		}},
		NATS: broker.DefaultConfig(),
		Destinations: Destinations{
			DefaultPattern: "events",
			Subjects:       Subjects(subjects),
		},
		Limits: Limits{
			Connections:        10_000,
			ConnectTimeout:     10 * time.Second,
			Heartbeat:          10 * time.Second,
			Subscriptions:      256,
			Transactions:       16,
			TransactionFrames:  900,
			TransactionBytes:   16 << 20,
			Unacked:            1_000,
			UnackedBytes:       16 << 20,
			RPCPending:         1_024,
			Queues:             1_000,
			Durables:           1_000,
			Destination:        512,
			ID:                 1_024,
			Headers:            64,
			HeaderLine:         8 << 10,
			Passcode:           16 << 10,
			FrameBeforeConnect: 32 << 10,
			Body:               4 << 20,
			PendingBytes:       16 << 20,
			SlowConsumer:       "close",
			WriteStall:         10 * time.Second,
			PublishWindow:      1_024,
		},
		Queues: Queues{
			AckTimeout:         10 * time.Minute,
			MaxDeliveries:      5,
			MaxReturns:         100,
			RedeliveryDelay:    time.Second,
			RedeliveryDelayMax: 30 * time.Second,
			Prefetch:           64,
			MaxBytes:           1 << 30,
			DedupWindow:        2 * time.Minute,
			DelayedMaxBytes:    1 << 30,
		},
		Store:        Store{MaxAge: 7 * 24 * time.Hour, MaxBytes: 10 << 30},
		RPC:          RPC{Timeout: 30 * time.Second},
		Transactions: Transactions{Remember: 24 * time.Hour},
		Log:          Log{Level: "info", Format: "auto"},
		Version:      "dev",
	}
}
