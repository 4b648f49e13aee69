package listen

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// OriginAllowed says whether a browser page may open a WebSocket with this request. Requests without Origin come from no
// browser and are allowed. An empty list allows pages of the host that the request names, and on a loopback listener
// pages of any loopback host and no others: a name that an attacker points at loopback must not pass. Otherwise the list
// names the allowed origins (scheme://host:port), and "*" is any.
func OriginAllowed(r *http.Request, origins []string) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(origins, "*") {
		return true
	}
	if len(origins) > 0 {
		return slices.ContainsFunc(origins, func(o string) bool {
			return strings.EqualFold(strings.TrimSuffix(o, "/"), origin)
		})
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null", for one.
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && loopback(hostOf(local.String())) {
		return loopback(u.Hostname())
	}
	return strings.EqualFold(u.Host, r.Host)
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
