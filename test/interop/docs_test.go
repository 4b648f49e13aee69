package interop_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/testserver"
)

const clientsDoc = "../../docs/clients.md"

// program returns the only fenced block of a language in a page, with its address replaced.
func program(t *testing.T, page, language, address, actual string) []byte {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "\n```"+language+"\n")
	block, rest, closed := strings.Cut(block, "\n```\n")
	if !found || !closed || strings.Contains(rest, "\n```"+language+"\n") {
		t.Fatalf("%s: want one block of %s", page, language)
	}
	if strings.Count(block, address) != 1 {
		t.Fatalf("%s: the block of %s does not have %s once:\n%s", page, language, address, block)
	}
	return []byte(strings.Replace(block, address, actual, 1) + "\n")
}

// wantOutput runs a program of the documentation, which talks about its order for table 7.
func wantOutput(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.Bytes())
	}
	if got, want := string(out), "table 7: two teas, please\n"; got != want {
		t.Errorf("it printed %q, want %q; on standard error:\n%s", got, want, stderr.Bytes())
	}
}

func TestDocsStompPy(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	host, port, _ := strings.Cut(srv.TCPAddr, ":")
	source := program(t, clientsDoc, "python", `("127.0.0.1", 61613)`, fmt.Sprintf("(%q, %s)", host, port))
	file := filepath.Join(t.TempDir(), "orders.py")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	wantOutput(t, withContext(ctx, pythonCommand(t, file)))
	wantEmptyOrders(t, srv)
}

func TestDocsJavaScript(t *testing.T) {
	t.Parallel()
	modules, err := nodeModules()
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"mjs", "js"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			srv := testserver.Start(t)
			host, port, _ := strings.Cut(srv.TCPAddr, ":")
			address, actual := `host: "127.0.0.1", port: 61613`, fmt.Sprintf("host: %q, port: %s", host, port)
			if language == "mjs" {
				address, actual = "ws://127.0.0.1:15674/stomp", srv.WebSocketURL
			}
			dir := t.TempDir()
			// Node looks for packages beside the program.
			if err := os.Symlink(filepath.Join(modules, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "orders."+language)
			if err := os.WriteFile(file, program(t, clientsDoc, language, address, actual), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
			defer cancel()
			wantOutput(t, exec.CommandContext(ctx, "node", file))
			wantEmptyOrders(t, srv)
		})
	}
}

func TestDocsGoStomp(t *testing.T) {
	t.Parallel()
	srv := testserver.Start(t)
	source := program(t, clientsDoc, "go", "127.0.0.1:61613", srv.TCPAddr)
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	// An overlay lets the file be part of this module, and so use its go-stomp, without being in its tree.
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(here, "docsprogram", "main.go"): file},
	})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "orders")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlayFile, "-o", binary, "./docsprogram")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the program does not build: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	wantOutput(t, exec.CommandContext(ctx, binary))
	wantEmptyOrders(t, srv)
}

// withContext is the command, killed at the end of the context.
func withContext(ctx context.Context, cmd *exec.Cmd) *exec.Cmd {
	return exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
}

// wantEmptyOrders checks that the programs left nothing in /queue/orders, and that its stream has the name that the
// page gives it.
func wantEmptyOrders(t *testing.T, srv *testserver.Server) {
	t.Helper()
	text, err := os.ReadFile(clientsDoc)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("Q_orders_%x", sha256.Sum256([]byte("orders")))[:len("Q_orders_")+8]
	if !bytes.Contains(text, []byte("consumer next "+name+" stomp")) {
		t.Errorf("%s does not name the stream %s", clientsDoc, name)
	}
	_, js := rig.Native(t, srv.NATSURL)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	stream, err := js.Stream(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	// An ACK without receipt may reach JetStream after the program's end.
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		info, err := stream.Info(ctx)
		if err != nil {
			t.Fatalf("a message is left in /queue/orders: %v", err)
		}
		if info.State.Msgs == 0 {
			return
		}
		<-again.C
	}
}
