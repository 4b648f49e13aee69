package admin

import (
	"fmt"
	"net/http"
)

// Changes are what an operator may do to a running server. All fields are required and must be safe for concurrent use.
type Changes struct {
	// Forget lets a queue whose stream is gone be made anew.
	Forget func(queue string) error
	// Disconnect ends a session; false if there is none of that ID.
	Disconnect func(id string) bool
}

// WithChanges serves, beside what next serves, DELETE /api/v1/queues/gone/{name} and DELETE /api/v1/connections/{id}. They
// answer 200, or 404 with the reason. A browser asks before it sends a DELETE to another site, and gets no permission
// here.
func WithChanges(next http.Handler, c Changes) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("DELETE /api/v1/queues/gone/{name}", func(w http.ResponseWriter, r *http.Request) {
		if err := c.Forget(r.PathValue("name")); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprintln(w, "forgotten") // A caller that is gone needs no answer.
	})
	mux.HandleFunc("DELETE /api/v1/connections/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !c.Disconnect(r.PathValue("id")) {
			http.Error(w, "there is no such connection on this node", http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprintln(w, "disconnected") // See above.
	})
	return mux
}
