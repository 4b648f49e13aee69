package connector

import (
	"testing"
	"time"

	"github.com/natstomp/natstomp/bridge"
)

func TestQueueSettings(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Queues.Declare = []string{"kept", "/queue/kept/too"}
	cfg.Queues.AutoDelete = []string{"minted.>"}
	cfg.Queues.Settings = []QueueSetting{
		{Queue: "a.b", Exclusive: true, MaxAge: time.Hour, MaxDeliveries: 2},
		{Queue: "a.*", Prioritized: true, AckTimeout: time.Minute, MaxBytes: 5 << 20},
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	const gib = 1 << 30
	for channel, want := range map[string]bridge.QueueSettings{
		"a":        {MaxBytes: gib},
		"a.b":      {MaxBytes: gib, MaxAge: time.Hour, Policy: bridge.Exclusive},
		"a.c":      {MaxBytes: 5 << 20, Policy: bridge.Prioritized},
		"minted.x": {MaxBytes: gib, AutoDelete: true},
		"kept":     {MaxBytes: gib, Keep: true},
		"kept.too": {MaxBytes: gib, Keep: true},
	} {
		if got := s.queueSettings(channel); got != want {
			t.Errorf("%s: got %+v, want %+v", channel, got, want)
		}
	}
	for channel, want := range map[string]QueueSetting{
		"a":   {AckTimeout: 10 * time.Minute, MaxDeliveries: 5},
		"a.b": {AckTimeout: 10 * time.Minute, MaxDeliveries: 2},
		"a.c": {AckTimeout: time.Minute, MaxDeliveries: 5},
	} {
		got := s.cfg.Queues.queueSetting(channel)
		if got.AckTimeout != want.AckTimeout || got.MaxDeliveries != want.MaxDeliveries {
			t.Errorf("%s: got %+v, want %+v", channel, got, want)
		}
	}
}
