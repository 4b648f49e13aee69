package metrics

// Sample is the state of a server at one moment. The keys of its maps are label values: they come from fixed lists.
// Counts only grow from one Sample to the next.
type Sample struct {
	// Connections are those that are open.
	Connections map[Kind]int
	// Accepted counts connections since the start, by transport.
	Accepted map[string]uint64
	// Rejected counts those that were turned away, by reason.
	Rejected map[string]uint64
	// Received and Sent count frames, by command.
	Received, Sent map[string]uint64
	// OctetsReceived and OctetsSent are by transport, as STOMP has them: without TLS and WebSocket framing.
	OctetsReceived, OctetsSent map[string]uint64
	// Deliveries counts messages handed to connections, by pattern.
	Deliveries map[string]uint64
	// Subscriptions are those that are open, by pattern.
	Subscriptions map[string]int
	// PendingReceipts is the frames that wait for their effect on NATS.
	PendingReceipts int
	// PendingOctets wait to be written to sockets.
	PendingOctets int
	// Unacked is the messages that clients hold.
	Unacked int
	// SlowConsumers counts topic messages that a connection had no room for, by what was done: close or drop.
	SlowConsumers map[string]uint64
	// MemoryPaused says that publishers wait for memory.
	MemoryPaused bool
	// Shed counts the connections that were closed for memory.
	Shed uint64
	// Policy is the state of the policy.
	Policy Policy
	// SettingsRefused says that the newest policy or file of auth has a fault, and the one before is in force.
	SettingsRefused bool
	// LateAcks counts ACKs of messages that had gone to somebody else meanwhile.
	LateAcks uint64
	// Expired counts messages of queues whose time was over before they were stored there, or while the server was away.
	Expired uint64
	// DeletedQueues counts the idle and auto-delete queues that this node deleted.
	DeletedQueues uint64
	// DroppedReplies counts answers that reached nobody, by reason.
	DroppedReplies map[string]uint64
	// Pulls counts the requests to JetStream for messages.
	Pulls uint64
	// OutageDrops counts SENDs without receipt, of what is not stored, that were dropped because NATS was away.
	OutageDrops uint64
	// Retries counts how often what is stored was sent to NATS once more.
	Retries uint64
	// GoneStreams is the streams that natstomp knew and NATS has no more.
	GoneStreams int
	// Links are the connections to NATS, by role.
	Links map[string]Link
	// NATSServer is the version of the NATS server, empty while that is not known.
	NATSServer string
}

// Policy is the state of the policy; zero without one.
type Policy struct {
	// Epoch counts the policies that were taken in force, Refused those that were not.
	Epoch, Refused uint64
	// Rules are those in force.
	Rules int
}

// Kind is what connections are told apart by.
type Kind struct {
	// Transport is one of tcp, tls, ws, wss and local.
	Transport string
	// Version is the STOMP version, or none before CONNECTED.
	Version string
}

// Link is a connection to NATS.
type Link struct {
	// Connected says that it is up.
	Connected bool
	// Reconnects counts how often it came back.
	Reconnects uint64
}
