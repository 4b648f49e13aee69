package admin_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector/internal/admin"
)

// ask is a request as it reaches the listener.
type ask struct {
	name          string
	method, path  string
	local, remote string
	host          string
	headers       string // name:value, separated by blanks
	want          int
}

// TestGuard: what a web page, a name that leads here, or another machine may do.
func TestGuard(t *testing.T) {
	const (
		here, near   = "127.0.0.1:8161", "127.0.0.1:40000"
		open, far    = "10.0.0.5:8161", "10.0.0.9:40000"
		list, probe  = "/api/stomp/connections", "/readyz"
		kick, forget = "/api/v1/connections/c1", "/api/v1/queues/gone/q"
	)
	inner := admin.WithChanges(admin.Handler(admin.Config{
		Ready: func() error { return nil }, Metrics: http.NotFoundHandler(), Connections: func() []admin.Connection { return nil },
	}), admin.Changes{Forget: func(string) error { return nil }, Disconnect: func(string) bool { return true }})
	for _, tt := range []ask{
		{"the command line", "DELETE", kick, here, near, "127.0.0.1:8161", "", 200},
		{"curl", "GET", list, here, near, "localhost:8161", "", 200},
		{"a name of the loopback kind", "GET", list, here, near, "natstomp.localhost", "", 200},
		{"IPv6", "DELETE", forget, "[::1]:8161", "[::1]:4", "[::1]:8161", "", 200},
		{"IPv6 without port", "GET", list, "[::1]:8161", "[::1]:4", "[::1]", "", 200},
		{"its own name", "GET", list, here, near, "Admin.example:8161", "", 200},
		{"a page of this listener", "DELETE", kick, here, near, "localhost:8161", "Origin:http://localhost:8161 Sec-Fetch-Site:same-origin", 200},
		{"the address bar", "GET", list, here, near, "localhost:8161", "Sec-Fetch-Site:none", 200},
		// The attacks.
		{"rebinding reads", "GET", list, here, near, "evil.example:8161", "", 403},
		{"rebinding reads metrics", "GET", "/metrics", here, near, "evil.example:8161", "", 403},
		{"rebinding changes", "DELETE", kick, here, near, "evil.example:8161", "Origin:http://evil.example:8161", 403},
		{"rebinding, by a name like ours", "GET", list, here, near, "localhost.evil.example", "", 403},
		{"rebinding, by a name like an address", "GET", list, here, near, "127.0.0.1.evil.example", "", 403},
		{"rebinding over IPv4 in IPv6", "GET", list, "[::ffff:127.0.0.1]:8161", near, "evil.example", "", 403},
		{"no host", "GET", list, here, near, "", "", 403},
		{"a page of another site", "DELETE", kick, here, near, "localhost:8161", "Origin:https://evil.example", 403},
		{"a page of another site says so", "DELETE", kick, here, near, "localhost:8161", "Sec-Fetch-Site:cross-site", 403},
		{"another port is another site", "DELETE", kick, here, near, "localhost:8161", "Origin:http://localhost:3000", 403},
		{"a sandboxed page", "DELETE", forget, here, near, "localhost:8161", "Origin:null", 403},
		{"a form", "POST", kick, here, near, "localhost:8161", "Origin:https://evil.example Content-Type:text/plain", 403},
		{"no origin at all", "DELETE", kick, here, near, "localhost:8161", "Origin:: Sec-Fetch-Site:same-site", 403},
		// Another address, which has names of its own.
		{"Prometheus", "GET", "/metrics", open, far, "natstomp-1:8161", "", 404}, // It is not served here.
		{"a list from afar", "GET", list, open, far, "natstomp-1:8161", "", 200},
		{"changes from afar", "DELETE", kick, open, far, "natstomp-1:8161", "", 403},
		{"changes from here", "DELETE", kick, open, near, "10.0.0.5:8161", "", 200},
		{"rebinding to the network", "DELETE", kick, open, near, "evil.example:8161", "Origin:http://evil.example:8161", 403},
		// Probes are for everybody.
		{"a probe by any name", "GET", probe, here, near, "node-7.cluster", "", 200},
		{"a probe from afar", "GET", "/livez", open, far, "10.0.0.5:8161", "", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, text := tt.send(admin.Guard{Host: "admin.example"}.Handler(inner)); got != tt.want {
				t.Errorf("got %d %s, want %d", got, text, tt.want)
			}
		})
	}
	remote := admin.Guard{RemoteChanges: true}.Handler(inner)
	for _, tt := range []ask{
		{"an operator's machine", "DELETE", kick, open, far, "natstomp-1:8161", "", 200},
		{"the browser of an operator's machine", "DELETE", kick, open, far, "natstomp-1:8161", "Origin:https://evil.example", 403},
		{"the same behind a name", "DELETE", kick, open, far, "evil.example:8161", "Origin:http://evil.example:8161", 403},
	} {
		if got, text := tt.send(remote); got != tt.want {
			t.Errorf("%s: got %d %s, want %d", tt.name, got, text, tt.want)
		}
	}
}

func (a ask) send(h http.Handler) (status int, text string) {
	r := httptest.NewRequest(a.method, a.path, nil)
	r.Host, r.RemoteAddr = a.host, a.remote
	for pair := range strings.FieldsSeq(a.headers) {
		name, value, _ := strings.Cut(pair, ":")
		r.Header.Set(name, value)
	}
	local, err := net.ResolveTCPAddr("tcp", a.local)
	if err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local))))
	return w.Code, w.Body.String()
}
