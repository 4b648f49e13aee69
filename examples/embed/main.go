// Command embed is an HTTP application whose mux serves STOMP over WebSocket; docs/embedding.md explains it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/natstomp/natstomp/connector"
)

func main() {
	web := flag.String("http", "127.0.0.1:8080", "`address` of the application")
	tcp := flag.String("stomp", "127.0.0.1:61613", "`address` for STOMP over TCP")
	store := flag.String("store", "./natstomp-data", "`directory` for stored messages")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *web, *tcp, *store); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, web, tcp, store string) (err error) {
	config := connector.DefaultConfig()
	config.Listeners.TCP.Address = tcp
	config.Listeners.WS.Address, config.Listeners.Admin.Address = "off", "off" // The mux below serves both.
	config.NATS.Embedded.StoreDir, config.NATS.Embedded.Listen = store, "off"
	stomp, err := connector.New(config)
	if err != nil {
		return err
	}
	if err := stomp.Start(ctx); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = errors.Join(err, stomp.Shutdown(ctx))
	}()
	// The application is one more consumer of the queue: nil acknowledges, an error brings the message again.
	_, err = stomp.Subscribe(ctx, "/queue/orders", nil, func(ctx context.Context, m connector.Message) error {
		return stomp.Publish(ctx, "/topic/orders", nil, append([]byte("accepted: "), m.Body...))
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/stomp", stomp.WebSocket())
	mux.Handle("/ops/", http.StripPrefix("/ops", stomp.Admin()))
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		order, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil { // Returns when the order is stored.
			err = stomp.Publish(r.Context(), "/queue/orders", map[string]string{"via": "http"}, order)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	l, err := net.Listen("tcp", web)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s stomp://%s\n", l.Addr(), stomp.Status().Listeners[0].Address)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err = server.Serve(l); errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
