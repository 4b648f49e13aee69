package bridge

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// durableName is the consumer that all readers of a queue share, native ones included.
	durableName = "stomp"
	// queueStreamPrefix begins the name of every queue's stream.
	queueStreamPrefix = "Q_"
	// channelKey is where a stream's metadata keeps the channel of its queue.
	channelKey = "natstomp_channel"
	// maxNamePart bounds the part of a stream's name that shows the channel.
	maxNamePart = 60
)

// QueueStream is the name of the stream of a queue's channel (DESIGN section 2, names on NATS).
func QueueStream(channel string) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r == '.':
			return '_'
		case r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		default:
			return '-'
		}
	}, channel)
	if len(readable) > maxNamePart {
		readable = readable[:maxNamePart]
	}
	sum := sha256.Sum256([]byte(channel))
	return queueStreamPrefix + readable + "_" + hex.EncodeToString(sum[:4])
}
