package connector_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/connector"
)

// TestErrorText: what NATS says may hold names and paths, which no client sees; what it is about still shows.
func TestErrorText(t *testing.T) {
	full := &jetstream.APIError{Code: 500, ErrorCode: 10047, Description: "insufficient storage in /var/lib"}
	sealed := &jetstream.APIError{Code: 400, ErrorCode: 10109, Description: "invalid operation on sealed stream"}
	for _, tt := range []struct {
		err   error
		want  string
		known bool
	}{
		{fmt.Errorf("creating stream Q_x: %w", full), "NATS refused it (JetStream error 10047)", false},
		{fmt.Errorf("storing in Q_x: %w", sealed), "NATS refused it: the stream is sealed (JetStream error 10109)", false},
		{fmt.Errorf("creating stream Q_x: %w", context.DeadlineExceeded), "NATS is not available, try again later", true},
		{fmt.Errorf("storing in Q_x: %w", bridge.ErrQueueFull), "queue full", true},
		{errors.New("open /var/lib: no such file"), "internal error", false},
	} {
		got, known := connector.ErrorText(tt.err)
		if got != tt.want || known != tt.known {
			t.Errorf("%v: got %q, %t, want %q, %t", tt.err, got, known, tt.want, tt.known)
		}
	}
}
