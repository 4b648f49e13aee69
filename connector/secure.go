package connector

import (
	"errors"
	"fmt"
	"net"

	"github.com/natstomp/natstomp/connector/listen"
)

// socket is what a listener of the configuration listens on.
type socket struct {
	name string
	Listener
	files   listen.TLSFiles // none: without TLS
	layered bool            // STOMP goes over TLS or WebSocket
}

func (l TLSListener) socket() socket {
	return socket{
		name:     "tls",
		Listener: Listener{Address: l.Address, Optional: l.Optional},
		files:    listen.TLSFiles{Certificate: l.CertFile, Key: l.KeyFile, ClientCA: l.ClientCAFile},
		layered:  true,
	}
}

func (l WSListener) socket(name string) socket {
	return socket{
		name:     name,
		Listener: Listener{Address: l.Address, Optional: l.Optional},
		files:    listen.TLSFiles{Certificate: l.CertFile, Key: l.KeyFile},
		layered:  true,
	}
}

// bind opens a socket, with TLS where it has a certificate.
func (s *Server) bind(at socket) (net.Listener, error) {
	var secure *listen.TLS
	if at.files.Certificate != "" {
		var err error
		if secure, err = listen.NewTLS(at.files, s.log.With("listener", at.name)); err != nil {
			return nil, fmt.Errorf("listeners.%s: %w", at.name, err)
		}
	}
	l, err := net.Listen("tcp", at.Address)
	if err != nil {
		return nil, fmt.Errorf("listeners.%s.address: %w; choose another with --listeners-%s-address", at.name, err, at.name)
	}
	if at.layered {
		l = listen.Stall(l, s.cfg.Limits.WriteStall)
	}
	if secure == nil {
		return l, nil
	}
	s.mu.Lock()
	s.certificates = append(s.certificates, secure)
	s.mu.Unlock()
	return secure.Listen(l), nil
}

// reloadCertificates reads the certificates again, as the Server does by itself within seconds after a file has changed.
func (s *Server) reloadCertificates() error {
	s.mu.Lock()
	certificates := s.certificates
	s.mu.Unlock()
	var errs []error
	for _, c := range certificates {
		errs = append(errs, c.Reload())
	}
	return errors.Join(errs...)
}
