package metrics

import "github.com/prometheus/client_golang/prometheus"

// collector turns a Sample into metrics.
type collector struct {
	cfg       Config
	goVersion string
}

var _ prometheus.Collector = (*collector)(nil)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

var (
	connections     = desc("connections", "Open connections of clients, by transport and STOMP version.", "transport", "version")
	accepted        = desc("connections_total", "Connections accepted, by transport.", "transport")
	rejected        = desc("connections_rejected_total", "Connections turned away, by reason.", "reason")
	framesReceived  = desc("frames_received_total", "Frames of clients, by command.", "command")
	framesSent      = desc("frames_sent_total", "Frames written to clients, by command.", "command")
	octetsReceived  = desc("received_bytes_total", "Octets of STOMP read from clients, by transport.", "transport")
	octetsSent      = desc("sent_bytes_total", "Octets of STOMP written to clients, by transport.", "transport")
	deliveries      = desc("deliveries_total", "Messages handed to connections, by pattern.", "pattern")
	subscriptions   = desc("subscriptions", "Open subscriptions, by pattern.", "pattern")
	receiptsPending = desc("pending_receipts", "Frames that wait for their effect on NATS.")
	octetsPending   = desc("pending_bytes", "Octets that wait to be written to clients.")
	unacked         = desc("unacked_messages", "Messages that clients hold without having acknowledged them.")
	slowConsumers   = desc("slow_consumers_total", "Topic messages for which a connection had no room, by what was done.", "action")
	memoryPaused    = desc("memory_alarm", "1 while publishers wait because memory is near memory_limit.")
	shed            = desc("memory_closed_total", "Connections that were closed with much to be written because memory was near memory_limit.")
	policyEpoch     = desc("policy_epoch", "Policies that were taken in force since the start.")
	policyRules     = desc("policy_rules", "Rules of the policy in force.")
	policyReloads   = desc("policy_reloads_total", "Policies that were read, by result.", "result")
	settingsRefused = desc("settings_refused", "1 while the newest policy or file of auth is not in force, because it has a fault.")
	lateAcks        = desc("late_acks_total", "ACKs of messages that had gone to somebody else meanwhile.")
	expired         = desc("expired_messages_total", "Messages of queues whose time was over when they were sent, when their delay was, or while natstomp was away.")
	queuesDeleted   = desc("deleted_queues_total", "Idle and auto-delete queues that this node deleted.")
	droppedReplies  = desc("dropped_replies_total", "Answers that reached nobody, by reason.", "reason")
	pulls           = desc("pulls_total", "Requests to JetStream for messages.")
	outageDrops     = desc("outage_drops_total", "SENDs to topics without receipt that were dropped because NATS was away.")
	retries         = desc("publish_retries_total", "How often stored messages were sent to NATS once more.")
	goneStreams     = desc("gone_streams", "Streams that were known and that NATS has no more.")
	natsConnected   = desc("nats_connected", "1 while the connection to NATS is up, by role.", "role")
	natsReconnects  = desc("nats_reconnects_total", "How often the connection to NATS came back, by role.", "role")
	buildInfo       = desc("build_info", "1, with the versions.", "version", "go", "nats_server")
)

var all = []*prometheus.Desc{
	connections, accepted, rejected, framesReceived, framesSent, octetsReceived, octetsSent, deliveries, subscriptions,
	receiptsPending, octetsPending, unacked, slowConsumers, memoryPaused, shed, policyEpoch, policyRules, policyReloads,
	settingsRefused, lateAcks, expired, queuesDeleted, droppedReplies, pulls, outageDrops, retries, goneStreams,
	natsConnected, natsReconnects, buildInfo,
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range all {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.cfg.Sample()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	counters := func(d *prometheus.Desc, values map[string]uint64) {
		for label, n := range values {
			counter(d, n, label)
		}
	}
	for kind, n := range s.Connections {
		gauge(connections, float64(n), kind.Transport, kind.Version)
	}
	counters(accepted, s.Accepted)
	counters(rejected, s.Rejected)
	counters(framesReceived, s.Received)
	counters(framesSent, s.Sent)
	counters(octetsReceived, s.OctetsReceived)
	counters(octetsSent, s.OctetsSent)
	counters(deliveries, s.Deliveries)
	for pattern, n := range s.Subscriptions {
		gauge(subscriptions, float64(n), pattern)
	}
	gauge(receiptsPending, float64(s.PendingReceipts))
	gauge(octetsPending, float64(s.PendingOctets))
	gauge(unacked, float64(s.Unacked))
	counters(slowConsumers, s.SlowConsumers)
	gauge(memoryPaused, number(s.MemoryPaused))
	counter(shed, s.Shed)
	gauge(policyEpoch, float64(s.Policy.Epoch))
	gauge(policyRules, float64(s.Policy.Rules))
	counter(policyReloads, s.Policy.Epoch, "taken")
	counter(policyReloads, s.Policy.Refused, "refused")
	gauge(settingsRefused, number(s.SettingsRefused))
	counter(lateAcks, s.LateAcks)
	counter(expired, s.Expired)
	counter(queuesDeleted, s.DeletedQueues)
	counters(droppedReplies, s.DroppedReplies)
	counter(pulls, s.Pulls)
	counter(outageDrops, s.OutageDrops)
	counter(retries, s.Retries)
	gauge(goneStreams, float64(s.GoneStreams))
	for role, link := range s.Links {
		gauge(natsConnected, number(link.Connected), role)
		counter(natsReconnects, link.Reconnects, role)
	}
	gauge(buildInfo, 1, c.cfg.Version, c.goVersion, s.NATSServer)
}

// number is a truth as a gauge has it.
func number(truth bool) float64 {
	if truth {
		return 1
	}
	return 0
}
