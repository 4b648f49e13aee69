package bridge

import (
	"strconv"
	"strings"
	"time"
)

// position is what JetStream tells of a delivery.
type position struct {
	consumer string
	sequence uint64    // in the stream
	number   uint64    // among the consumer's deliveries
	count    uint64    // of the deliveries of this message
	pending  uint64    // messages that the consumer has not delivered yet
	stored   time.Time // when it was
}

// positionOf reads the reply subject of a delivery, which is the subject of its acks too (ADR-15). false: it is none, so
// the message is a word of the server. Unlike nats.go's reading it allocates nothing.
func positionOf(reply string) (p position, ok bool) {
	const plain = 7 // tokens; there are more where a domain and the hash of an account come first
	rest, ok := strings.CutPrefix(reply, "$JS.ACK.")
	if !ok {
		return p, false
	}
	if strings.Count(rest, ".") >= plain {
		_, rest, _ = strings.Cut(rest, ".")
		_, rest, _ = strings.Cut(rest, ".")
	}
	_, rest, _ = strings.Cut(rest, ".") // The stream.
	p.consumer, rest, _ = strings.Cut(rest, ".")
	var nanoseconds uint64
	for _, field := range [...]*uint64{&p.count, &p.sequence, &p.number, &nanoseconds, &p.pending} {
		var digits string
		var err error
		digits, rest, _ = strings.Cut(rest, ".")
		if *field, err = strconv.ParseUint(digits, 10, 64); err != nil {
			return position{}, false
		}
	}
	p.stored = time.Unix(0, int64(nanoseconds))
	return p, true
}
