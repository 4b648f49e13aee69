package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/natstomp/natstomp/test/stompclient"
)

const patience = 20 * time.Second

// start builds and runs the example and returns where it listens.
func start(t *testing.T) (web, tcp string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "embed")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(context.Background(), program, "-http", "127.0.0.1:0", "-stomp", "127.0.0.1:0", "-store", t.TempDir())
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // It may have ended.
		if err := cmd.Wait(); err != nil {
			t.Errorf("the example ended with %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	m := regexp.MustCompile(`^http://(\S+) stomp://(\S+)\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("got %q, %v", line, err)
	}
	return m[1], m[2]
}

// subscribe makes a client of a topic.
func subscribe(t *testing.T, c *stompclient.Conn, err error, destination string) *stompclient.Conn {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Connect("1.2"); err != nil {
		t.Fatal(err)
	}
	if err := c.Send(stompclient.New("SUBSCRIBE", "id", "1", "destination", destination, "receipt", "1")); err != nil {
		t.Fatal(err)
	}
	if f, err := c.Read(patience); err != nil || f.Command != "RECEIPT" {
		t.Fatalf("got %s, %v", f, err)
	}
	return c
}

func wantMessage(t *testing.T, c *stompclient.Conn, body string) {
	t.Helper()
	f, err := c.Read(patience)
	if err != nil || f.Command != "MESSAGE" || string(f.Body) != body {
		t.Errorf("got %s, %v; want %q", f, err, body)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("GET %s: got status %d, %v", url, response.StatusCode, err)
	}
	return string(body)
}

// TestEmbed orders by HTTP, by TCP and over the WebSocket; each time clients on both transports hear of it.
func TestEmbed(t *testing.T) {
	web, tcp := start(t)
	ws, err := stompclient.DialWebSocket("ws://" + web + "/stomp")
	subscribe(t, ws, err, "/topic/orders")
	plain, err := stompclient.Dial(tcp)
	subscribe(t, plain, err, "/topic/orders")

	response, err := http.Post("http://"+web+"/orders", "text/plain", strings.NewReader("two teas"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("POST /orders: got status %d", response.StatusCode)
	}
	for _, c := range []*stompclient.Conn{ws, plain} {
		wantMessage(t, c, "accepted: two teas")
	}
	for _, c := range []*stompclient.Conn{ws, plain} {
		if err := c.Send(stompclient.New("SEND", "destination", "/queue/orders").WithBody([]byte("coffee"))); err != nil {
			t.Fatal(err)
		}
		wantMessage(t, ws, "accepted: coffee")
		wantMessage(t, plain, "accepted: coffee")
	}
	if got := get(t, "http://"+web+"/ops/readyz"); got != "ok\n" {
		t.Errorf("readyz: got %q", got)
	}
	if got := get(t, "http://"+web+"/ops/api/stomp/connections"); !strings.Contains(got, `"transport":"ws"`) || !strings.Contains(got, `"transport":"tcp"`) {
		t.Errorf("connections: got %s", got)
	}
	if got := get(t, "http://"+web+"/ops/metrics"); !strings.Contains(got, "natstomp_connections{") {
		t.Errorf("metrics: got %s", got)
	}
}

// TestLength holds the example to what a reader takes in at once.
func TestLength(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), "\n"); n >= 80 {
		t.Errorf("main.go has %d lines, want less than 80", n)
	}
}
