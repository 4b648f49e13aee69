package interop_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
)

const readme = "../../README.md"

// TestReadme does what the README tells a newcomer, in its order, with other ports and another store.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindAllStringSubmatch(string(text), -1)
	if len(commands) != 2 || commands[0][1] != "go run ./cmd/natstomp serve" || commands[1][1] != "make test" {
		t.Fatalf("the README's two commands are %q", commands)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(makefile, []byte("\ntest:\n")) {
		t.Error("the Makefile has no target test")
	}
	address := readmeServe(t, commands[0][1])
	host, port, _ := strings.Cut(address, ":")

	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	script := program(t, readme, "bash", "/dev/tcp/127.0.0.1/61613", "/dev/tcp/"+host+"/"+port)
	out, err := exec.CommandContext(ctx, "bash", "-eu", "-c", string(script)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"CONNECTED\n", "\nMESSAGE\n", "\n\nHello, NATS\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the shell's lines printed no %q:\n%s", want, out)
		}
	}

	file := filepath.Join(t.TempDir(), "first.py")
	source := program(t, readme, "python", `("127.0.0.1", 61613)`, fmt.Sprintf("(%q, %s)", host, port))
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = withContext(ctx, pythonCommand(t, file)).CombinedOutput()
	if err != nil || string(out) != "one coffee\n" {
		t.Errorf("the program printed %q: %v", out, err)
	}
}

// readmeServe runs the command that starts the server and returns where it listens.
func readmeServe(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec "+command)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(),
		"NATSTOMP_LISTENERS_TCP_ADDRESS=127.0.0.1:0", "NATSTOMP_LISTENERS_WS_ADDRESS=127.0.0.1:0", "NATSTOMP_LISTENERS_ADMIN_ADDRESS=127.0.0.1:0",
		"NATSTOMP_NATS_EMBEDDED_LISTEN=127.0.0.1:0", "NATSTOMP_NATS_EMBEDDED_STORE_DIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // The go command does not pass signals on.
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) } // It may have ended.
	cmd.Cancel = func() error { stop(); return nil }
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // Interrupted.
	})
	address := ""
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if name, rest, ok := strings.Cut(strings.TrimSpace(lines.Text()), " "); ok && name == "tcp" {
			address = strings.TrimSpace(rest)
		}
		if lines.Text() == "ready" {
			return address
		}
	}
	t.Fatalf("%s did not get ready:\n%s", command, stderr.String())
	return ""
}
