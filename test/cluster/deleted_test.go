package cluster_test

import (
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/testserver"
)

// TestDeletedDurableSaysNothingAboutOthers deletes a durable subscription that is attached. The server of the stream goes
// on: what others have not seen is not redelivered to them.
func TestDeletedDurableSaysNothingAboutOthers(t *testing.T) {
	t.Parallel()
	n := single(t, "")
	srv := testserver.Start(t, "--nats-url", n.url())
	stays, goes, third := rig.Connect(t, srv.TCPAddr, "client-id", "stays"), rig.Connect(t, srv.TCPAddr, "client-id", "goes"), rig.Connect(t, srv.TCPAddr, "client-id", "goes")
	stays.AskFrame(rig.Subscribe("s", "/topic-store/shared", "durable", "true", "ack", "client-individual", "prefetch-count", "1"))
	goes.AskFrame(rig.Subscribe("g", "/topic-store/shared", "durable", "true", "ack", "client-individual"))
	third.AskFrame(rig.Send("/topic-store/shared", "1"))
	first := stays.Any() // It has no credit any more, and no open pull.
	goes.Any()
	third.AskFrame(stompclient.New("UNSUBSCRIBE", "id", "g", "durable", "true"))
	if f := goes.Any(); f.Command != "ERROR" {
		t.Fatalf("got %s, want the ERROR that the durable subscription was deleted", f)
	}
	third.AskFrame(rig.Send("/topic-store/shared", "2"))
	stays.DoFrame(stompclient.New("ACK", "id", first.Get("ack")))
	f := stays.Any()
	if f.Command != "MESSAGE" || string(f.Body) != "2" || f.Get("redelivered") != "" {
		t.Errorf("got %s, want message 2 for the first time", f)
	}
}
