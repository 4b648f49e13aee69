package interop_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

// elsewhere is a host that Chromium takes for 127.0.0.1, whose pages are no loopback origin.
const elsewhere = "elsewhere.test"

// browserClient is a library in Chromium, each scenario in a frame of one page that the test serves.
type browserClient struct {
	name string
	npm  string
	host string // Of the page; empty: 127.0.0.1.
}

var chromium = browserClient{name: "chromium", npm: stompJSPackage}

func (b browserClient) String() string { return b.name }

func (b browserClient) start(t *testing.T, srv *testserver.Server, scenario string, o options) *session {
	t.Helper()
	r, err := theBrowser()
	if err != nil {
		t.Fatal(err)
	}
	return r.run(t, "Chromium "+b.name+": "+scenario, b.host, task{
		Library: b.npm, Scenario: scenario, Address: srv.WebSocketURL, Options: o,
	})
}

// A browser is a running Chromium with the page that takes orders, and the server of that page.
type browser struct {
	command *exec.Cmd
	stderr  bytes.Buffer // Of Chromium; valid after exited.
	exited  chan struct{}
	profile string
	leash   *os.File // Chromium ends when this is closed, also when this process dies.
	address string
	server  *http.Server

	orders chan order
	driven chan struct{} // Gets something when the page asks for orders.

	mu       sync.Mutex
	sessions map[string]*framed // Guarded by mu.
}

// theBrowser starts Chromium when the first test asks for it.
var (
	theBrowser = sync.OnceValues(func() (*browser, error) {
		b, err := launchBrowser()
		launched = b
		return b, err
	})
	launched *browser
)

func launchBrowser() (*browser, error) {
	program, err := exec.LookPath("chromium")
	if err != nil {
		return nil, fmt.Errorf("these tests need Chromium: apt-get install -y chromium (%w)", err)
	}
	modules, err := nodeModules()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &browser{
		exited: make(chan struct{}), address: listener.Addr().String(),
		orders: make(chan order, 1024), driven: make(chan struct{}, 1), sessions: make(map[string]*framed),
	}
	b.server = &http.Server{Handler: b.pages(modules), ReadHeaderTimeout: rig.Patience}
	go func() { _ = b.server.Serve(listener) }()
	if err := b.open(program); err != nil {
		return b, err
	}
	timeout := time.NewTimer(rig.Patience)
	defer timeout.Stop()
	select {
	case <-b.driven:
		return b, nil
	case <-b.exited:
		err = errors.New("it ended")
	case <-timeout.C:
		err = fmt.Errorf("it did not load the page within %v", rig.Patience)
	}
	b.close()
	return nil, fmt.Errorf("%s: %w\n%s", program, err, b.stderr.Bytes())
}

// open starts Chromium on the page that takes orders.
func (b *browser) open(program string) error {
	var err error
	if b.profile, err = os.MkdirTemp("", "natstomp-chromium-"); err != nil {
		return err
	}
	b.command = exec.Command(program,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
		"--user-data-dir="+b.profile, "--host-resolver-rules=MAP "+elsewhere+" 127.0.0.1",
		"--remote-debugging-pipe", "http://"+b.address+"/")
	b.command.Stderr = &b.stderr
	b.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // It has processes of its own.
	commands, leash, err := os.Pipe()
	if err != nil {
		return err
	}
	defer commands.Close()
	b.leash = leash
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	b.command.ExtraFiles = []*os.File{commands, null} // Where --remote-debugging-pipe reads and writes.
	if err := b.command.Start(); err != nil {
		return err
	}
	go func() {
		_ = b.command.Wait() // It is killed.
		close(b.exited)
	}()
	return nil
}

// close ends Chromium and the server of its pages.
func (b *browser) close() {
	if b.command != nil && b.command.Process != nil {
		_ = syscall.Kill(-b.command.Process.Pid, syscall.SIGKILL)
		<-b.exited
		_ = b.leash.Close()
	}
	_ = b.server.Close()
	_ = os.RemoveAll(b.profile)
}

// closeBrowser is for the end of all tests.
func closeBrowser() error {
	if launched != nil {
		launched.close()
	}
	return nil
}
