package broker

import "time"

// Durability levels of the embedded server (DESIGN section 1): what a PubAck means.
const (
	// DurabilityFsync means that the message is on disk.
	DurabilityFsync = "fsync"
	// DurabilityOS means that it was written to the kernel, which is synced each second.
	DurabilityOS = "os"
	// DurabilityMemory means that it is in memory only.
	DurabilityMemory = "memory"
)

// Config says which NATS natstomp works on. An empty URL means the embedded server.
type Config struct {
	// URL is a list of NATS server URLs separated by commas. Default empty: embedded.
	URL string `yaml:"url"`
	// Context names a context of the nats command line tool. Default empty.
	Context string `yaml:"context"`
	// Creds is the path of a credentials file. Default empty.
	Creds string `yaml:"creds"`
	// NKey is the path of an nkey seed file. Default empty.
	NKey string `yaml:"nkey"`
	// User is the name to log in by. Default empty.
	User string `yaml:"user"`
	// Password is the password that goes with User. Default empty.
	Password string `yaml:"password" secret:"true"`
	// Token logs in by token. Default empty.
	Token string `yaml:"token" secret:"true"`
	// TLS is the transport security towards an external NATS.
	TLS TLS `yaml:"tls"`
	// Domain is the JetStream domain. Default empty.
	Domain string `yaml:"domain"`
	// Replicas is how many copies the streams have that natstomp makes on an external NATS: auto, 1, 3 or 5. Default auto.
	Replicas string `yaml:"replicas"`
	// Durability is what CONNECTED announces for an external NATS. Default empty: nats;r=<replicas>.
	Durability string `yaml:"durability"`
	// PublishTimeout is how long a stored SEND may wait for its PubAck. Default 15 s.
	PublishTimeout time.Duration `yaml:"publish_timeout"`
	// Embedded configures the in-process server.
	Embedded Embedded `yaml:"embedded"`
}

// TLS names the files that secure the link to an external NATS. All default to empty.
type TLS struct {
	// CAFile is the path of a PEM file with the authorities to trust; empty trusts those of the system.
	CAFile string `yaml:"ca_file"`
	// CertFile is the path of a PEM file with the client certificate.
	CertFile string `yaml:"cert_file"`
	// KeyFile is the path of a PEM file with the key of that certificate.
	KeyFile string `yaml:"key_file"`
	// First starts TLS before the server's INFO. Default false.
	First bool `yaml:"first"`
}

// Embedded configures the in-process nats-server.
type Embedded struct {
	// StoreDir is the JetStream directory. Default ./natstomp-data.
	StoreDir string `yaml:"store_dir"`
	// Listen is the host:port for native NATS clients, or "off". Default 127.0.0.1:4222.
	Listen string `yaml:"listen"`
	// Users are the "name:password" entries that protect that port. Default none.
	Users []string `yaml:"users" secret:"true"`
	// Durability is one of fsync, os and memory: where a stored message is when its RECEIPT goes out. Default fsync.
	Durability string `yaml:"durability"`
	// ConfigFile is the path of a nats-server configuration for anything else. Default empty.
	ConfigFile string `yaml:"config_file"`
}

// DefaultConfig returns the configuration of DESIGN sections 8 and 9: embedded, on disk, client port on loopback.
func DefaultConfig() Config {
	return Config{
		Replicas:       "auto",
		PublishTimeout: 15 * time.Second,
		Embedded: Embedded{
			StoreDir:   "./natstomp-data",
			Listen:     "127.0.0.1:4222",
			Durability: DurabilityFsync,
		},
	}
}
