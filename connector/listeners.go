package connector

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/natstomp/natstomp/connector/auth"
	"github.com/natstomp/natstomp/connector/internal/admin"
	"github.com/natstomp/natstomp/connector/listen"
)

// maxHandshake is the octets of a WebSocket handshake's HTTP headers; cookies and tokens are among them.
const maxHandshake = 64 << 10

// listener is an open socket of the configuration.
type listener struct {
	name string
	net.Listener
}

// listen opens all listeners that are configured and built.
func (s *Server) listen() error {
	var errs []error
	l := s.cfg.Listeners
	if on(l.TCP.Address) {
		errs = append(errs, s.open(socket{name: "tcp", Listener: l.TCP}, s.accept))
	}
	if on(l.TLS.Address) {
		errs = append(errs, s.open(l.TLS.socket(), s.accept))
	}
	if on(l.WS.Address) {
		errs = append(errs, s.openHTTP(l.WS.socket("ws"), s.webSockets(l.WS)))
	}
	if on(l.WSS.Address) {
		errs = append(errs, s.openHTTP(l.WSS.socket("wss"), s.webSockets(l.WSS)))
	}
	if on(l.Admin.Address) {
		errs = append(errs, s.openHTTP(socket{name: "admin", Listener: l.Admin}, s.adminListener()))
	}
	return errors.Join(errs...)
}

// adminListener is what the admin listener serves. It asks nobody who he is, so it is guarded against pages of others in
// the browsers of this machine, and where other machines reach it there is a warning.
func (s *Server) adminListener() http.Handler {
	address := s.cfg.Listeners.Admin.Address
	host, _, _ := net.SplitHostPort(address) // It was validated.
	if remote := s.cfg.AllowInsecure; !(endpoint{host: host}).loopback() {
		s.log.Warn("the admin listener can be reached from other machines and asks nobody who he is: keep it where only operators come",
			"address", address, "shows", "connections and metrics", "changes_from_others", remote)
	}
	inner := admin.WithChanges(s.Admin(), admin.Changes{Forget: s.ForgetQueue, Disconnect: s.Disconnect})
	return admin.Guard{Host: host, RemoteChanges: s.cfg.AllowInsecure}.Handler(inner)
}

func on(address string) bool { return address != "" && address != "off" }

func (s *Server) open(at socket, serve func(net.Listener)) error {
	l, err := s.bind(at)
	if err != nil {
		if at.Optional {
			s.log.Error("optional listener did not start", "listener", at.name, "err", err)
			return nil
		}
		return err
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, listener{at.name, l})
	s.mu.Unlock()
	s.wg.Go(func() { serve(l) })
	return nil
}

func (s *Server) openHTTP(at socket, handler http.Handler) error {
	h := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: s.cfg.Limits.ConnectTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHandshake,
		ErrorLog:          slog.NewLogLogger(s.log.With("listener", at.name).Handler(), slog.LevelWarn),
	}
	s.mu.Lock()
	s.http = append(s.http, h)
	s.mu.Unlock()
	return s.open(at, func(l net.Listener) {
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.log.Error("listener failed", "listener", at.name, "err", err)
		}
	})
}

// webSockets serves a listener's paths.
func (s *Server) webSockets(l WSListener) http.Handler {
	mux := http.NewServeMux()
	for _, path := range l.Paths {
		mux.Handle(path, s.webSocket(l.Origins))
	}
	return mux
}

// WebSocket returns a handler that serves STOMP over WebSocket, for the mux of a host program. Which pages may connect
// says listeners.ws.origins. The handler returns when the handshake is answered; the session then belongs to the Server.
// It answers 503 before Start and after Shutdown has begun.
func (s *Server) WebSocket() http.Handler { return s.webSocket(s.cfg.Listeners.WS.Origins) }

func (s *Server) webSocket(origins []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.running() {
			http.Error(w, "server is not running", http.StatusServiceUnavailable)
			return
		}
		nc, err := listen.Upgrade(w, r, origins)
		if err != nil {
			s.log.Info("websocket handshake refused", "remote", r.RemoteAddr, "err", printable(err.Error()))
			return
		}
		s.admit(nc, auth.Bearer(r, s.cfg.Auth.JWT.Cookie))
	})
}

// closeListeners closes those of the given names, and all without names.
func (s *Server) closeListeners(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		if len(names) == 0 || slices.Contains(names, l.name) {
			_ = l.Close() // It is closed either way.
		}
	}
	if len(names) == 0 {
		for _, h := range s.http {
			_ = h.Close() // See above.
		}
	}
}
