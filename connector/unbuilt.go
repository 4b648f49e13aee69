package connector

import "fmt"

// Unbuilt says what c configures that this version does not do yet: a line for each setting that has no effect, for the
// log.
func (c Config) Unbuilt() (skip []string) {
	for _, l := range []struct{ name, address string }{
		{"tls", c.Listeners.TLS.Address},
		{"wss", c.Listeners.WSS.Address},
	} {
		if !off(l.address) {
			skip = append(skip, fmt.Sprintf("listener %s %s is not built yet and is skipped", l.name, l.address))
		}
	}
	return skip
}
