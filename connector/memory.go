package connector

import (
	"cmp"
	"slices"

	"github.com/natstomp/natstomp/connector/internal/pressure"
)

// worthClosing is the least that must wait to be written to a connection that is closed for memory.
const worthClosing = 64 << 10

// watchMemory begins to hold memory_limit. Publishers of the program itself are not paused: it has their messages.
func (s *Server) watchMemory() {
	if s.memory != nil {
		s.memory.Start()
	}
}

// newMemory returns the guard of memory_limit, nil where there is none.
func (s *Server) newMemory() *pressure.Guard {
	if s.cfg.MemoryLimit == 0 {
		return nil
	}
	return pressure.New(pressure.Config{
		Limit: uint64(s.cfg.MemoryLimit),
		Shed:  s.shed,
		Changed: func(paused bool, used uint64) {
			if paused {
				s.log.Warn("memory.paused", "used", used, "memory_limit", int64(s.cfg.MemoryLimit))
				return
			}
			s.log.Info("memory.resumed", "used", used, "memory_limit", int64(s.cfg.MemoryLimit))
		},
	})
}

// shed closes the connections with the most to be written until that is about octets, and returns how much it was.
func (s *Server) shed(octets uint64) (found uint64) {
	type queued struct {
		c       *conn
		session string
		octets  int
	}
	var all []queued
	s.mu.Lock()
	for c := range s.conns {
		c.mu.Lock()
		if n := c.out.pending(); n >= worthClosing {
			all = append(all, queued{c, c.shown.session, n})
		}
		c.mu.Unlock()
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b queued) int { return cmp.Compare(b.octets, a.octets) })
	for _, q := range all {
		if found >= octets {
			break
		}
		found += uint64(q.octets)
		s.shedding.Add(1)
		q.c.audit.Warn("client.slow", "session", q.session, "reason", "memory_limit", "pending", q.octets)
		q.c.abort()
	}
	return found
}
