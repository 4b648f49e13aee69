// Package admin is the HTTP side of natstomp: probes for now.
package admin

import (
	"fmt"
	"net/http"
)

// Handler serves /livez, which answers 200 as long as the process serves HTTP, and /readyz, which answers 200 when
// ready returns nil and else 503 with the reason. It is safe for concurrent use if ready is.
func Handler(ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, ready()) })
	return mux
}

func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain;charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, "not ready: %s\n", err) // A prober that is gone needs no answer.
		return
	}
	_, _ = fmt.Fprintln(w, "ok") // See above.
}
