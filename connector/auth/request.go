package auth

import (
	"net/http"
	"strings"
)

// Bearer returns the token of a WebSocket handshake: of the header Authorization where its scheme is Bearer (RFC 6750,
// 2.1), else of the cookie of the given name; no cookie is looked for where the name is empty. It returns "" for none.
func Bearer(r *http.Request, cookie string) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimLeft(token, " ")
	}
	if cookie == "" {
		return ""
	}
	c, err := r.Cookie(cookie)
	if err != nil {
		return ""
	}
	return c.Value
}
