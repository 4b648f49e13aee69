package connector_test

import (
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector"
)

func TestUnbuiltDefaults(t *testing.T) {
	if got := connector.DefaultConfig().Unbuilt(); len(got) > 0 {
		t.Errorf("got %q, want none", got)
	}
}

func TestUnbuilt(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(c *connector.Config)
		want   string // What the one line begins with; empty for none.
	}{
		{"tls", func(c *connector.Config) { c.Listeners.TLS.Address = "127.0.0.1:1" }, "listener tls 127.0.0.1:1 is not built yet"},
		{"wss", func(c *connector.Config) { c.Listeners.WSS.Address = "127.0.0.1:1" }, "listener wss 127.0.0.1:1 is not built yet"},
		{"nothing", func(*connector.Config) {}, ""},
		{"off", func(c *connector.Config) { c.Listeners.TLS.Address = "off" }, ""},
	} {
		c := connector.DefaultConfig()
		c.Listeners.WS.Address = ""
		test.change(&c)
		got := strings.Join(c.Unbuilt(), "\n")
		if !strings.HasPrefix(got, test.want) || (test.want == "") != (got == "") || strings.Contains(got, "\n") {
			t.Errorf("%s: got %q, want one line that begins with %q", test.name, got, test.want)
		}
	}
}
