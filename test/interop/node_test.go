package interop_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/natstomp/natstomp/test/testserver"
)

const javascript = "testdata/js"

// The packages as npm names them.
const (
	stompitPackage  = "stompit"
	stompJSPackage  = "@stomp/stompjs"
	stompJS2Package = "stompjs"
	webstompPackage = "webstomp-client"
)

// nodeClient is a JavaScript library in Node, each scenario in a process of its own.
type nodeClient struct {
	name string
	npm  string // The package.
}

var (
	stompit = nodeClient{"stompit", stompitPackage}
	stompJS = nodeClient{"stompjs", stompJSPackage}
)

func (n nodeClient) String() string { return n.name }

func (n nodeClient) start(t *testing.T, srv *testserver.Server, scenario string, o options) *session {
	t.Helper()
	modules, err := nodeModules()
	if err != nil {
		t.Fatal(err)
	}
	address := srv.WebSocketURL
	if n.npm == stompitPackage {
		address = srv.TCPAddr
	}
	cmd := exec.Command("node", filepath.Join(javascript, "node.mjs"), modules, n.npm, scenario, address)
	return startProcess(t, n.name+" in Node: "+scenario, cmd, o)
}

// nodeModules returns a directory in which npm has installed the packages of testdata/js/package-lock.json. It is in the
// user's cache, one for each lock file, and lasts.
var nodeModules = sync.OnceValues(func() (string, error) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("these tests need Node 18 or newer and npm: apt-get install -y nodejs npm (%w)", err)
		}
	}
	files := make(map[string][]byte)
	key := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		text, err := os.ReadFile(filepath.Join(javascript, name))
		if err != nil {
			return "", err
		}
		files[name] = text
		_, _ = key.Write(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "natstomp-interop")
	dir := filepath.Join(cache, fmt.Sprintf("%x", key.Sum(nil)[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	return dir, install(cache, dir, files)
})

// install runs npm in a directory beside dir and gives it that name when it is complete: other test runs may do the same
// at the same time.
func install(cache, dir string, files map[string][]byte) error {
	if err := os.MkdirAll(cache, 0o750); err != nil {
		return err
	}
	work, err := os.MkdirTemp(cache, "install-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(work, name), text, 0o600); err != nil {
			return err
		}
	}
	npm := exec.Command("npm", "ci", "--omit=dev", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = work
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci with the packages of %s: %w\n%s", javascript, err, out)
	}
	if err := os.Rename(work, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}
