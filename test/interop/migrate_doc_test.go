package interop_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// refusedThereToo are rows that say same, because the other broker refuses as well.
var refusedThereToo = map[string]bool{"SUBSCRIBE /command/svc": true, "SEND /topic//a": true, "SEND /topic/stomp/a": true}

// TestMigrationDocs tries each destination that the pages about other brokers list, and runs their commands.
func TestMigrationDocs(t *testing.T) {
	t.Parallel()
	for _, broker := range []string{"rabbitmq", "activemq", "kubemq"} {
		t.Run(broker, func(t *testing.T) {
			srv := testserver.Start(t)
			text, err := os.ReadFile("../../docs/migrate-" + broker + ".md")
			if err != nil {
				t.Fatal(err)
			}
			rows := regexp.MustCompile("(?m)^\\| `(SEND|SUBSCRIBE) ([^`]+)` \\| ([a-z]+) \\| ").FindAllStringSubmatch(string(text), -1)
			if len(rows) < 10 {
				t.Fatalf("got %d rows", len(rows))
			}
			runCommands(t, srv, string(text)) // Before the rows leave something in its queue.
			for _, row := range rows {
				t.Run(row[1]+" "+row[2], func(t *testing.T) {
					wantRow(t, srv, row[1], row[2], row[3] != "refused" && !refusedThereToo[row[1]+" "+row[2]])
				})
			}
		})
	}
}

// wantRow sends a frame and wants it accepted or refused.
func wantRow(t *testing.T, srv *testserver.Server, verb, destination string, accepted bool) {
	t.Helper()
	c, err := stompclient.Dial(srv.TCPAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Connect("1.2"); err != nil {
		t.Fatal(err)
	}
	f := stompclient.New(verb, "id", "1", "destination", destination, "receipt", "r")
	if strings.HasPrefix(destination, "/command/") || strings.HasPrefix(destination, "/query/") {
		answer(t, c, stompclient.New("SUBSCRIBE", "id", "r", "destination", "/reply/r", "receipt", "s"))
		f.Headers = append(f.Headers, stompclient.Header{Name: "reply-to", Value: "/reply/r"})
	}
	got := answer(t, c, f)
	if (got.Command == "RECEIPT") != accepted {
		t.Errorf("got %s, which the page does not say", got)
	}
}

// runCommands runs the block of shell commands of a page.
func runCommands(t *testing.T, srv *testserver.Server, page string) {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("the page has %d blocks of commands", len(blocks))
	}
	program, err := testserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", blocks[0][1])
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "KUBEMQ_STOMP_URL=tcp://"+srv.TCPAddr)
	out, err := cmd.Output()
	if err != nil || string(out) != "two teas\n" {
		t.Errorf("the commands printed %q: %v", out, err)
	}
}
