package interop_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

const headersDoc = "../../docs/headers.md"

// headerRow is one row of a table whose first cell is a header as it stands on the wire.
type headerRow struct{ name, value, here string }

// headerRows returns the rows below a heading.
func headerRows(t *testing.T, page, heading string) []headerRow {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n### "+heading+"\n")
	if !ok {
		t.Fatalf("the page has no section %q", heading)
	}
	section, _, _ := strings.Cut(rest, "\n#")
	var rows []headerRow
	for _, m := range regexp.MustCompile("(?m)^\\| `([^:`]+):([^`]+)` \\| ([a-z]+) \\| ").FindAllStringSubmatch(section, -1) {
		rows = append(rows, headerRow{m[1], m[2], m[3]})
	}
	if n := strings.Count(section, "\n| `"); n != len(rows) || n < 3 {
		t.Fatalf("%s: %d of %d rows are understood", heading, len(rows), n)
	}
	return rows
}

// TestHeadersDoc sends each header that docs/headers.md lists and holds its row to what happens.
func TestHeadersDoc(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(headersDoc)
	if err != nil {
		t.Fatal(err)
	}
	srv := testserver.Start(t)
	check := func(heading string, run func(t *testing.T, c *stompclient.Conn, row headerRow, destination string) stompclient.Frame) {
		for i, row := range headerRows(t, string(text), heading) {
			t.Run(heading+"/"+row.name+":"+row.value, func(t *testing.T) {
				c, err := stompclient.Dial(srv.TCPAddr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := c.Connect("1.2"); err != nil {
					t.Fatal(err)
				}
				_, pattern, _ := strings.Cut(heading, "/")
				got := run(t, c, row, fmt.Sprintf("/%s/headers-doc/%d-%d", pattern, len(heading), i))
				switch {
				case row.here == "refused" && (got.Command != "ERROR" || !strings.Contains(got.Get("message"), row.name)):
					t.Errorf("got %s, want an ERROR that names %s", got, row.name)
				case row.here != "refused" && got.Command != "RECEIPT":
					t.Errorf("got %s, want a RECEIPT", got)
				case row.here != "refused" && row.here != "acts" && row.here != "passes" && row.here != "nothing":
					t.Errorf("the page says %q", row.here)
				}
			})
		}
	}
	check("SEND to /topic", sendRow)
	check("SEND to /topic-store", sendRow)
	check("SEND to /queue", sendRow)
	check("SEND to /query", sendRow)
	check("SUBSCRIBE to /topic", subscribeRow)
	check("SUBSCRIBE to /topic-store", subscribeRow)
	check("SUBSCRIBE to /queue", subscribeRow)
	check("NACK of a message of /queue", nackRow)
}

// answer sends a frame and returns the RECEIPT or ERROR for it.
func answer(t *testing.T, c *stompclient.Conn, f stompclient.Frame) stompclient.Frame {
	t.Helper()
	if err := c.Send(f); err != nil {
		t.Fatal(err)
	}
	for {
		got, err := c.Read(rig.Patience)
		if err != nil {
			t.Fatal(err)
		}
		if got.Command != "MESSAGE" {
			return got
		}
	}
}

// sendRow sends a message with the header; one that passes must arrive with it.
func sendRow(t *testing.T, c *stompclient.Conn, row headerRow, destination string) stompclient.Frame {
	t.Helper()
	f := stompclient.New("SEND", "destination", destination, "receipt", "r", row.name, row.value)
	if strings.HasPrefix(destination, "/query/") {
		answer(t, c, stompclient.New("SUBSCRIBE", "id", "r", "destination", "/reply/r", "receipt", "s"))
		if row.name != "reply-to" {
			f.Headers = append(f.Headers, stompclient.Header{Name: "reply-to", Value: "/reply/r"})
		}
	} else if row.here == "passes" {
		answer(t, c, stompclient.New("SUBSCRIBE", "id", "1", "destination", destination, "receipt", "s"))
	}
	if err := c.Send(f); err != nil {
		t.Fatal(err)
	}
	var receipt, message stompclient.Frame
	for receipt.Command == "" || row.here == "passes" && message.Command == "" {
		got, err := c.Read(rig.Patience)
		switch {
		case err != nil:
			t.Fatal(err)
		case got.Command == "MESSAGE":
			message = got
		default:
			receipt = got
		}
	}
	if row.here == "passes" && message.Get(row.name) != row.value {
		t.Errorf("it came as %s", message)
	}
	return receipt
}

func subscribeRow(t *testing.T, c *stompclient.Conn, row headerRow, destination string) stompclient.Frame {
	t.Helper()
	return answer(t, c, stompclient.New("SUBSCRIBE", "id", "1", "destination", destination, "receipt", "r", row.name, row.value))
}

// nackRow refuses a message with the header.
func nackRow(t *testing.T, c *stompclient.Conn, row headerRow, _ string) stompclient.Frame {
	t.Helper()
	queue := "/queue/headers-doc/nack-" + row.value
	answer(t, c, stompclient.New("SUBSCRIBE", "id", "1", "destination", queue, "ack", "client", "receipt", "s"))
	if err := c.Send(stompclient.New("SEND", "destination", queue)); err != nil {
		t.Fatal(err)
	}
	m, err := c.Read(rig.Patience)
	if err != nil {
		t.Fatal(err)
	}
	return answer(t, c, stompclient.New("NACK", "id", m.Get("ack"), "receipt", "r", row.name, row.value))
}
