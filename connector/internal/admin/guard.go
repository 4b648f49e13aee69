package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Guard says who may do what on a listener that asks nobody who he is.
type Guard struct {
	// Host is that of the listener's address; where it is a name, the listener may be asked by it.
	Host string
	// RemoteChanges lets other machines make changes too.
	RemoteChanges bool
}

// What a refused request is told.
const (
	foreignHost   = "this listener is asked by its address or as localhost, not by another name"
	foreignPage   = "pages of other sites may not make changes here"
	foreignRemote = "changes are made from this machine, or with allow_insecure: true also from others"
)

// Handler serves next, the probes to everybody. What else a browser could be made to ask for by a page of somebody else gets
// 403: on a loopback address whatever names another host, which is how such a page looks behind a name of its own that
// leads to this machine (DNS rebinding), and everywhere a change that a page of another site, or of such a name, asks for.
// So does a change that another machine asks for, without RemoteChanges.
func (g Guard) Handler(next http.Handler) http.Handler {
	sites := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := g.fault(sites, r); why != "" {
			header(w, "text/plain;charset=utf-8")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(why + "\n")) // A caller that is gone needs no answer.
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fault is why a request is refused, or nothing.
func (g Guard) fault(sites *http.CrossOriginProtection, r *http.Request) string {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	probe := r.URL.Path == "/livez" || r.URL.Path == "/readyz"
	if !probe && (local == nil || loopback(local.String())) && !g.own(r.Host) {
		return foreignHost
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return ""
	}
	// A page of the same site says so in Origin, and so does one of a name that leads here.
	origin := r.Header.Get("Origin")
	from, err := url.Parse(origin)
	if sites.Check(r) != nil || origin != "" && (err != nil || !g.own(from.Host)) {
		return foreignPage
	}
	if !g.RemoteChanges && !loopback(r.RemoteAddr) {
		return foreignRemote
	}
	return ""
}

// own reports whether a host, with or without a port, can only mean this listener: no name that somebody else may give out.
func (g Guard) own(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || host != "" && host == strings.ToLower(g.Host)
}

// loopback reports whether an address with its port is one of this machine's own.
func loopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}
