package connector

import "github.com/natstomp/natstomp/connector/frame"

// identityOf is the identity that a CONNECT states: whose durable subscriptions and x-dedup-ids these are. In auth.mode
// none it is the client-id, else the login, else nothing (DESIGN section 4.2).
func identityOf(f *frame.Frame) string {
	for _, name := range []string{"client-id", "login"} {
		if v, ok := f.Lookup(name); ok && len(v) > 0 {
			return string(v)
		}
	}
	return ""
}
