package rig

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Native is a NATS client of its own, beside natstomp. The test's end closes it.
func Native(tb testing.TB, url string, options ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	tb.Helper()
	nc, err := nats.Connect(url, append([]nats.Option{nats.Timeout(Patience)}, options...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		tb.Fatal(err)
	}
	return nc, js
}

// QueueStream is the name of the stream of a queue's channel in dot form, as the documentation has it.
func QueueStream(channel string) string {
	name := regexp.MustCompile(`[^A-Za-z0-9_-]`).ReplaceAllString(strings.ReplaceAll(channel, ".", "_"), "-")
	sum := sha256.Sum256([]byte(channel))
	return fmt.Sprintf("Q_%s_%x", name[:min(len(name), 60)], sum[:4])
}
