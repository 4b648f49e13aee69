package test

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module   = "github.com/natstomp/natstomp"
	maxLines = 500
)

// arrows lists what each package of ours may import of ours. A package that is not listed may import nothing of ours.
// A name ending in "/..." stands for every package below it.
var arrows = map[string][]string{
	"cmd/natstomp": {"connector", "connector/auth", "authz", "policies", "bridge/broker", "connector/frame", "connector/listen"},
	"connector":    {"bridge", "bridge/broker", "router", "authz", "connector/frame", "connector/auth", "connector/listen", "connector/internal/..."},
	"bridge":       {"router", "connector/frame"},
}

// homes lists the packages in which each third-party library may be used. A library that is not listed has none yet:
// give it one here and in .golangci.yml when it comes in.
var homes = map[string][]string{
	"github.com/nats-io/nats.go":                              {"bridge", "bridge/broker"},
	"github.com/nats-io/nats-server/v2":                       {"bridge/broker"},
	"github.com/nats-io/nkeys":                                {"bridge/broker"},
	"github.com/synadia-io/orbit.go/natscontext":              {"bridge/broker"},
	"golang.org/x/sys":                                        {"bridge/broker"},
	"github.com/casbin/casbin/v2":                             {"authz"},
	"github.com/fsnotify/fsnotify":                            {"authz", "connector/listen"},
	"github.com/golang-jwt/jwt/v5":                            {"connector/auth"},
	"github.com/MicahParks/keyfunc/v3":                        {"connector/auth"},
	"golang.org/x/crypto":                                     {"connector/auth"},
	"github.com/coder/websocket":                              {"connector/listen"},
	"github.com/prometheus/client_golang":                     {"connector/internal/metrics", "connector/internal/admin"},
	"github.com/prometheus/client_golang/prometheus":          {"connector", "connector/internal/metrics", "connector/internal/admin"},
	"github.com/prometheus/client_golang/prometheus/promhttp": {"connector/internal/metrics", "connector/internal/admin"},
	"github.com/spf13/cobra":                                  {"cmd/natstomp"},
	"github.com/spf13/pflag":                                  {"cmd/natstomp"},
	"github.com/knadh/koanf":                                  {"cmd/natstomp"},
	"go.yaml.in/yaml/v3":                                      {"cmd/natstomp"},
}

// TestArchitecture holds every Go file of the module to the layout: imports of ours along the arrows, third-party
// libraries at home, files of a readable length. All files count, whatever their build constraints.
func TestArchitecture(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if mod, err := os.ReadFile(filepath.Join(root, "go.mod")); err != nil || !bytes.HasPrefix(mod, []byte("module "+module+"\n")) {
		t.Fatalf("go.mod of %s: got %v, want the module %s", root, err, module)
	}
	files := 0
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != root && skipped(entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		files++
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		checkFile(t, name, filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Errorf("got %d Go files, want the whole module", files)
	}
}

// skipped reports whether the go command, or we, keep no packages under a directory of this name.
func skipped(dir string) bool {
	return dir[0] == '.' || dir[0] == '_' || dir == "testdata" || dir == "vendor" || dir == "node_modules"
}

// checkFile reports the faults of the file at name, which is called rel within the module.
func checkFile(t *testing.T, name, rel string) {
	t.Helper()
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkLength(rel, source); err != nil {
		t.Error(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), rel, source, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%s: %v", rel, err)
		return
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: %v", rel, err)
		}
		if err := checkImport(rel, imported); err != nil {
			t.Errorf("%s: %v", rel, err)
		}
	}
}

func checkLength(rel string, source []byte) error {
	if lines := bytes.Count(source, []byte("\n")); lines > maxLines {
		return fmt.Errorf("%s: got %d lines, want at most %d", rel, lines, maxLines)
	}
	return nil
}

// checkImport reports whether the file called rel within the module may not import a package. Tests, and what stands
// under test and examples, may import any library and any public package of ours.
func checkImport(rel, imported string) error {
	from := path.Dir(rel)
	free := strings.HasSuffix(rel, "_test.go") || within(from, "test") || within(from, "examples")
	if imported == "C" {
		return errors.New("cgo is not used")
	}
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		hidden := slices.Contains(strings.Split(ours, "/"), "internal")
		if free && (!hidden || within(from, "connector")) {
			return nil
		}
		if slices.ContainsFunc(arrows[from], func(to string) bool { return covers(to, ours) }) {
			return nil
		}
		return fmt.Errorf("%s may not import %s of ours", from, ours)
	}
	if free || standard(imported) {
		return nil
	}
	library := libraryOf(imported)
	if library == "" {
		return fmt.Errorf("%s has no home, %s imports it", imported, from)
	}
	if !slices.Contains(homes[library], from) {
		return fmt.Errorf("%s is at home in %v, not in %s", library, homes[library], from)
	}
	return nil
}

