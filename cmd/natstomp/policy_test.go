package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/authz"
)

// inCopy changes to a directory with a copy of the shipped policies.
func inCopy(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "policies"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
}

// natstomp runs a command line and returns all that it writes.
func natstomp(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	code := run(args, process{stdin: strings.NewReader(""), stdout: &out, stderr: &out})
	return out.String(), code
}

// TestShippedPolicies runs the tests beside the policies that are shipped.
func TestShippedPolicies(t *testing.T) {
	inCopy(t)
	for _, file := range []string{"open.yaml", "example.yaml"} {
		if out, code := natstomp(t, "policy", "test", file); code != 0 {
			t.Errorf("%s: got code %d:\n%s", file, code, out)
		}
	}
	// The example's table finds every line of the policy that goes missing.
	text, err := os.ReadFile("example.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if line == "" || line[0] == '#' {
			continue
		}
		lines[i] = ""
		if err := os.WriteFile("example.csv", []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, code := natstomp(t, "policy", "test", "example.yaml"); code != 1 || !strings.Contains(out, "not as the table says") {
			t.Errorf("without line %d (%s): got code %d, want the table to fail", i+1, line, code)
		}
		lines[i] = line
	}
}

var (
	block = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	word  = regexp.MustCompile(`'[^']*'|[^ ]+`)
)

// TestPolicyDocs runs what the pages on policies show: commands with their output, policies and tables.
func TestPolicyDocs(t *testing.T) {
	var pages []byte
	for _, page := range []string{"../../docs/policies.md", "../../policies/README.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, text...)
	}
	inCopy(t)
	const broken = "p, anna, events, a, read, allow\np, anna, events, a, subscribe, allow\np, anna, events, a, read\np, anna, events, orders.e*, read, allow\n"
	if err := os.WriteFile("broken.csv", []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	blocks := block.FindAllStringSubmatch(string(pages), -1)
	if len(blocks) < 8 {
		t.Fatalf("got %d blocks, want those of both pages", len(blocks))
	}
	for _, b := range blocks {
		switch kind, text := b[1], b[2]; kind {
		case "console":
			command, want, _ := strings.Cut(text, "\n")
			checkCommand(t, strings.TrimPrefix(command, "$ natstomp "), want)
		case "sh":
			for command := range strings.Lines(text) {
				checkCommand(t, strings.TrimPrefix(strings.TrimSpace(command), "natstomp "), "")
			}
		case "csv":
			checkLines(t, text)
		case "yaml":
			if err := os.WriteFile("table.yaml", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			checkCommand(t, "policy test table.yaml", "table.yaml: good, 6 decisions\n")
		case "text":
			if !strings.HasPrefix(text, "$ natstomp policy push ") {
				t.Errorf("this block is not tested:\n%s", text) // That one is, by test/cluster.
			}
		default:
			t.Errorf("a block of kind %q is not tested", kind)
		}
	}
}

// TestREADMEPolicy loads the policy that README shows, and asks it what README says.
func TestREADMEPolicy(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, policy, found := strings.Cut(string(text), "\n```\np, role:shop")
	policy, _, ended := strings.Cut(policy, "```\n")
	if !found || !ended {
		t.Fatal("README shows no policy")
	}
	t.Chdir(t.TempDir())
	table := "policy: policy.csv\ntests:\n" +
		"  - {identity: ann, allow: [write /queue/orders/eu, read /topic/news/sports, read /queue/inbox/ann], deny: [read /queue/orders/eu]}\n" +
		"  - {identity: bob, allow: [read /topic/news/sports, read /queue/inbox/bob], deny: [write /queue/orders/eu, read /queue/inbox/ann]}\n"
	for name, text := range map[string]string{"policy.csv": "p, role:shop" + policy, "table.yaml": table} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	checkCommand(t, "policy test table.yaml", "table.yaml: good, 8 decisions\n")
}

// checkCommand runs a command line and compares what it writes, unless nothing is wanted; then it must end well.
func checkCommand(t *testing.T, command, want string) {
	t.Helper()
	args := word.FindAllString(command, -1)
	for i, arg := range args {
		args[i] = strings.Trim(arg, "'")
	}
	got, code := natstomp(t, args...)
	if want != "" && got != want || want == "" && code != 0 {
		t.Errorf("natstomp %s: got code %d and\n%s\nwant\n%s", command, code, got, want)
	}
}

// checkLines loads an excerpt of a policy.
func checkLines(t *testing.T, text string) {
	t.Helper()
	a, err := authz.New(authz.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Load("docs", []byte(text+"p, *, *, >, *, allow\n")); err != nil {
		t.Error(err)
	}
}
