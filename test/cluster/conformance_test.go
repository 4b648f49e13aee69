package cluster_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/conformance"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// groups are the conformance scripts that reach NATS.
var groups = []string{"rpc", "reply", "responder", "temp", "store", "durable", "ack", "nack", "destination", "headers", "native", "queue", "receipt", "return", "subscribe", "topic", "transaction", "unsubscribe"}

// elsewhere are scripts with topics that are not below their ${id}: the rights do not cover those.
var elsewhere = []string{"store/not-prefixes", "topic/prefix-case", "topic/wildcard-first-token", "topic/not-prefixes", "destination/reserved-only-first", "destination/length"}

// TestConformance runs the core of the conformance scripts on an external NATS, where natstomp logs in with the rights
// that docs/external-nats.md lists and no more. Only the topics are those of the scripts.
func TestConformance(t *testing.T) {
	t.Parallel()
	scripts := core(t)
	var topics []string
	for name := range scripts {
		topics = append(topics, strconv.Quote(name), strconv.Quote(name+".>"))
	}
	users := strings.ReplaceAll(documentedUsers(t), `"app.>"`, strings.Join(topics, ", ")+",")
	n := single(t, "max_payload: 8MB\n"+users)
	srv := testserver.Start(t, "--nats-url", "nats://stomp:secret@127.0.0.1:"+strconv.Itoa(n.port), "--queues-max-bytes", "16MiB")
	srv.NATSURL = "nats://admin:secret@127.0.0.1:" + strconv.Itoa(n.port)
	t.Run("scripts", func(t *testing.T) {
		for _, s := range scripts {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				if err := conformance.Run(conformance.Env{Server: srv}, s, s.Versions[len(s.Versions)-1]); err != nil {
					t.Error(err)
				}
			})
		}
	})
	if log := srv.Log(); strings.Contains(strings.ToLower(log), "permissions violation") {
		t.Error("natstomp wants more rights than the documentation gives it")
	}
}

// core are the scripts that need no server of their own, by the ${id} that they run under.
func core(t *testing.T) map[string]*conformance.Script {
	t.Helper()
	all, err := conformance.Load(os.DirFS(filepath.Join("..", "conformance", "testdata")))
	if err != nil {
		t.Fatal(err)
	}
	notToken := regexp.MustCompile(`[^a-z0-9]+`)
	scripts := map[string]*conformance.Script{}
	for _, s := range all {
		group, _, _ := strings.Cut(s.Name, "/")
		if !slices.Contains(groups, group) || s.Alone || len(s.Flags) > 0 || slices.Contains(elsewhere, s.Name) {
			continue
		}
		version := strings.ReplaceAll(s.Versions[len(s.Versions)-1], ".", "")
		scripts[notToken.ReplaceAllString(s.Name, "-")+"-v"+version] = s
	}
	if got, want := len(scripts), 150; got < want {
		t.Errorf("%d scripts, want at least %d", got, want)
	}
	return scripts
}

// TestRights has natstomp log in with the documented rights and clients ask for what those do not cover.
func TestRights(t *testing.T) {
	t.Parallel()
	n := single(t, documentedUsers(t))
	srv := testserver.Start(t, "--nats-url", "nats://stomp:secret@127.0.0.1:"+strconv.Itoa(n.port))
	c := connect(t, srv)
	ask(t, c, subscribe("s", "/topic/app/x"))
	ask(t, c, send("/queue/x", "x"))
	if err := c.Send(send("/topic/app/x", "y")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, c); string(got.Body) != "y" {
		t.Errorf("got %s, want the message", got)
	}
	for _, f := range []stompclient.Frame{
		send("/topic/other/x", "x", "receipt", "r"),
		subscribe("s", "/topic/other/x", "receipt", "r"),
		subscribe("s", "/topic/>", "receipt", "r"),
		subscribe("s", "/topic/other/x", "receipt", "r", "x-group", "g"),
	} {
		c := connect(t, srv)
		if err := c.Send(f); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c); got.Command != "ERROR" || got.Get("message") != "the NATS server does not let natstomp use this destination" {
			t.Errorf("%s: got %s, want the ERROR about rights", f, got)
		}
	}
}

// documentedUsers is the configuration of nats-server that the documentation recommends.
func documentedUsers(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "external-nats.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```\nauthorization {")
	block, _, ended := strings.Cut(block, "\n```")
	if !found || !ended {
		t.Fatal("no authorization block in the documentation")
	}
	return "authorization {" + block
}