// within reports whether the package is dir or lies below it.
func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

func covers(pattern, pkg string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(pkg, dir+"/")
	}
	return pattern == pkg
}

// standard reports whether an import path is the standard library's: its first element holds no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// libraryOf returns the longest entry of homes that an import path lies within.
func libraryOf(imported string) string {
	longest := ""
	for library := range homes {
		if within(imported, library) && len(library) > len(longest) {
			longest = library
		}
	}
	return longest
}

// TestRules shows that the rules refuse what they are there to refuse.
func TestRules(t *testing.T) {
	for _, tt := range []struct {
		file, imported string
		allowed        bool
	}{
		{"bridge/topic.go", module + "/router", true},
		{"bridge/topic.go", module + "/connector/frame", true},
		{"bridge/topic.go", module + "/connector", false},
		{"bridge/topic.go", module + "/bridge/broker", false},
		{"bridge/topic_test.go", module + "/bridge/broker", true},
		{"connector/conn.go", module + "/connector/internal/metrics", true},
		{"connector/conn.go", module + "/policies", false},
		{"connector/internal/metrics/a.go", module + "/connector", false},
		{"connector/auth/jwt.go", module + "/authz", false},
		{"connector/frame/decode.go", module + "/router", false},
		{"router/parse.go", module + "/connector/frame", false},
		{"cmd/natstomp/main.go", module + "/connector", true},
		{"cmd/natstomp/main.go", module + "/router", false},
		{"cmd/natstomp/main.go", module + "/connector/internal/admin", false},
		{"util/a.go", module + "/router", false},
		{"connector/conn.go", module + "/util", false},
		{"test/stompclient/client.go", module + "/connector/frame", true},
		{"test/soak/a_test.go", module + "/connector/internal/metrics", false},
		{"examples/hello/main.go", module + "/connector", true},

		{"router/parse.go", "strings", true},
		{"router/parse.go", "golang.org/x/text/unicode/norm", false},
		{"connector/frame/decode.go", "github.com/nats-io/nats.go", false},
		{"bridge/queue.go", "github.com/nats-io/nats.go/jetstream", true},
		{"bridge/queue.go", "github.com/nats-io/nats-server/v2/server", false},
		{"bridge/broker/embedded.go", "github.com/nats-io/nats-server/v2/server", true},
		{"connector/conn.go", "github.com/nats-io/nats.go", false},
		{"connector/config.go", "github.com/prometheus/client_golang/prometheus", true},
		{"connector/config.go", "github.com/prometheus/client_golang/prometheus/promhttp", false},
		{"connector/config.go", "github.com/prometheus/client_golang/api", false},
		{"bridge/queue.go", "github.com/prometheus/client_golang/prometheus", false},
		{"cmd/natstomp/file.go", "github.com/knadh/koanf/v2", true},
		{"cmd/natstomp/file.go", "github.com/knadh/koanfother", false},
		{"authz/policy.go", "go.yaml.in/yaml/v3", false},
		{"connector/conn.go", "github.com/go-stomp/stomp/v3", false},
		{"connector/conn_test.go", "github.com/go-stomp/stomp/v3", true},
		{"test/interop/run.go", "github.com/go-stomp/stomp/v3", true},
		{"bridge/broker/sync.go", "C", false},
	} {
		if err := checkImport(tt.file, tt.imported); (err == nil) != tt.allowed {
			t.Errorf("%s imports %s: got %v, want allowed %v", tt.file, tt.imported, err, tt.allowed)
		}
	}
	long := bytes.Repeat([]byte("\n"), maxLines)
	if err := checkLength("a/a.go", long); err != nil {
		t.Errorf("%d lines: got %v, want no error", maxLines, err)
	}
	if err := checkLength("a/a.go", append(long, '\n')); err == nil {
		t.Errorf("%d lines: got no error, want one", maxLines+1)
	}
}
