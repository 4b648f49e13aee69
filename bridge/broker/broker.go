package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// stopTimeout bounds the stop of the embedded server.
const stopTimeout = 5 * time.Second

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
	marks    Marks
	login    nats.Option // nil when nobody must log in
}

// Start starts the embedded server and connects to it. It fails when the store directory is in use, the client port is
// taken, or the server is not ready within 30 seconds.
func Start(ctx context.Context, cfg Config, o Options) (*Broker, error) {
	b := &Broker{cfg: cfg, log: o.Logger}
	err := b.startEmbedded(ctx, o)
	if err == nil {
		err = b.connect()
	}
	if err != nil {
		b.shutdown()
		if b.lock != nil {
			err = errors.Join(err, b.lock.release())
		}
		return nil, err
	}
	return b, nil
}

func (b *Broker) connect() error {
	var err error
	for _, c := range []struct {
		conn **nats.Conn
		role string
	}{{&b.Data, "data"}, {&b.Control, "control"}, {&b.Wide, "wide"}} {
		if *c.conn, err = nats.Connect("", b.options(c.role)...); err != nil {
			return fmt.Errorf("connecting to the embedded NATS (%s): %w", c.role, err)
		}
	}
	b.JS, err = jetstream.New(b.Control)
	return err
}

func (b *Broker) options(role string) []nats.Option {
	opts := []nats.Option{
		nats.Name("natstomp-" + role),
		nats.InProcessServer(gatherers{b.srv}),
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1), // No hidden buffer: what was not sent is reported.
		nats.CustomReconnectDelay(func(int) time.Duration {
			return 250*time.Millisecond + rand.N(250*time.Millisecond) //nolint:gosec // jitter, not a secret
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			b.log.Error("nats connection error", "role", role, "subject", subject, "err", err)
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				b.log.Warn("nats disconnected", "role", role, "err", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { b.log.Info("nats reconnected", "role", role) }),
	}
	if b.login != nil {
		opts = append(opts, b.login)
	}
	return opts
}

// Ready returns nil when all connections are up, else an error that wraps ErrNotReady.
func (b *Broker) Ready() error {
	for _, nc := range []*nats.Conn{b.Data, b.Control, b.Wide} {
		if !nc.IsConnected() {
			return fmt.Errorf("%w: %s is %s", ErrNotReady, nc.Opts.Name, nc.Status())
		}
	}
	return nil
}

// Durability is what a PubAck means here, as CONNECTED announces it.
func (b *Broker) Durability() string { return b.cfg.Embedded.Durability }

// Storage is where streams keep their messages.
func (b *Broker) Storage() jetstream.StorageType {
	if b.cfg.Embedded.Durability == DurabilityMemory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

// ServerVersion is the version of the NATS server.
func (b *Broker) ServerVersion() string { return b.Data.ConnectedServerVersion() }

// ClientAddress is host:port for native NATS clients, empty when that port is off.
func (b *Broker) ClientAddress() string {
	if b.cfg.Embedded.Listen == "off" || b.srv.Addr() == nil {
		return ""
	}
	return b.srv.Addr().String()
}

// StoreDir is the absolute path of the store.
func (b *Broker) StoreDir() string { return b.storeDir }

// Stop closes the connections, stops the server and saves the marks; Clean in them says whether they are those of a
// clean stop. The caller has ended all use of the connections. It returns when the server is down, or after 5 seconds:
// with very many durable subscriptions it takes longer to save the position of each. It is then left to the end of the
// process, as is the lock on its store, and the stop counts as unclean.
func (b *Broker) Stop(marks Marks) error {
	if !b.shutdown() {
		b.log.Warn("embedded NATS takes long to stop and is left behind; at the next start more messages count as redelivered")
		marks.Clean = false
		return saveMarks(b.storeDir, marks)
	}
	err := saveMarks(b.storeDir, marks)
	return errors.Join(err, b.lock.release())
}

// shutdown reports whether the server is down.
func (b *Broker) shutdown() bool {
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
	limit := time.NewTimer(stopTimeout)
	defer limit.Stop()
	select {
	case <-down:
		return true
	case <-limit.C:
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
