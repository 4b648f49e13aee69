package cluster_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

// natsServer is a nats-server process that can be ended and started again on the same store and port.
type natsServer struct {
	name   string
	dir    string
	port   int
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
}

// newNATS prepares a server; config is added to what it needs.
func newNATS(t *testing.T, name string, port int, config string) *natsServer {
	t.Helper()
	s := &natsServer{name: name, dir: testserver.StoreDir(t), port: port}
	text := fmt.Sprintf("server_name: %s\nlisten: \"127.0.0.1:%d\"\njetstream { store_dir: %q, max_file_store: 1TB }\nlog_file: %q\n%s\n",
		name, port, filepath.Join(s.dir, "store"), filepath.Join(s.dir, "log"), config)
	if err := os.WriteFile(s.config(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		if log, err := os.ReadFile(filepath.Join(s.dir, "log")); t.Failed() && err == nil {
			lines := strings.SplitAfter(string(log), "\n")
			t.Logf("end of the log of %s:\n%s", name, strings.Join(lines[max(0, len(lines)-30):], ""))
		}
	})
	return s
}

func (s *natsServer) config() string { return filepath.Join(s.dir, "nats.conf") }

func (s *natsServer) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.port) }

// run starts the process and does not wait for it.
func (s *natsServer) run() error {
	program, err := testserver.Build("nats-server", "github.com/nats-io/nats-server/v2")
	if err != nil {
		return err
	}
	s.cmd = exec.Command(program, "-c", s.config())
	if err := s.cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(cmd *exec.Cmd) {
		defer close(exited)
		_ = cmd.Wait() // Ended by the test.
	}(s.cmd)
	return nil
}

// start starts the process and waits until its port is open.
func (s *natsServer) start(t *testing.T) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, func() error {
		nc, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
		if err == nil {
			_ = nc.Close()
		}
		return err
	})
}

// kill ends the process by SIGKILL, stop by SIGTERM. Both wait, and do nothing if it has ended.
func (s *natsServer) kill() { s.end(syscall.SIGKILL) }
func (s *natsServer) stop() { s.end(syscall.SIGTERM) }

func (s *natsServer) end(signal os.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(signal) // It may have ended.
	<-s.exited
	s.cmd = nil
}

// freePorts are ports that nothing listened on a moment ago. They are below those that the system gives to whoever asks for
// any: those would be somebody else's by the time that a server listens, or listens again.
func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports := make([]int, 0, n)
	for tries := 0; len(ports) < n; tries++ {
		port := 20_000 + rand.IntN(12_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			if tries > 100 {
				t.Fatal(err)
			}
			continue
		}
		defer l.Close() // All are held until each has been chosen.
		ports = append(ports, port)
	}
	return ports
}

// single is one server alone, started.
func single(t *testing.T, config string) *natsServer {
	t.Helper()
	s := newNATS(t, "single", freePorts(t, 1)[0], config)
	s.start(t)
	return s
}

// natsCluster is three servers, started, that can place three replicas.
func natsCluster(t *testing.T) []*natsServer {
	t.Helper()
	ports := freePorts(t, 6)
	var routes []string
	for _, p := range ports[3:] {
		routes = append(routes, fmt.Sprintf("nats-route://127.0.0.1:%d", p))
	}
	servers := make([]*natsServer, 3)
	for i := range servers {
		config := fmt.Sprintf("cluster { name: c, listen: \"127.0.0.1:%d\", routes: [%s] }", ports[3+i], strings.Join(routes, ","))
		servers[i] = newNATS(t, fmt.Sprintf("n%d", i+1), ports[i], config)
		if err := servers[i].run(); err != nil {
			t.Fatal(err)
		}
	}
	_, js := native(t, urls(servers))
	rig.Until(t, func() error {
		cfg := jetstream.StreamConfig{Name: "formed", Subjects: []string{"formed"}, Replicas: 3, Storage: jetstream.MemoryStorage}
		if _, err := js.CreateStream(t.Context(), cfg); err != nil {
			return err
		}
		return js.DeleteStream(t.Context(), "formed")
	})
	return servers
}

func urls(servers []*natsServer) string {
	var list []string
	for _, s := range servers {
		list = append(list, s.url())
	}
	return strings.Join(list, ",")
}

// native is a NATS client of its own, beside natstomp, that outlives outages.
func native(t *testing.T, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	return rig.Native(t, url, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.Timeout(nats.DefaultTimeout),
		nats.RetryOnFailedConnect(true), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
}

// leader is the server of the cluster that leads a stream.
func leader(t *testing.T, js jetstream.JetStream, servers []*natsServer, stream string) *natsServer {
	t.Helper()
	var found *natsServer
	rig.Until(t, func() error {
		s, err := js.Stream(t.Context(), stream)
		if err != nil {
			return err
		}
		for _, n := range servers {
			if c := s.CachedInfo().Cluster; c != nil && c.Leader == n.name {
				found = n
				return nil
			}
		}
		return errors.New("no leader")
	})
	return found
}
