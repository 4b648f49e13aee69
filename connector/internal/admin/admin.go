// Package admin is the HTTP side of natstomp: probes, metrics and what is connected. It knows nobody: whoever reaches it
// may read all of it, so it shows no secret, and changes nothing except through WithForget.
package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Config is what the handler shows. All fields are required and must be safe for concurrent use.
type Config struct {
	// Ready returns nil when clients can be served, else why not.
	Ready func() error
	// Metrics answers scrapes.
	Metrics http.Handler
	// Connections returns the open sessions.
	Connections func() []Connection
}

// Handler serves /livez, which answers 200 as long as the process serves HTTP, /readyz, which answers 200 when Ready
// returns nil and else 503 with the reason, /metrics, and GET /api/stomp/connections. It is safe for concurrent use.
func Handler(c Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.Ready()) })
	mux.Handle("GET /metrics", c.Metrics)
	mux.HandleFunc("GET /api/stomp/connections", func(w http.ResponseWriter, _ *http.Request) { list(w, c.Connections()) })
	return mux
}

func header(w http.ResponseWriter, contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}

func answer(w http.ResponseWriter, err error) {
	header(w, "text/plain;charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, "not ready: %s\n", err) // A prober that is gone needs no answer.
		return
	}
	_, _ = fmt.Fprintln(w, "ok") // See above.
}

// list answers in the envelope of KubeMQ, whose tools read error, data.connections and data.total.
func list(w http.ResponseWriter, connections []Connection) {
	header(w, "application/json")
	_ = json.NewEncoder(w).Encode(struct { // See above.
		Error       bool   `json:"error"`
		ErrorString string `json:"error_string"`
		Data        struct {
			Connections []Connection `json:"connections"`
			Total       int          `json:"total"`
		} `json:"data"`
	}{Data: struct {
		Connections []Connection `json:"connections"`
		Total       int          `json:"total"`
	}{connections, len(connections)}})
}
