package testserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTimeout = 30 * time.Second
	// stopTimeout is DESIGN section 8, exit 0 within 10 s, and what a busy machine adds: the program counts its 10 s itself.
	stopTimeout = time.Minute
)

// Server is a running natstomp program. Its methods are not safe for concurrent use, except Log.
type Server struct {
	// TCPAddr and AdminAddr are host:port of the listeners, NATSURL is what a native NATS client connects to. They
	// change with Restart; NATSURL is empty where that port is off.
	TCPAddr, AdminAddr, NATSURL string
	// WebSocketURL is where STOMP over WebSocket is served.
	WebSocketURL string

	dir    string
	args   []string
	early  bool // The start is over when the listeners are open.
	cmd    *exec.Cmd
	exited chan struct{} // Closed when the process has ended and all its output is in the log.
	err    error         // Of the process; valid after exited.
	ending bool          // SIGTERM was sent.

	mu  sync.Mutex
	log strings.Builder
}

// Start runs `natstomp serve` for the test, with its store in a directory of the test and the extra arguments behind
// its own. It is stopped when the test ends; a stop that is not clean fails the test, and the log of a failed test is
// shown.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s, err := Launch(tb.TempDir(), args...)
	if err != nil {
		tb.Fatal(err)
	}
	s.endWith(tb)
	return s
}

// endWith has the server stopped with the test.
func (s *Server) endWith(tb testing.TB) {
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			tb.Logf("end of the log of natstomp:\n%s", s.LogTail(200))
		}
	})
}

// Launch runs `natstomp serve` with the embedded NATS server on the store directory dir and returns when it is ready.
// Arguments given here win over the ones it uses itself. The caller must Stop or Kill the server.
func Launch(dir string, args ...string) (*Server, error) {
	s := &Server{dir: dir, args: args}
	return s, s.Restart()
}

// StartEarly is Start for a server whose NATS may be away: it returns when the listeners are open. See Await.
func StartEarly(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s := &Server{dir: tb.TempDir(), args: args, early: true}
	if err := s.Restart(); err != nil {
		tb.Fatal(err)
	}
	s.endWith(tb)
	return s
}

// Await waits until the server says that it is ready.
func (s *Server) Await(timeout time.Duration) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	return s.await(deadline)
}

// Readiness returns what the server says about being ready: "ok", or why not.
func (s *Server) Readiness() (string, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.AdminAddr + "/readyz")
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return strings.TrimSpace(string(text)), err
}

// Restart runs the program again, with the same arguments on the same store, after Stop or Kill. The addresses change.
func (s *Server) Restart() error {
	program, err := Binary()
	if err != nil {
		return err
	}
	args := append([]string{
		"serve",
		"--listeners-tcp-address", "127.0.0.1:0",
		"--listeners-admin-address", "127.0.0.1:0",
		"--listeners-ws-address", "127.0.0.1:0",
		"--nats-embedded-listen", "127.0.0.1:0",
		"--nats-embedded-store-dir", s.dir,
		"--nats-embedded-durability", "os",
	}, s.args...)
	s.cmd = exec.Command(program, args...)
	s.cmd.Dir = s.dir
	s.cmd.Env = environment()
	pr, pw := io.Pipe()
	s.cmd.Stdout, s.cmd.Stderr = pw, pw
	if err := s.cmd.Start(); err != nil {
		return err
	}
	read, exited := make(chan struct{}), make(chan struct{})
	lines := make(chan string, 1024)
	go func() {
		defer close(read)
		s.record(pr, lines)
	}()
	s.exited, s.ending = exited, false
	go func() {
		defer close(exited)
		s.err = s.cmd.Wait()
		_ = pw.Close()
		<-read
	}()
	if err := s.ready(lines); err != nil {
		s.Kill()
		return fmt.Errorf("natstomp did not start: %w\n%s", err, s.Log())
	}
	return nil
}

// environment is ours without the variables that natstomp reads.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "NATSTOMP_") || strings.HasPrefix(v, "CONNECTORS_STOMP_") || strings.HasPrefix(v, "NATS_")
	})
}

