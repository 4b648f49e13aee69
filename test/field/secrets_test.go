package field_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestNoSecretIsShown runs the program with secrets in all places that take one, at debug, with a NATS that is away.
func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	const secret = "canary-0123456789abcdef0123456789abcdef"
	for name, text := range map[string]string{
		"url":      "nats: {url: \"nats://natstomp:" + secret + "@127.0.0.1:1\"}\n",
		"password": "nats: {url: \"nats://127.0.0.1:1\", user: natstomp, password: " + secret + "}\n",
		"token":    "nats: {url: \"nats://127.0.0.1:1\", token: " + secret + "}\n",
		"embedded": "nats: {embedded: {users: [\"native:" + secret + "\"]}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "natstomp.yaml")
			if err := os.WriteFile(file, []byte(text+"auth: {mode: jwt, jwt: {hmac_secret: "+secret+"}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			srv := testserver.StartEarly(t, "--config", file, "--log-level", "debug")
			c, err := stompclient.Dial(srv.TCPAddr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if f, err := c.Connect("1.2", "passcode", secret); err == nil {
				t.Errorf("got %s", f)
			}
			shown := map[string]string{"log": srv.Log()}
			for _, command := range [][]string{{"config", "show"}, {"check-config"}} {
				out, err := srv.Command(append(command, "--config", file)...)
				if err != nil {
					t.Errorf("%v: %v\n%s", command, err, out)
				}
				shown[strings.Join(command, " ")] = out
			}
			for _, path := range []string{"/metrics", "/readyz", "/api/stomp/connections"} {
				shown[path] = rig.Fetch(t, "http://"+srv.AdminAddr+path)
			}
			shown["log"] = srv.Log()
			for where, text := range shown {
				if strings.Contains(text, "canary-0123") || strings.Contains(text, secret[len(secret)-12:]) {
					t.Errorf("%s shows the secret:\n%s", where, text)
				}
			}
		})
	}
}
