package interop_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"testing"
)

// A task is what a frame fetches to know what to do.
type task struct {
	Library  string  `json:"library"`
	Scenario string  `json:"scenario"`
	Address  string  `json:"address"`
	Options  options `json:"options"`
}

// framed is a session of a frame.
type framed struct {
	*session

	task task
	over bool // Guarded by the browser's mu.
}

// An order to the page: add or remove the frame of a session.
type order struct {
	verb string
	ID   string `json:"id"`
	Page string `json:"page,omitempty"`
}

// run gives a task to a new frame.
func (b *browser) run(t *testing.T, label, host string, what task) *session {
	t.Helper()
	b.mu.Lock()
	id := strconv.Itoa(len(b.sessions) + 1)
	f := &framed{
		session: newSession(t, label, func() { b.finish(id, errors.New("killed")) }),
		task:    what,
	}
	b.sessions[id] = f
	b.mu.Unlock()
	if host == "" {
		host, _, _ = net.SplitHostPort(b.address)
	}
	b.orders <- order{"add", id, "http://" + b.origin(host) + "/frame?session=" + id}
	return f.session
}

// origin is host:port of the pages under another name of this host.
func (b *browser) origin(host string) string {
	_, port, _ := net.SplitHostPort(b.address)
	return net.JoinHostPort(host, port)
}

// finish ends a session, once, and takes its frame away.
func (b *browser) finish(id string, err error) {
	b.mu.Lock()
	f := b.sessions[id]
	over := f.over
	f.over = true
	b.mu.Unlock()
	if !over {
		f.end(err)
		b.orders <- order{verb: "remove", ID: id}
	}
}

// pages serves the page that takes orders, the frames, and what they fetch and post.
func (b *browser) pages(modules string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, javascript+"/driver.html")
	})
	mux.HandleFunc("GET /frame", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, javascript+"/frame.html")
	})
	mux.Handle("GET /js/", http.StripPrefix("/js/", http.FileServer(http.Dir(javascript))))
	mux.Handle("GET /modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir(modules+"/node_modules"))))
	mux.HandleFunc("GET /orders", b.serveOrders)
	mux.HandleFunc("GET /sessions/{id}", b.serveTask)
	mux.HandleFunc("POST /sessions/{id}/events", b.takeEvents)
	mux.HandleFunc("POST /sessions/{id}/end", b.takeEnd)
	return mux
}

// serveOrders sends orders as server-sent events.
func (b *browser) serveOrders(w http.ResponseWriter, r *http.Request) {
	select {
	case b.driven <- struct{}{}:
	default:
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	for {
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case o := <-b.orders:
			data, err := json.Marshal(o)
			if err != nil {
				return
			}
			_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", o.verb, data)
		case <-r.Context().Done():
			return
		}
	}
}

// find returns the session of a request, nil if it has none or it is over.
func (b *browser) find(w http.ResponseWriter, r *http.Request) *framed {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.sessions[r.PathValue("id")]
	if f == nil || f.over {
		http.Error(w, "no such session", http.StatusGone)
		return nil
	}
	return f
}

func (b *browser) serveTask(w http.ResponseWriter, r *http.Request) {
	if f := b.find(w, r); f != nil {
		_ = json.NewEncoder(w).Encode(f.task) // The frame may be gone.
	}
}

func (b *browser) takeEvents(w http.ResponseWriter, r *http.Request) {
	f := b.find(w, r)
	if f == nil {
		return
	}
	var posted events
	if err := json.NewDecoder(r.Body).Decode(&posted); err != nil {
		b.finish(r.PathValue("id"), fmt.Errorf("events are not JSON: %w", err))
		return
	}
	for _, e := range posted {
		f.add(e)
	}
}

func (b *browser) takeEnd(w http.ResponseWriter, r *http.Request) {
	if b.find(w, r) == nil {
		return
	}
	var end struct{ Fault string }
	err := json.NewDecoder(r.Body).Decode(&end)
	if err == nil && end.Fault != "" {
		err = errors.New(end.Fault)
	}
	b.finish(r.PathValue("id"), err)
}
