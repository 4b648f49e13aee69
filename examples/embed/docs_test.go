package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/testserver"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testserver.Clean()
	os.Exit(code)
}

// TestDocs runs the commands of docs/embedding.md, with other addresses.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 3 || blocks[0][1] != "go run ./examples/embed" {
		t.Fatalf("the page has the commands %q", blocks)
	}
	web, tcp := start(t)
	program, err := testserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	shell := func(script string) *exec.Cmd {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		t.Cleanup(cancel)
		script = strings.ReplaceAll(script, "127.0.0.1:8080", web)
		cmd := exec.CommandContext(ctx, "sh", "-ec", script)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "NATSTOMP_URL=tcp://"+tcp)
		return cmd
	}
	var out bytes.Buffer
	sub := shell("exec " + blocks[1][1] + " --count 2")
	sub.Stdout = &out
	stderr, err := sub.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stderr.Read(make([]byte, 100)); err != nil { // It says that it is subscribed.
		t.Fatal(err)
	}
	lines := strings.Split(blocks[2][1], "\n")
	if len(lines) != 2 || lines[0] != "curl --data 'two teas' http://127.0.0.1:8080/orders" {
		t.Fatalf("the page has the commands %q", lines)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		response, err := http.Post("http://"+web+"/orders", "text/plain", strings.NewReader("two teas"))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		lines = lines[1:]
	}
	for _, line := range lines {
		if out, err := shell(line).Output(); err != nil || len(out) > 0 {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	if err := sub.Wait(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if !bytes.Contains(page, []byte("`"+strings.TrimSpace(line)+"`")) {
			t.Errorf("the page does not tell of %q", line)
		}
	}
	if got, want := out.String(), "accepted: two teas\naccepted: one coffee\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
