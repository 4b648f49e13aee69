package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNotReady says that NATS cannot be used at the moment.
var ErrNotReady = errors.New("NATS is not available")

// Options is what the host of a Broker decides.
type Options struct {
	// Logger receives warnings and errors of the server and of the connections. Required.
	Logger *slog.Logger
	// MaxPayload is the largest message, headers included, in octets. Required.
	MaxPayload int
}

// Broker is a running NATS with natstomp's connections to it. It is safe for concurrent use.
type Broker struct {
	// Data carries publishes and their acknowledgements, and topic subscriptions.
	Data *nats.Conn
	// Control carries pulls, deliveries of queues and their acks.
	Control *nats.Conn
	// Wide carries subscriptions that begin with a wildcard, so that what they see burdens nothing else.
	Wide *nats.Conn
	// JS is the JetStream API on Control.
	JS jetstream.JetStream

	cfg      Config
	log      *slog.Logger
	srv      *server.Server
	lock     *dirLock
	storeDir string
	marksMu  sync.Mutex
	marks    Marks       // guarded by marksMu once started
	login    nats.Option // nil when nobody must log in

	// Of an external NATS only.
	ext     *external
	links   *group
	denials *denials
	joined
}

// Start starts the embedded server and connects to it, or makes the connections to an external NATS. It fails when the
// store directory is in use, the client port is taken, or the embedded server is not ready within 30 seconds; and when
// the settings of an external NATS cannot be used. That an external NATS is down is no failure: see Join.
func Start(ctx context.Context, cfg Config, o Options) (*Broker, error) {
	b := &Broker{cfg: cfg, log: o.Logger}
	if cfg.External() {
		if err := b.startExternal(); err != nil {
			b.shutdown(startTimeout)
			return nil, err
		}
		return b, nil
	}
	err := b.startEmbedded(ctx, o)
	if err == nil {
		err = b.connect()
	}
	if err != nil {
		b.shutdown(startTimeout)
		if b.lock != nil {
			err = errors.Join(err, b.lock.release())
		}
		return nil, err
	}
	return b, nil
}

func (b *Broker) connect() error {
	for r, nc := range map[Role]**nats.Conn{DataRole: &b.Data, ControlRole: &b.Control, WideRole: &b.Wide} {
		var err error
		opts := append(b.commonOptions(r), nats.InProcessServer(gatherers{b.srv}))
		if b.login != nil {
			opts = append(opts, b.login)
		}
		if *nc, err = nats.Connect("", opts...); err != nil {
			return fmt.Errorf("connecting to the embedded NATS (%s): %w", r, err)
		}
	}
	var err error
	b.JS, err = jetstream.New(b.Control)
	return err
}

// commonOptions hold for every connection. nats.go's own buffer for the time of an outage is off: what was not sent is
// reported.
func (b *Broker) commonOptions(r Role) []nats.Option {
	return []nats.Option{
		nats.Name("natstomp-" + r.String()),
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if b.links != nil && isLogin(err) {
				b.links.failed(r, err)
				return
			}
			if b.denials != nil && errors.Is(err, nats.ErrPermissionViolation) && !b.denials.note(r, err) {
				return
			}
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			b.log.Error("nats connection error", "role", r.String(), "subject", subject, "err", err)
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				b.log.Warn("nats disconnected", "role", r.String(), "err", err)
			}
		}),
	}
}

// isLogin says that the server refuses the login.
func isLogin(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) ||
		errors.Is(err, nats.ErrAccountAuthExpired)
}

// Ready returns nil when all connections are up and Join has succeeded, else an error that wraps ErrNotReady.
func (b *Broker) Ready() error {
	if err := b.connected(); err != nil {
		return err
	}
	if b.External() && b.Replicas() == 0 {
		return fmt.Errorf("%w: JetStream was not found yet", ErrNotReady)
	}
	return nil
}

