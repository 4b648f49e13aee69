package connector

import (
	"net"
	"net/http"

	"github.com/natstomp/natstomp/connector/internal/admin"
)

// served is the name of the listeners that a host program brought.
const served = "program"

// Serve accepts STOMP connections on a listener of the host program, plain or TLS, until Shutdown, which closes l, or
// until the program closes it. It returns ErrStopped after Shutdown, and at once when the Server does not run; else the
// reason why l ended. limits.connections counts these connections too; allow_insecure does not apply: whom the listener
// lets in is the program's decision.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if !s.running() {
		s.mu.Unlock()
		_ = l.Close() // Nobody else would.
		return ErrStopped
	}
	s.listeners = append(s.listeners, listener{served, l})
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	s.accept(l)
	if s.stopping.Load() {
		return ErrStopped
	}
	return net.ErrClosed
}

// Admin returns the HTTP side for operators, which the listener admin serves: /livez, /readyz, /metrics and
// GET /api/stomp/connections. It asks nobody who he is: mount it where only operators come.
func (s *Server) Admin() http.Handler {
	return admin.Handler(admin.Config{Ready: s.Ready, Metrics: s.metrics.Handler(), Connections: s.adminConnections})
}
