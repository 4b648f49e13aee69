package identity_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/connector"
)

// TestAdminListener: no page in a browser of this machine reads what the admin listener shows, or ends a session through it,
// behind whatever name; the command line does.
func TestAdminListener(t *testing.T) {
	g := start(t, func(c *connector.Config) { withTokens(t, c) })
	c := g.login("passcode", token(t, nil))
	id := g.Connections()[0].ID
	address := g.At("admin")
	ask := func(method, path, host string, headers ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return answer(t, r)
	}
	_, port, _ := strings.Cut(address, ":")
	kick := "/api/v1/connections/" + id
	for _, tt := range []struct {
		name, method, path, host string
		headers                  []string
	}{
		{"rebinding reads", http.MethodGet, "/api/stomp/connections", "evil.example:" + port, nil},
		{"rebinding reads metrics", http.MethodGet, "/metrics", "evil.example:" + port, nil},
		{"rebinding kicks", http.MethodDelete, kick, "evil.example:" + port, []string{"Origin", "http://evil.example:" + port}},
		{"another site kicks", http.MethodDelete, kick, address, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}},
		{"another site forgets a queue", http.MethodDelete, "/api/v1/queues/gone/a", address, []string{"Origin", "null"}},
	} {
		if status, text := ask(tt.method, tt.path, tt.host, tt.headers...); status != http.StatusForbidden {
			t.Errorf("%s: got %d %s", tt.name, status, text)
		}
	}
	c.Alive()
	if status, text := ask(http.MethodGet, "/readyz", "node.example"); status != http.StatusOK {
		t.Errorf("a probe: got %d %s", status, text)
	}
	if status, text := ask(http.MethodDelete, kick, address); status != http.StatusOK {
		t.Errorf("an operator: got %d %s", status, text)
	}
	c.Refused("disconnected by an operator")
	if all := g.lines(adminWarning); len(all) != 0 {
		t.Errorf("got warnings about a listener on loopback: %v", all)
	}
}

const adminWarning = "the admin listener can be reached from other machines and asks nobody who he is: keep it where only operators come"

// TestAdminListenerInTheOpen: it is refused in mode none, as every listener is, and else begins with a warning.
func TestAdminListenerInTheOpen(t *testing.T) {
	open := func(c *connector.Config) { c.Listeners.Admin.Address = "0.0.0.0:0" }
	c := connector.DefaultConfig()
	open(&c)
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "listeners.admin.address") {
		t.Errorf("got %v", err)
	}
	g := start(t, func(c *connector.Config) {
		withTokens(t, c)
		open(c)
	})
	if all := g.lines(adminWarning); len(all) != 1 || all[0]["level"] != "WARN" || all[0]["changes_from_others"] != false {
		t.Errorf("got %v", all)
	}
}

// answer sends a request of HTTP.
func answer(t *testing.T, r *http.Request) (status int, text string) {
	t.Helper()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
