package bridge_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/bridge"
)

// TestPositionOf holds the reading of reply subjects to that of nats.go.
func TestPositionOf(t *testing.T) {
	for _, tt := range []struct {
		reply string
		ok    bool
	}{
		{"$JS.ACK.S.c.1.2.3.1700000000123456789.4", true},
		{"$JS.ACK.STREAM.d_0123.18446744073709551615.22.33.1700000000000000000.0", true},
		{"$JS.ACK._.hash.S.c.1.2.3.1700000000123456789.4", true},
		{"$JS.ACK.domain.hash.S.c.7.8.9.1700000000123456789.10.random", true},
		{"", false},
		{"_INBOX.x.y", false},
		{"$JS.ACK.", false},
		{"$JS.ACK.S.c.1.2.3.4", false},
		{"$JS.ACK.h.S.c.1.2.3.4.5", false},
		{"$JS.FC.S.c.1.2.3.1700000000123456789.4", false},
	} {
		consumer, sequence, number, count, pending, stored, ok := bridge.PositionOf(tt.reply)
		if ok != tt.ok {
			t.Errorf("%q: got %v, want %v", tt.reply, ok, tt.ok)
		}
		meta, err := (&nats.Msg{Reply: tt.reply, Sub: &nats.Subscription{}}).Metadata()
		if err != nil && tt.ok {
			t.Fatalf("%q: %v", tt.reply, err)
		}
		if !ok {
			continue
		}
		got := nats.MsgMetadata{
			Sequence:     nats.SequencePair{Consumer: number, Stream: sequence},
			NumDelivered: count, NumPending: pending, Timestamp: stored, Consumer: consumer,
		}
		want := *meta
		want.Stream, want.Domain = "", ""
		if got != want {
			t.Errorf("%q: got %+v, want %+v", tt.reply, got, want)
		}
	}
	if got := testing.AllocsPerRun(100, func() { bridge.PositionOf("$JS.ACK.S.c.1.2.3.1700000000123456789.4") }); got > 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}
