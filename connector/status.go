package connector

// Status is what a Server tells about itself after Start. It holds no secrets.
type Status struct {
	// Listeners are those that are open, in the order of Config.Listeners.
	Listeners []ListenerStatus
	// NATS is the NATS that the server works on.
	NATS NATSStatus
	// Durability is what CONNECTED announces: "fsync", "os" or "memory" for the embedded server, "nats;r=<replicas>" or
	// the operator's text for an external one.
	Durability string
	// AuthMode is auth.mode: "none", "users" or "jwt".
	AuthMode string
	// NotReady says why clients cannot be served yet; empty when they can.
	NotReady string
	// Skipped has one sentence for each setting that is configured but not acted on.
	Skipped []string
}

// ListenerStatus is an open listener.
type ListenerStatus struct {
	// Name is the key below listeners, such as "tcp" or "admin".
	Name string
	// Address is the real address, with the port that the kernel chose where the configuration says 0.
	Address string
}

// NATSStatus is the NATS that a server works on.
type NATSStatus struct {
	// Mode is "embedded" or "external".
	Mode string
	// ServerVersion is the version of the NATS server, such as "2.15.3"; empty while there is no connection to it.
	ServerVersion string
	// ServerName is the name of the NATS server, and Cluster that of its cluster, empty where it is in none.
	ServerName, Cluster string
	// Address is the list of the URLs of an external NATS, without logins; empty for the embedded server.
	Address string
	// Replicas is how many copies new streams have on an external NATS; 0 while that is not known, and for the embedded
	// server.
	Replicas int
	// ClientAddress is where native NATS clients connect to the embedded server; empty when that port is off.
	ClientAddress string
	// StoreDir is the absolute path of the embedded server's store; empty for an external one.
	StoreDir string
}