// connected returns nil when all connections are up.
func (b *Broker) connected() error {
	for _, nc := range []*nats.Conn{b.Data, b.Control, b.Wide} {
		if nc.IsConnected() {
			continue
		}
		if b.links != nil {
			if reason := b.links.reason(); reason != nil {
				// Not wrapped: a fault of this link is none of the client's.
				return fmt.Errorf("%w: %s is %s: %s", ErrNotReady, nc.Opts.Name, nc.Status(), reason.Error())
			}
		}
		return fmt.Errorf("%w: %s is %s", ErrNotReady, nc.Opts.Name, nc.Status())
	}
	return nil
}

// External says that the NATS is not embedded.
func (b *Broker) External() bool { return b.ext != nil }

// Durability is what a PubAck means here, as CONNECTED announces it. It is empty until Join has succeeded.
func (b *Broker) Durability() string {
	switch {
	case !b.External():
		return b.cfg.Embedded.Durability
	case b.cfg.Durability != "":
		return b.cfg.Durability
	case b.Replicas() == 0:
		return ""
	}
	return "nats;r=" + strconv.Itoa(b.Replicas())
}

// Storage is where streams keep their messages.
func (b *Broker) Storage() jetstream.StorageType {
	if !b.External() && b.cfg.Embedded.Durability == DurabilityMemory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

// ServerVersion is the version of the NATS server, empty while there is no connection.
func (b *Broker) ServerVersion() string { return b.Data.ConnectedServerVersion() }

// ServerName is the name of the NATS server, empty while there is no connection.
func (b *Broker) ServerName() string { return b.Data.ConnectedServerName() }

// ClusterName is the name of the NATS server's cluster, empty where there is none.
func (b *Broker) ClusterName() string { return b.Data.ConnectedClusterName() }

// Address is the list of URLs of an external NATS, without logins; empty for the embedded one.
func (b *Broker) Address() string {
	if !b.External() {
		return ""
	}
	return b.ext.address()
}

// MaxPayload is the largest message, headers included, in octets that the server takes; 0 until the first connection.
// It may change with a reconnect.
func (b *Broker) MaxPayload() int64 { return b.Data.MaxPayload() }

// Link is the link of that role.
func (b *Broker) Link(r Role) *Link {
	if b.links == nil {
		return new(Link)
	}
	return b.links.members[r].link
}

// OnLink has f called after each time that a link is there again; from any goroutine, and at once. f must not block.
func (b *Broker) OnLink(f func(Role)) {
	if b.links != nil {
		b.links.notify(f)
	}
}

// ClientAddress is host:port for native NATS clients, empty when that port is off.
func (b *Broker) ClientAddress() string {
	if b.External() || b.cfg.Embedded.Listen == "off" || b.srv.Addr() == nil {
		return ""
	}
	return b.srv.Addr().String()
}

// StoreDir is the absolute path of the store; empty for an external NATS.
func (b *Broker) StoreDir() string { return b.storeDir }

// Stop closes the connections, stops the embedded server and saves the marks; Clean in them says whether they are those of
// a clean stop. The caller has ended all use of the connections. It returns when the server is down, or after limit:
// with very many durable subscriptions, or a disk that others keep busy, it takes long to save the position of each. It is
// then left to the end of the process, as is the lock on its store, and the stop counts as unclean.
func (b *Broker) Stop(limit time.Duration, marks Marks) error {
	down := b.shutdown(limit)
	if b.External() {
		return nil
	}
	if !down {
		b.log.Warn("embedded NATS takes long to stop and is left behind; at the next start more messages count as redelivered")
		marks.Clean = false
		return saveMarks(b.storeDir, marks)
	}
	err := saveMarks(b.storeDir, marks)
	return errors.Join(err, b.lock.release())
}

// shutdown reports whether the server is down within limit.
func (b *Broker) shutdown(limit time.Duration) bool {
	for _, nc := range []*nats.Conn{b.Data, b.Control, b.Wide} {
		if nc != nil {
			nc.Close()
		}
	}
	if b.srv == nil {
		return true
	}
	down := make(chan struct{})
	go func() {
		defer close(down)
		b.srv.Shutdown()
		b.srv.WaitForShutdown()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-down:
		return true
	case <-timer.C:
		return false
	}
}

func absolute(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("nats.embedded.store_dir %q: %w", dir, err)
	}
	return path, nil
}