// record appends the lines of r to the log and offers them to lines, which the start reads.
func (s *Server) record(r io.Reader, lines chan<- string) {
	defer close(lines)
	br := bufio.NewReader(r)
	for {
		line, err := br.ReadString('\n')
		s.mu.Lock()
		s.log.WriteString(line)
		s.mu.Unlock()
		select {
		case lines <- line:
		default: // The start is over, nobody reads.
		}
		if err != nil {
			return
		}
	}
}

// listenLine finds the addresses in the start block.
var listenLine = regexp.MustCompile(`^\s*(tcp|ws|admin|nats)\b.*?(127\.0\.0\.1:[1-9][0-9]*)`)

// ready reads the start block and asks the admin listener until the server says that it is ready.
func (s *Server) ready(lines <-chan string) error {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	found := map[string]string{}
	for begun := false; !begun; {
		select {
		case line, ok := <-lines:
			if !ok {
				return errors.New("the process ended")
			}
			if m := listenLine.FindStringSubmatch(line); m != nil {
				found[m[1]] = m[2]
			}
			begun = line == "ready\n" || strings.HasPrefix(line, "not ready")
		case <-deadline.C:
			return fmt.Errorf("no complete start block within %v, found %v", startTimeout, found)
		}
	}
	s.TCPAddr, s.AdminAddr, s.NATSURL = found["tcp"], found["admin"], ""
	if at := found["nats"]; at != "" {
		s.NATSURL = "nats://" + at
	}
	s.WebSocketURL = "ws://" + found["ws"] + "/stomp"
	if s.early {
		return nil
	}
	return s.await(deadline)
}

func (s *Server) await(deadline *time.Timer) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !s.isReady() {
		select {
		case <-tick.C:
		case <-s.exited:
			return errors.New("the process ended")
		case <-deadline.C:
			return errors.New("not ready in time")
		}
	}
	return nil
}

func (s *Server) isReady() bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.AdminAddr + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Command runs another command of the program and returns all its output. An exit code other than 0 is an error.
func (s *Server) Command(args ...string) (string, error) {
	program, err := Binary()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = s.dir, environment()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// PID returns the process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log returns all output of the process so far, over all its restarts.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// LogTail returns the last n lines of Log.
func (s *Server) LogTail(n int) string {
	lines := strings.SplitAfter(s.Log(), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// Terminate sends SIGTERM, unless that was done, and does not wait. It is an error if the process had ended by itself.
func (s *Server) Terminate() error {
	if s.ending {
		return nil
	}
	s.ending = true
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("natstomp had ended by itself: %w", err)
	}
	return nil
}

// Stop sends SIGTERM and waits. It is an error if the process had ended before without Stop or Kill, does not exit
// with 0 in time, or has logged a panic or a data race. Further calls do nothing.
func (s *Server) Stop() error {
	if s.cmd == nil {
		return nil
	}
	var errs []error
	if err := s.Terminate(); err != nil {
		errs = append(errs, err)
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-s.exited:
		if s.err != nil {
			errs = append(errs, fmt.Errorf("natstomp ended with: %w", s.err))
		}
	case <-timer.C:
		errs = append(errs, fmt.Errorf("natstomp did not exit within %v; its goroutines are in its log", stopTimeout))
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // It may end just now.
		select {
		case <-s.exited:
		case <-time.After(stopTimeout):
		}
		s.Kill()
	}
	s.cmd = nil
	return errors.Join(append(errs, s.checkLog())...)
}

// Kill ends the process by SIGKILL and waits for its end. Further calls do nothing.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // It may have ended by itself.
	<-s.exited
	s.cmd = nil
}

// checkLog looks for what must never be in a log.
func (s *Server) checkLog() error {
	for line := range strings.Lines(s.Log()) {
		for _, bad := range []string{"DATA RACE", "panic", "goroutine "} {
			if strings.Contains(line, bad) {
				return fmt.Errorf("%q in the log of natstomp: %s", bad, strings.TrimSpace(line))
			}
		}
	}
	return nil
}
