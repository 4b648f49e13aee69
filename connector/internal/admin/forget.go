package admin

import (
	"fmt"
	"net/http"
)

// WithForget serves DELETE /api/v1/queues/gone/{name}, which lets a queue whose stream is gone be made anew, beside what
// next serves. It answers 200, or 404 with the error of forget. A browser asks before it sends a DELETE to another site,
// and gets no permission here.
func WithForget(next http.Handler, forget func(name string) error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("DELETE /api/v1/queues/gone/{name}", func(w http.ResponseWriter, r *http.Request) {
		if err := forget(r.PathValue("name")); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprintln(w, "forgotten") // A caller that is gone needs no answer.
	})
	return mux
}
