package connector_test

import (
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector"
)

func TestUnbuiltDefaults(t *testing.T) {
	skip, fatal := connector.DefaultConfig().Unbuilt()
	if len(skip) > 0 || len(fatal) > 0 {
		t.Errorf("got %q and %q, want none", skip, fatal)
	}
}

func TestUnbuilt(t *testing.T) {
	for _, test := range []struct {
		name        string
		change      func(c *connector.Config)
		skip, fatal string // What the one line begins with; empty for none.
	}{
		{"tls", func(c *connector.Config) { c.Listeners.TLS.Address = "127.0.0.1:1" }, "listener tls 127.0.0.1:1 is not built yet", ""},
		{"wss", func(c *connector.Config) { c.Listeners.WSS.Address = "127.0.0.1:1" }, "listener wss 127.0.0.1:1 is not built yet", ""},
		{"nothing", func(*connector.Config) {}, "", ""},
		{"off", func(c *connector.Config) { c.Listeners.TLS.Address = "off" }, "", ""},
		{"memory limit", func(c *connector.Config) { c.MemoryLimit = 1 << 30 }, "memory_limit is not built yet", ""},
		{"users", func(c *connector.Config) { c.Auth.Mode = "users" }, "", "auth.mode users is not built yet"},
		{"jwt", func(c *connector.Config) { c.Auth.Mode = "jwt" }, "", "auth.mode jwt is not built yet"},
		{"policy", func(c *connector.Config) { c.Authz.Policy = "f" }, "", "authz.policy is not built yet"},
		{"kv", func(c *connector.Config) { c.Authz.KV = true }, "", "authz.kv is not built yet"},
	} {
		c := connector.DefaultConfig()
		c.Listeners.WS.Address = ""
		test.change(&c)
		skip, fatal := c.Unbuilt()
		for _, lines := range []struct {
			kind string
			got  []string
			want string
		}{{"skip", skip, test.skip}, {"fatal", fatal, test.fatal}} {
			got := strings.Join(lines.got, "\n")
			if !strings.HasPrefix(got, lines.want) || (lines.want == "") != (got == "") || strings.Contains(got, "\n") {
				t.Errorf("%s: %s: got %q, want one line that begins with %q", test.name, lines.kind, got, lines.want)
			}
		}
	}
}
