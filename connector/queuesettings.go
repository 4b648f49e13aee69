package connector

import (
	"fmt"
	"strings"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/router"
)

// queueSetting is what holds for a queue: the first entry of queues.settings that matches, and what queues says where
// that is 0.
func (q *Queues) queueSetting(channel string) QueueSetting {
	var s QueueSetting
	for _, entry := range q.Settings {
		if router.Match(entry.Queue, channel) {
			s = entry
			break
		}
	}
	if s.AckTimeout == 0 {
		s.AckTimeout = q.AckTimeout
	}
	if s.MaxDeliveries == 0 {
		s.MaxDeliveries = q.MaxDeliveries
	}
	if s.MaxBytes == 0 {
		s.MaxBytes = q.MaxBytes
	}
	return s
}

// queueSettings is what the bridge must know of a queue.
func (s *Server) queueSettings(channel string) bridge.QueueSettings {
	set := s.cfg.Queues.queueSetting(channel)
	b := bridge.QueueSettings{MaxBytes: int64(set.MaxBytes), MaxAge: set.MaxAge, Keep: s.declared[channel]}
	switch {
	case set.Exclusive:
		b.Policy = bridge.Exclusive
	case set.Prioritized:
		b.Policy = bridge.Prioritized
	}
	for _, pattern := range s.cfg.Queues.AutoDelete {
		b.AutoDelete = b.AutoDelete || router.Match(pattern, channel)
	}
	return b
}

// declaredQueues are the channels of queues.declare, each given as a destination or as a channel.
func declaredQueues(r *router.Router, names []string) (map[string]bool, error) {
	declared := make(map[string]bool, len(names))
	for _, name := range names {
		route, err := declaredRoute(r, name)
		if err != nil {
			return nil, err
		}
		declared[route.Channel] = true
	}
	return declared, nil
}

// declaredRoute is the route of an entry of queues.declare.
func declaredRoute(r *router.Router, name string) (router.Route, error) {
	destination := name
	if !strings.HasPrefix(name, "/") {
		destination = "/queue/" + name
	}
	route, err := r.Parse(destination, router.Send)
	if err != nil {
		return route, fmt.Errorf("queues.declare: %w", err)
	}
	if route.Pattern != router.Queues {
		return route, fmt.Errorf("queues.declare: %s is not a queue", name)
	}
	return route, nil
}
