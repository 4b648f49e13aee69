package cluster_test

import (
	"testing"

	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestDeletedDurableSaysNothingAboutOthers deletes a durable subscription that is attached. The server of the stream goes
// on: what others have not seen is not redelivered to them.
func TestDeletedDurableSaysNothingAboutOthers(t *testing.T) {
	t.Parallel()
	n := single(t, "")
	srv := testserver.Start(t, "--nats-url", n.url())
	stays, goes, third := connect(t, srv, "client-id", "stays"), connect(t, srv, "client-id", "goes"), connect(t, srv, "client-id", "goes")
	ask(t, stays, subscribe("s", "/topic-store/shared", "durable", "true", "ack", "client-individual", "prefetch-count", "1"))
	ask(t, goes, subscribe("g", "/topic-store/shared", "durable", "true", "ack", "client-individual"))
	ask(t, third, send("/topic-store/shared", "1"))
	first := read(t, stays) // It has no credit any more, and no open pull.
	read(t, goes)
	ask(t, third, stompclient.New("UNSUBSCRIBE", "id", "g", "durable", "true"))
	if f := read(t, goes); f.Command != "ERROR" {
		t.Fatalf("got %s, want the ERROR that the durable subscription was deleted", f)
	}
	ask(t, third, send("/topic-store/shared", "2"))
	if err := stays.Send(stompclient.New("ACK", "id", first.Get("ack"))); err != nil {
		t.Fatal(err)
	}
	f := read(t, stays)
	if f.Command != "MESSAGE" || string(f.Body) != "2" || f.Get("redelivered") != "" {
		t.Errorf("got %s, want message 2 for the first time", f)
	}
}
