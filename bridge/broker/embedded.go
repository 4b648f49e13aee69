package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// startTimeout bounds the recovery of the store.
const startTimeout = 30 * time.Second

// unlimited is the JetStream reservation limit: every queue reserves its full size, which is a bound and not a promise
// of space; a full disk shows as an error of the publish.
const unlimited = int64(1) << 62

// maxPending is what the server may hold for one connection before it cuts it.
const maxPending = 1 << 30

func (b *Broker) startEmbedded(ctx context.Context, o Options) error {
	cfg := b.cfg.Embedded
	dir, err := absolute(cfg.StoreDir)
	if err != nil {
		return err
	}
	b.storeDir = dir
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("nats.embedded.store_dir: %w", err)
	}
	if b.lock, err = lockDir(dir); err != nil {
		return err
	}
	if b.marks, err = loadMarks(dir); err != nil {
		return err
	}
	opts, err := embeddedOptions(cfg, dir, o.MaxPayload)
	if err != nil {
		return err
	}
	b.login = ownLogin(opts)
	if b.srv, err = server.NewServer(opts); err != nil {
		return fmt.Errorf("embedded NATS: %w", err)
	}
	logger := &serverLog{log: o.Logger}
	b.srv.SetLoggerV2(logger, false, false, false)
	b.srv.Start()
	return b.awaitReady(ctx, logger)
}

func (b *Broker) awaitReady(ctx context.Context, logger *serverLog) error {
	deadline := time.Now().Add(startTimeout)
	for !b.srv.ReadyForConnections(100 * time.Millisecond) {
		if text := logger.fatal.Load(); text != nil {
			return fmt.Errorf("embedded NATS: %s", *text)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("embedded NATS: not ready within %s", startTimeout)
		}
	}
	if text := logger.fatal.Load(); text != nil {
		return fmt.Errorf("embedded NATS: %s", *text)
	}
	if !b.srv.JetStreamEnabled() {
		return errors.New("embedded NATS: JetStream could not be enabled")
	}
	// With accounts of its own a configuration names those that have JetStream, and cannot name natstomp's.
	if own := b.srv.GlobalAccount(); own != nil && !own.JetStreamEnabled() {
		if err := own.EnableJetStream(nil, nil); err != nil {
			return fmt.Errorf("embedded NATS: JetStream of natstomp's own account: %w", err)
		}
	}
	return nil
}

func embeddedOptions(cfg Embedded, dir string, maxPayload int) (*server.Options, error) {
	opts := &server.Options{}
	if cfg.ConfigFile != "" {
		if err := opts.ProcessConfigFile(cfg.ConfigFile); err != nil {
			return nil, fmt.Errorf("nats.embedded.config_file: %w", err)
		}
		if opts.Cluster.Port != 0 || opts.Cluster.Name != "" || len(opts.Routes) > 0 {
			return nil, errors.New("nats.embedded.config_file: cluster is not for the embedded server, whose store is natstomp's alone: " +
				"run the servers of a cluster beside it, and name them in nats.url")
		}
	}
	if opts.ServerName == "" {
		opts.ServerName = "natstomp"
	}
	opts.NoSigs = true
	opts.NoSystemAccount = false
	opts.JetStream = true
	opts.StoreDir = dir
	opts.JetStreamMaxStore = unlimited
	opts.JetStreamMaxMemory = unlimited
	opts.JetStreamLimits.DefaultMaxConsumers = -1
	opts.MaxPayload = int32(maxPayload)
	// The pulls of all sessions end in one connection; its reader never waits, but a burst of them may be large.
	opts.MaxPending = max(opts.MaxPending, maxPending)
	opts.SyncAlways = cfg.Durability == DurabilityFsync
	if !opts.SyncAlways {
		opts.SyncInterval = time.Second
	}
	if err := setListen(opts, cfg.Listen); err != nil {
		return nil, err
	}
	return opts, addUsers(opts, cfg.Users)
}

func setListen(opts *server.Options, listen string) error {
	if listen == "off" || listen == "" {
		opts.DontListen = true
		return nil
	}
	host, portText, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("nats.embedded.listen %q: %w", listen, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return fmt.Errorf("nats.embedded.listen %q: %w", listen, err)
	}
	// The server only logs a port that is taken, so try it first.
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("nats.embedded.listen: %w; if a NATS server runs there, use it with --nats-url nats://%s, "+
			"or close this port with --nats-embedded-listen off", err, listen)
	}
	if err := l.Close(); err != nil {
		return err
	}
	if port == 0 {
		port = server.RANDOM_PORT // The server's word for it; ours may be taken by now.
	}
	opts.Host, opts.Port = host, port
	return nil
}

// addUsers adds the configured users and, as soon as anybody must log in, one of natstomp's own with a password that
// only this process knows.
func addUsers(opts *server.Options, users []string) error {
	for _, u := range users {
		name, password, ok := strings.Cut(u, ":")
		if !ok || name == "" || password == "" {
			return errors.New("nats.embedded.users: an entry is not name:password")
		}
		opts.Users = append(opts.Users, &server.User{Username: name, Password: password})
	}
	if opts.Username != "" { // The server looks at a single user only where there are no others.
		opts.Users = append(opts.Users, &server.User{Username: opts.Username, Password: opts.Password})
		opts.Username, opts.Password = "", ""
	}
	if len(opts.Users) > 0 || len(opts.Nkeys) > 0 {
		opts.Users = append(opts.Users, &server.User{Username: internalName, Password: rand.Text()})
	}
	return nil
}

// internalName is the login of natstomp's own connections where the embedded server has users.
const internalName = "natstomp-internal"

// ownLogin is how natstomp's own connections log in; nil when nobody must.
func ownLogin(opts *server.Options) nats.Option {
	for _, u := range opts.Users {
		if u.Username == internalName {
			return nats.UserInfo(u.Username, u.Password)
		}
	}
	if opts.Authorization != "" {
		return nats.Token(opts.Authorization)
	}
	return nil
}

// serverLog passes the server's log on. Notices are debug here: natstomp prints its own start block.
type serverLog struct {
	log   *slog.Logger
	fatal atomic.Pointer[string]
}

var _ server.Logger = (*serverLog)(nil)

func (l *serverLog) Noticef(format string, v ...any) { l.write(slog.LevelDebug, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.write(slog.LevelWarn, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.write(slog.LevelError, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.write(slog.LevelDebug, format, v) }
func (l *serverLog) Tracef(string, ...any)           {}

// Fatalf keeps the text for Start; the process goes on until Start has returned it.
func (l *serverLog) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.fatal.CompareAndSwap(nil, &text)
	l.write(slog.LevelError, format, v)
}

func (l *serverLog) write(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "embedded nats", "text", fmt.Sprintf(format, v...))
	}
}
