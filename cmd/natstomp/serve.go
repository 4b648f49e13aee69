package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/natstomp/natstomp/connector"
)

// stopTimeout is how long a clean stop may take.
const stopTimeout = 10 * time.Second

// errForced ends a process that was told a second time to stop.
var errForced = errors.New("stopped at once by a second signal; what was not done is lost")

func newServe(p process) *cobra.Command {
	var named string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve STOMP clients until SIGINT or SIGTERM",
		Long: "serve runs natstomp: without any setting STOMP on 127.0.0.1:61613, with a NATS server of its own that keeps its\n" +
			"messages in ./natstomp-data. Each setting is a key of the configuration file, a variable and a flag; flags win over\n" +
			"variables, and those over the file. Secrets have no flag. SIGINT or SIGTERM stops it cleanly, a second one at once;\n" +
			"SIGHUP reads policy, users, keys and certificates again, which also happens by itself when the files change.",
		Example: "  natstomp serve\n  natstomp serve --config natstomp.yaml\n  natstomp serve --listeners-tcp-address 127.0.0.1:0 --nats-embedded-listen off",
		Args:    atMost(0),
	}
	c.Flags().StringVar(&named, "config", "", configFlagUsage)
	addSettingFlags(c.Flags())
	c.SetUsageFunc(groupedUsage)
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := newLoader(p.environ, c.Flags()).load(named)
		if err != nil {
			return err
		}
		signals := make(chan os.Signal, 2)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
		defer signal.Stop(signals)
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
		return serve(p, config, signals, hangups)
	}
	return c
}

// server is what serve needs of a connector.Server.
type server interface {
	Start(ctx context.Context) error
	Shutdown(ctx context.Context) error
	Reload() error
	Status() connector.Status
}

var _ server = (*connector.Server)(nil)

// serve makes a server and runs it until a signal comes.
func serve(p process, config loaded, signals, hangups <-chan os.Signal) (err error) {
	b := currentBuild()
	log := newLogger(config.config.Log, p.stderr)
	for _, w := range config.warnings {
		log.Warn("configuration", "warning", w)
	}
	audit, err := openAudit(config.config.Log.Audit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, audit.close()) }()
	config.config.Logger, config.config.Audit = log, audit.logger()
	config.config.Version = b.version
	s, err := connector.New(config.config)
	if err != nil {
		return err
	}
	ready := func() {
		if err := writeBlock(p.stdout, b, config, s.Status()); err != nil {
			log.Warn("start block not written", "err", err)
		}
	}
	return runServer(audited{s, audit}, log, ready, signals, hangups)
}

// audited is a server with a file for its audit log.
type audited struct {
	*connector.Server
	file *auditFile
}

// Reload implements server.
func (a audited) Reload() error { return errors.Join(a.file.reopen(), a.Server.Reload()) }

// runServer starts a server, calls ready, reloads it at each of hangups, and stops it at a signal.
func runServer(s server, log *slog.Logger, ready func(), signals, hangups <-chan os.Signal) error {
	switch err := start(s, signals); {
	case errors.Is(err, errStopped):
		return nil
	case err != nil:
		return err
	}
	ready()
	for {
		select {
		case sig := <-signals:
			log.Info("stopping", "signal", sig.String())
			return stop(s, signals)
		case <-hangups:
			reload(s, log)
		}
	}
}

// reload reads policy, users and keys again.
func reload(s server, log *slog.Logger) {
	log.Info("reloading", "signal", syscall.SIGHUP.String())
	if err := s.Reload(); err != nil {
		log.Error("reload refused in part; what was in force before stays", "err", err)
	}
}

// errStopped says that a signal came before the server was ready.
var errStopped = errors.New("stopped before ready")

// start starts the server, or gives up when a signal comes.
func start(s server, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- s.Start(ctx) }()
	select {
	case err := <-started:
		return err
	case <-signals:
		cancel()
	}
	select {
	case err := <-started:
		if err == nil {
			err = stop(s, signals)
		}
		if err == nil || errors.Is(err, context.Canceled) {
			return errStopped
		}
		return err
	case <-signals:
		return errForced
	}
}

// stop stops the server cleanly within stopTimeout, or gives up when a signal comes: the process ends then, and with
// it the goroutine that still waits.
func stop(s server, signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(ctx) }()
	select {
	case err := <-stopped:
		return err
	case <-signals:
		return errForced
	}
}
