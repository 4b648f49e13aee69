package connector

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

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
		errs = append(errs, s.open("tcp", l.TCP, s.accept))
	}
	if on(l.WS.Address) {
		mux := http.NewServeMux()
		for _, path := range l.WS.Paths {
			mux.Handle(path, s.WebSocket())
		}
		errs = append(errs, s.openHTTP("ws", Listener{Address: l.WS.Address, Optional: l.WS.Optional}, mux))
	}
	if on(l.Admin.Address) {
		errs = append(errs, s.openHTTP("admin", l.Admin, admin.WithForget(s.Admin(), s.ForgetQueue)))
	}
	return errors.Join(errs...)
}

func on(address string) bool { return address != "" && address != "off" }

func (s *Server) open(name string, cfg Listener, serve func(net.Listener)) error {
	l, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		err = fmt.Errorf("listeners.%s.address: %w; choose another with --listeners-%s-address", name, err, name)
		if cfg.Optional {
			s.log.Error("optional listener did not start", "listener", name, "err", err)
			return nil
		}
		return err
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, listener{name, l})
	s.mu.Unlock()
	s.wg.Go(func() { serve(l) })
	return nil
}

func (s *Server) openHTTP(name string, cfg Listener, handler http.Handler) error {
	h := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: s.cfg.Limits.ConnectTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHandshake,
	}
	s.mu.Lock()
	s.http = append(s.http, h)
	s.mu.Unlock()
	return s.open(name, cfg, func(l net.Listener) {
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			s.log.Error("listener failed", "listener", name, "err", err)
		}
	})
}

// WebSocket returns a handler that serves STOMP over WebSocket, for the mux of a host program; the listeners ws and wss
// use it too. Which pages may connect says listeners.ws.origins. The handler returns when the handshake is answered;
// the session then belongs to the Server. It answers 503 before Start and after Shutdown has begun.
func (s *Server) WebSocket() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.running() {
			http.Error(w, "server is not running", http.StatusServiceUnavailable)
			return
		}
		nc, err := listen.Upgrade(w, r, s.cfg.Listeners.WS.Origins)
		if err != nil {
			s.log.Info("websocket handshake refused", "remote", r.RemoteAddr, "err", printable(err.Error()))
			return
		}
		s.admit(nc)
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
