package connector

import (
	"errors"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/bridge/broker"
	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/connector/internal/metrics"
	"github.com/natstomp/natstomp/router"
)

// rejection is why a socket got no session.
type rejection uint8

const (
	rejectedLimit    rejection = iota // told so at the handshake
	rejectedFlood                     // too many of those already: closed at once
	rejectedStopping                  // closed at once
	rejections
)

var rejectionNames = [rejections]string{"connection_limit", "connection_flood", "stopping"}

// reasons are what ERROR frames are counted by.
var reasons = []string{
	"syntax", "limit", "destination", "request", "authentication", "denied", "expired", "kicked", "connection_limit", "slow_consumer", "queue_full", "queue_limit",
	"stream_gone", "publish_timeout", "too_large", "nats_unavailable", "stopping", "internal",
}

// loginCodes are what refused logins are counted by.
var loginCodes = []string{
	auth.CodePasscode, auth.CodeNoToken, auth.CodeMalformed, auth.CodeKey, auth.CodeSignature, auth.CodeExpired, auth.CodeEarly,
	auth.CodeClaims, auth.CodeIdentity, auth.CodeUnavailable,
}

// reasonOf is the one of reasons that a fault counts as.
func reasonOf(err error) string {
	for _, known := range []struct {
		err    error
		reason string
	}{
		{errConnectionLimit, "connection_limit"},
		{errSlowConsumer, "slow_consumer"},
		{errQueueFull, "queue_full"},
		{errShutdown, "stopping"},
		{bridge.ErrQueueFull, "queue_full"},
		{bridge.ErrQueueLimit, "queue_limit"},
		{bridge.ErrNoStream, "stream_gone"},
		{bridge.ErrTimeout, "publish_timeout"},
		{bridge.ErrTooLarge, "too_large"},
		{broker.ErrNotReady, "nats_unavailable"},
		{router.ErrDestination, "destination"},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	var (
		client *ClientError
		syntax *frame.SyntaxError
		limit  *frame.LimitError
	)
	switch {
	case errors.As(err, &client) && client.reason != "":
		return client.reason
	case errors.As(err, &syntax):
		return "syntax"
	case errors.As(err, &limit):
		return "limit"
	}
	if bridge.Away(err) {
		return "nats_unavailable"
	}
	if _, known := clientError(err); known {
		return "request"
	}
	return "internal"
}

// newMetrics makes the metrics of a server.
func (s *Server) newMetrics() *metrics.Metrics {
	return metrics.New(metrics.Config{
		Version:    s.cfg.Version,
		Sample:     s.sample,
		Reasons:    reasons,
		Logins:     loginCodes,
		Patterns:   []string{router.Queues.String(), router.Store.String()},
		Registerer: s.cfg.Registerer,
	})
}

// sample sums up the server for a scrape.
func (s *Server) sample() metrics.Sample {
	m := metrics.Sample{
		Connections:   make(map[metrics.Kind]int),
		Accepted:      make(map[string]uint64),
		Rejected:      make(map[string]uint64),
		Subscriptions: make(map[string]int),
		SlowConsumers: map[string]uint64{"close": 0, "drop": 0},
		LateAcks:      s.lateAcks.Load(),
		MemoryPaused:  s.memory.Paused(),
		Shed:          s.shedding.Load(),
		DroppedReplies: map[string]uint64{
			"late": 0, "no_address": 0, "unsubscribed": s.lostReplies.Load(), "after_deadline": s.lateAnswers.Load(),
		},
		Links: make(map[string]metrics.Link),
	}
	m.SlowConsumers[s.cfg.Limits.SlowConsumer] = s.slowDrops.Load()
	for via := range transports {
		for _, version := range []string{noVersion, frame.V10.String(), frame.V11.String(), frame.V12.String()} {
			m.Connections[metrics.Kind{Transport: via.String(), Version: version}] = 0
		}
	}
	for p := 1; p < patterns; p++ {
		m.Subscriptions[router.Pattern(p).String()] = 0
	}
	s.mu.Lock()
	sums := s.past
	for c := range s.conns {
		c.sample(&m)
		sums.add(&c.traffic, c.via)
	}
	for via, n := range s.accepted {
		m.Accepted[transport(via).String()] = n
	}
	s.mu.Unlock()
	for reason := range s.turnedAway {
		m.Rejected[rejectionNames[reason]] = s.turnedAway[reason].Load()
	}
	if s.rights != nil {
		st := s.rights.Status()
		m.Policy = metrics.Policy{Epoch: st.Epoch, Refused: st.Refused, Rules: st.Rules}
	}
	m.SettingsRefused = s.settingsFault() != nil
	sums.into(&m)
	if s.live.Load() {
		stats := s.bridge.Stats()
		m.Pulls, m.Expired, m.DeletedQueues = stats.Pulls, stats.Expired, stats.DeletedQueues
		m.OutageDrops, m.Retries, m.GoneStreams = stats.Drops, stats.Retries, stats.GoneStreams
		m.DroppedReplies["late"], m.DroppedReplies["no_address"] = stats.LateReplies, stats.Undeliverable
		m.NATSServer = s.broker.ServerVersion()
		for _, l := range s.broker.Links() {
			m.Links[l.Role] = metrics.Link{Connected: l.Connected, Reconnects: l.Reconnects}
		}
	}
	return m
}

// noVersion is the version of a connection that has had no CONNECTED.
const noVersion = "none"

// sample adds a connection to m.
func (c *conn) sample(m *metrics.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := metrics.Kind{Transport: c.via.String(), Version: noVersion}
	if !c.shown.connectedAt.IsZero() {
		kind.Version = c.version.String()
	}
	m.Connections[kind]++
	for _, s := range c.subs {
		m.Subscriptions[s.route.Pattern.String()]++
	}
	m.PendingReceipts += c.receipts.open()
	m.PendingOctets += c.out.pending()
	m.Unacked += c.unacked
}

// into gives the sums their names.
func (s *sums) into(m *metrics.Sample) {
	m.Received, m.Sent = make(map[string]uint64), make(map[string]uint64)
	for c := range frame.Command(commands) {
		if c < frame.Connected {
			m.Received[c.String()] = s.received[c]
		} else {
			m.Sent[c.String()] = s.sent[c]
		}
	}
	m.Deliveries = make(map[string]uint64)
	for p := 1; p < patterns; p++ {
		m.Deliveries[router.Pattern(p).String()] = s.delivered[p]
	}
	m.OctetsReceived, m.OctetsSent = make(map[string]uint64), make(map[string]uint64)
	for via := range transports {
		m.OctetsReceived[via.String()], m.OctetsSent[via.String()] = s.octetsIn[via], s.octetsOut[via]
	}
}
