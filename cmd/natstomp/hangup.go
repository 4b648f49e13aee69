package main

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// onHangup calls reload for each SIGHUP until stop is called, which waits for a call that is under way.
func onHangup(reload func() error, log *slog.Logger) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range hangups {
			log.Info("reloading", "signal", syscall.SIGHUP.String())
			if err := reload(); err != nil {
				log.Error("reload refused in part; what was in use before stays", "err", err)
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-ended
	}
}
