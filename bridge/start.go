package bridge

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// StartKind says where a subscription to stored topics begins.
type StartKind uint8

// The kinds. StartNew is the default.
const (
	StartNew            StartKind = iota // What is stored from now on.
	StartFirst                           // The oldest message that is kept.
	StartLast                            // The newest message that is kept, and all after it.
	StartLastPerChannel                  // The newest message of each channel, and all after the subscription.
	StartSequence                        // The first message at or after Sequence.
	StartTime                            // The first message stored at or after Time.
	StartAge                             // The first message that is not older than Age at the subscription.
)

// Start is where a subscription to stored topics begins. The zero value is StartNew.
type Start struct {
	Kind StartKind
	// Sequence is a place in the stream, as x-seq shows it; for StartSequence.
	Sequence uint64
	// Time is for StartTime.
	Time time.Time
	// Age is for StartAge.
	Age time.Duration
}

// String is the start as x-start spells it; equal starts have one spelling.
func (s Start) String() string {
	switch s.Kind {
	case StartFirst:
		return "first"
	case StartLast:
		return "last"
	case StartLastPerChannel:
		return "last-per-channel"
	case StartSequence:
		return "seq:" + strconv.FormatUint(s.Sequence, 10)
	case StartTime:
		return "time:" + s.Time.UTC().Format(time.RFC3339Nano)
	case StartAge:
		return "age:" + s.Age.String()
	}
	return "new"
}

// apply sets a consumer's beginning.
func (s Start) apply(cfg *jetstream.ConsumerConfig) {
	switch s.Kind {
	case StartNew:
		cfg.DeliverPolicy = jetstream.DeliverNewPolicy
	case StartFirst:
		cfg.DeliverPolicy = jetstream.DeliverAllPolicy
	case StartLast:
		cfg.DeliverPolicy = jetstream.DeliverLastPolicy
	case StartLastPerChannel:
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	case StartSequence:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, s.Sequence
	case StartTime:
		at := s.Time.UTC()
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &at
	case StartAge:
		at := time.Now().Add(-s.Age).UTC()
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &at
	}
}
