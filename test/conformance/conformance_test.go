package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/natstomp/natstomp/test/conformance"
	"github.com/natstomp/natstomp/test/testserver"
)

var rewrite = flag.Bool("rewrite", false, "write what arrived into the expectations that failed")

func TestMain(m *testing.M) {
	flag.Parse()
	// The scripts wait for the server and for each other's delays far more than they compute.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "24")
	}
	code := m.Run()
	testserver.Clean()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func load(t *testing.T) []*conformance.Script {
	t.Helper()
	scripts, err := conformance.Load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	return scripts
}

// TestConformance runs each script in each of its versions.
func TestConformance(t *testing.T) {
	p := &pool{t: t, servers: map[string]*entry{}}
	t.Cleanup(p.stop)
	for _, s := range load(t) {
		for _, version := range s.Versions {
			t.Run(s.Name+"/"+version, func(t *testing.T) {
				t.Parallel()
				key := strings.Join(s.Flags, " ")
				if s.Alone {
					key += " " + t.Name()
				}
				server, err := p.get(key, s.Flags)
				if err != nil {
					t.Fatal(err)
				}
				env := conformance.Env{Server: server}
				if *rewrite {
					env.Rewrite = func(line int, text string) { replaceLine(t, s.Name, line, text) }
				}
				if err := conformance.Run(env, s, version); err != nil {
					t.Error(err)
				}
				if s.Alone {
					p.end(key)
				}
			})
		}
	}
}

// pool holds the servers, each started when its first script runs.
type pool struct {
	t       *testing.T
	mu      sync.Mutex
	servers map[string]*entry
}

type entry struct {
	once   sync.Once
	server *testserver.Server
	err    error
}

func (p *pool) get(key string, flags []string) (*testserver.Server, error) {
	p.mu.Lock()
	e := p.servers[key]
	if e == nil {
		e = &entry{}
		p.servers[key] = e
	}
	p.mu.Unlock()
	e.once.Do(func() { e.server, e.err = testserver.Launch(p.t.TempDir(), flags...) })
	return e.server, e.err
}

// end stops one server and reports what is wrong with it.
func (p *pool) end(key string) {
	p.mu.Lock()
	e := p.servers[key]
	delete(p.servers, key)
	p.mu.Unlock()
	if e.server == nil || e.err != nil {
		return
	}
	if err := e.server.Stop(); err != nil {
		p.t.Errorf("server with flags %q: %v", key, err)
	}
	if p.t.Failed() {
		p.t.Logf("log of the server with flags %q:\n%s", key, e.server.Log())
	}
}

func (p *pool) stop() {
	for key := range p.servers {
		p.end(key)
	}
}

var files sync.Mutex

func replaceLine(t *testing.T, name string, line int, text string) {
	files.Lock()
	defer files.Unlock()
	file := filepath.Join("testdata", filepath.FromSlash(name)+".txt")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(old), "\n")
	lines[line] = text
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("rewritten %s:%d", file, line+1)
}

// TestScripts asserts what the suite promises about itself.
func TestScripts(t *testing.T) {
	scripts := load(t)
	if got, want := len(scripts), 170; got < want {
		t.Errorf("scripts: got %d, want at least %d", got, want)
	}
	seen := map[string]string{}
	for _, s := range scripts {
		if !strings.Contains(s.Doc, "STOMP 1.") && !strings.Contains(s.Doc, "DESIGN ") {
			t.Errorf("%s: the comment names no clause: %q", s.Name, s.Doc)
		}
		// Names are in ${id}, where only letters and digits count.
		id := strings.NewReplacer("/", "-", ".", "-").Replace(s.Name)
		if other := seen[id]; other != "" {
			t.Errorf("%s and %s have the same ${id}", s.Name, other)
		}
		seen[id] = s.Name
	}
}
