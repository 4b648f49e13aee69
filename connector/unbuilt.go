package connector

import "fmt"

// Unbuilt says what c configures that this version does not do yet. Each line of skip names a setting that has no
// effect, for the log; each line of fatal one that must not be ignored, so that a Server with it does not start.
func (c Config) Unbuilt() (skip, fatal []string) {
	for _, l := range []struct{ name, address string }{
		{"tls", c.Listeners.TLS.Address},
		{"wss", c.Listeners.WSS.Address},
	} {
		if !off(l.address) {
			skip = append(skip, fmt.Sprintf("listener %s %s is not built yet and is skipped", l.name, l.address))
		}
	}
	for _, s := range []struct {
		path string
		set  bool
	}{
		{"memory_limit", c.MemoryLimit != 0},
	} {
		if s.set {
			skip = append(skip, s.path+" is not built yet and has no effect")
		}
	}
	for _, f := range []struct {
		set  bool
		text string
	}{
		{c.Auth.Mode == "users" || c.Auth.Mode == "jwt", "auth.mode " + c.Auth.Mode + " is not built yet: only none is, with which everybody is let in"},
		{c.Authz.Policy != "", "authz.policy is not built yet: this version has no rights and would allow everything"},
		{c.Authz.KV, "authz.kv is not built yet: this version has no rights and would allow everything"},
	} {
		if f.set {
			fatal = append(fatal, f.text)
		}
	}
	return skip, fatal
}
