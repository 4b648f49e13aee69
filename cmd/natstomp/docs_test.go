package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"github.com/natstomp/natstomp/connector/auth"
)

// TestDocumentedCommands runs what the pages say: every block of sh, one after the other, beside the files that the blocks
// with a name are. That a server which wants certificates can be had, and reached with one, is FR-124.
func TestDocumentedCommands(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("the commands need openssl")
	}
	dir := t.TempDir()
	elsewhere := elsewhere(t)
	for _, page := range []string{"authentication", "security"} {
		commands, files := documented(t, page)
		commands = elsewhere.Replace(commands)
		if strings.Count(commands, "natstomp ") < 5 {
			t.Fatalf("%s: only these commands were found:\n%s", page, commands)
		}
		// What a page starts it also stops, but not if a command before that fails.
		const end = "trap 'test ! -e natstomp.pid || kill $(cat natstomp.pid) 2> end.log || true' EXIT\n"
		script := "exec sh -eu commands.sh\n-- commands.sh --\n" + end + commands
		for name, text := range files {
			script += fmt.Sprintf("-- %s --\n%s", name, elsewhere.Replace(text))
		}
		if err := os.WriteFile(filepath.Join(dir, page+".txtar"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{Dir: dir})
}

// elsewhere replaces the addresses of the pages by some that are free, on loopback. They are below those that the system
// gives to whoever asks for any: those would be somebody else's by the time that a command listens.
func elsewhere(t *testing.T) *strings.Replacer {
	t.Helper()
	pairs := []string{"0.0.0.0:", "127.0.0.1:"}
	for _, port := range []string{"61614", "61615", "15673", "8161"} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		for tries := 0; err != nil && tries < 100; tries++ {
			l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // All are held until each has been chosen.
		pairs = append(pairs, port, fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
	}
	return strings.NewReplacer(pairs...)
}

// TestDocumentedUsers logs in with the example of a users file.
func TestDocumentedUsers(t *testing.T) {
	_, files := documented(t, "authentication")
	t.Chdir(t.TempDir())
	for _, name := range []string{"users.yaml", "users.txt"} {
		if err := os.WriteFile(name, []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := newLoader(nil, pflag.NewFlagSet("", pflag.ContinueOnError))
	config, err := l.load("users.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := auth.New(config.config.AuthConfig())
	if err != nil {
		t.Fatal(err)
	}
	for name, roles := range map[string]string{"alice": "reader writer", "bob": ""} {
		i, err := s.Authenticate(t.Context(), auth.Credentials{Login: name, Passcode: "wonderland"})
		if got := strings.Join(i.Roles, " "); err != nil || got != roles {
			t.Errorf("%s: got the roles %q, %v, want %q", name, got, err, roles)
		}
	}
}

// documented returns the commands of a page, and its files.
func documented(t *testing.T, page string) (commands string, files map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page+".md"))
	if err != nil {
		t.Fatal(err)
	}
	files = make(map[string]string)
	parts := strings.Split("\n"+string(text), "\n```")
	for i := 1; i < len(parts); i += 2 { // Every second part is inside.
		info, text, _ := strings.Cut(parts[i], "\n")
		kind, name, _ := strings.Cut(info, " ")
		switch {
		case kind == "sh":
			commands += text + "\n"
		case name != "":
			files[name] = text + "\n"
		}
	}
	return commands, files
}
