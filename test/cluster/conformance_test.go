package cluster_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/natstomp/natstomp/test/conformance"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// groups are the conformance scripts that reach NATS.
var groups = []string{"rpc", "reply", "responder", "temp", "store", "durable", "ack", "nack", "destination", "headers", "native", "queue", "receipt", "return", "subscribe", "topic", "transaction", "unsubscribe", "autodelete", "browse", "dedup", "delay", "expiry", "foreign", "settings", "error", "escape"}

// elsewhere are scripts with topics that are not below their ${id}, since the rights do not cover those, and one that waits
// for half a minute.
var elsewhere = []string{"escape/destination", "store/not-prefixes", "topic/prefix-case", "topic/wildcard-first-token", "settings/exclusive-full", "topic/not-prefixes", "destination/other-subjects", "destination/reserved-only-first", "destination/length", "destination/other-subjects-all", "destination/foreign-both-ways"}

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
	servers := newServers(t, n)
	t.Run("scripts", func(t *testing.T) {
		for _, s := range scripts {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				srv, err := servers.get(s)
				if err == nil {
					err = conformance.Run(conformance.Env{Server: srv}, s, s.Versions[len(s.Versions)-1])
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	})
	servers.stop(t)
}

// servers are the natstomp processes for the scripts: one for each configuration.
type servers struct {
	dir  string
	nats *natsServer

	mu    sync.Mutex
	known map[string]*started // guarded by mu
}

type started struct {
	once sync.Once
	srv  *testserver.Server
	err  error
}

func newServers(t *testing.T, n *natsServer) *servers {
	t.Helper()
	return &servers{dir: testserver.StoreDir(t), nats: n, known: map[string]*started{}}
}

func (ss *servers) get(s *conformance.Script) (*testserver.Server, error) {
	key := strings.Join(append(s.Flags, s.File), " ")
	ss.mu.Lock()
	e := ss.known[key]
	if e == nil {
		e = &started{}
		ss.known[key] = e
	}
	dir := filepath.Join(ss.dir, strconv.Itoa(len(ss.known)))
	ss.mu.Unlock()
	e.once.Do(func() {
		if e.err = os.Mkdir(dir, 0o700); e.err == nil {
			e.err = os.WriteFile(filepath.Join(dir, "natstomp.yaml"), []byte(s.File), 0o600)
		}
		if e.err != nil {
			return
		}
		login := func(name string) string { return "nats://" + name + ":secret@127.0.0.1:" + strconv.Itoa(ss.nats.port) }
		flags := append([]string{"--nats-url", login("stomp"), "--queues-max-bytes", "16MiB"}, s.Flags...)
		if e.srv, e.err = testserver.Launch(dir, flags...); e.err == nil {
			e.srv.NATSURL = login("admin")
		}
	})
	return e.srv, e.err
}

// stop ends the processes. None may have wanted more rights than it has.
func (ss *servers) stop(t *testing.T) {
	t.Helper()
	for key, e := range ss.known {
		if e.srv == nil {
			continue
		}
		if err := e.srv.Stop(); err != nil {
			t.Errorf("natstomp with %q: %v", key, err)
		}
		if log := e.srv.Log(); strings.Contains(strings.ToLower(log), "permissions violation") {
			t.Errorf("natstomp with %q wants more rights than the documentation gives it:\n%s", key, log)
		}
	}
}

// core are the scripts that need no store of their own, by the ${id} that they run under.
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
		if !slices.Contains(groups, group) || s.Alone || slices.Contains(elsewhere, s.Name) {
			continue
		}
		version := strings.ReplaceAll(s.Versions[len(s.Versions)-1], ".", "")
		scripts[notToken.ReplaceAllString(s.Name, "-")+"-v"+version] = s
	}
	if got, want := len(scripts), 250; got < want {
		t.Errorf("%d scripts, want at least %d", got, want)
	}
	return scripts
}

// TestRights has natstomp log in with the documented rights and clients ask for what those do not cover.
func TestRights(t *testing.T) {
	t.Parallel()
	n := single(t, documentedUsers(t))
	srv := testserver.Start(t, "--nats-url", "nats://stomp:secret@127.0.0.1:"+strconv.Itoa(n.port))
	c := rig.Connect(t, srv.TCPAddr)
	c.AskFrame(rig.Subscribe("s", "/topic/app/x"))
	c.AskFrame(rig.Send("/queue/x", "x"))
	c.DoFrame(rig.Send("/topic/app/x", "y"))
	if got := c.Any(); string(got.Body) != "y" {
		t.Errorf("got %s, want the message", got)
	}
	for _, f := range []stompclient.Frame{
		rig.Send("/topic/other/x", "x", "receipt", "r"),
		rig.Subscribe("s", "/topic/other/x", "receipt", "r"),
		rig.Subscribe("s", "/topic/>", "receipt", "r"),
		rig.Subscribe("s", "/topic/other/x", "receipt", "r", "x-group", "g"),
	} {
		c := rig.Connect(t, srv.TCPAddr)
		c.DoFrame(f)
		if got := c.Any(); got.Command != "ERROR" || got.Get("message") != "the NATS server does not let natstomp use this destination" {
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
