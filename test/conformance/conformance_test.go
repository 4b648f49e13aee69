package conformance_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/natstomp/natstomp/test/conformance"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

var rewrite = flag.Bool("rewrite", false, "write what arrived into the expectations that failed")

func TestMain(m *testing.M) {
	flag.Parse()
	// The scripts wait for the server and for each other's delays far more than they compute.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "24")
	}
	rig.Main(m, nil)
}

func load(t *testing.T) []*conformance.Script {
	t.Helper()
	scripts, err := conformance.Load(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	return scripts
}

// TestConformance runs each script in each of its versions over TCP and over WebSocket.
func TestConformance(t *testing.T) {
	// The directory must outlive the servers, so it comes first.
	p := &pool{t: t, dir: testserver.StoreDir(t), servers: map[string]*entry{}}
	t.Cleanup(p.stop)
	for _, s := range load(t) {
		for _, version := range s.Versions {
			t.Run(s.Name+"/"+version, func(t *testing.T) {
				t.Parallel()
				runScript(t, p, s, version, conformance.Env{})
			})
			if s.TCPOnly {
				continue
			}
			t.Run(s.Name+"/"+version+"/ws", func(t *testing.T) {
				t.Parallel()
				runScript(t, p, s, version, conformance.Env{WebSocket: true, Unique: "ws"})
			})
		}
	}
}

func runScript(t *testing.T, p *pool, s *conformance.Script, version string, env conformance.Env) {
	key := strings.Join(append(s.Flags, s.File), " ")
	if s.Alone {
		key += " " + t.Name()
	}
	server, err := p.get(key, s.File, s.Flags)
	if err != nil {
		t.Fatal(err)
	}
	if s.Alone {
		defer p.end(t, key)
	}
	env.Server = server
	if *rewrite {
		env.Rewrite = func(line int, text string) { replaceLine(t, s.Name, line, text) }
	}
	if err := conformance.Run(env, s, version); err != nil {
		t.Error(err)
	}
}

// pool holds the servers, each started when its first script runs.
type pool struct {
	t   *testing.T
	dir string

	mu      sync.Mutex
	servers map[string]*entry
}

type entry struct {
	dir    string
	once   sync.Once
	server *testserver.Server
	err    error
}

func (p *pool) get(key, file string, flags []string) (*testserver.Server, error) {
	p.mu.Lock()
	e := p.servers[key]
	if e == nil {
		e = &entry{dir: filepath.Join(p.dir, strconv.Itoa(len(p.servers)))}
		p.servers[key] = e
	}
	p.mu.Unlock()
	e.once.Do(func() {
		e.err = os.Mkdir(e.dir, 0o755)
		if e.err == nil && file != "" {
			// The directory that the program runs in: it finds the file there.
			e.err = os.WriteFile(filepath.Join(e.dir, "natstomp.yaml"), []byte(file), 0o600)
		}
		if e.err == nil {
			e.server, e.err = testserver.Launch(e.dir, flags...)
		}
	})
	return e.server, e.err
}

// end stops one server for the test t and reports what is wrong with it.
func (p *pool) end(t *testing.T, key string) {
	t.Helper()
	p.mu.Lock()
	e := p.servers[key]
	p.mu.Unlock()
	if e.err != nil {
		return
	}
	lines := 60
	if err := e.server.Stop(); err != nil {
		t.Errorf("server %s: %v", key, err)
		lines = 3_000 // With its goroutines.
	}
	if t.Failed() {
		t.Logf("end of the log of server %s:\n%s", key, e.server.LogTail(lines))
	}
}

// stop stops those that still run.
func (p *pool) stop() {
	for key := range p.servers {
		p.end(p.t, key)
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
	if got, want := len(scripts), 390; got < want {
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
