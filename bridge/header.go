package bridge

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/natstomp/natstomp/connector/frame"
)

const (
	// packedHeader carries, form-encoded, the STOMP headers that NATS cannot carry as they are (DESIGN section 5).
	packedHeader = "Stomp-Headers"
	// originHeader names the sending connection while it has a no-local subscription. No client can set it: a name
	// that begins with Nats- travels packed.
	originHeader = "Nats-Stomp-Origin"
	// expiresHeader shows when a message is removed, in ms since the epoch.
	expiresHeader = "expires"
	// reservedPrefix begins the headers that NATS itself acts on.
	reservedPrefix = "nats-"
)

// owned says whether a header belongs to the broker and is never passed on from a SEND or from a native publisher
// (DESIGN section 3, broker-owned headers).
func owned[T ~string | ~[]byte](name T) bool {
	switch string(name) {
	case "message-id", "subscription", "ack", "destination", "content-length", "receipt", "transaction", "redelivered",
		"session", "server", "heart-beat", "login", "passcode", "x-delivery-count", "x-seq", "x-executed", "x-deadline":
		return true
	}
	return len(name) > 6 && (strings.HasPrefix(string(name), "x-dead-letter-") || strings.HasPrefix(string(name), "x-error"))
}

// toNATS returns the NATS headers of a SEND's headers, without those that leave names, nil when there are none to send.
// The first of repeated headers wins (STOMP 1.2, Repeated Header Entries).
func toNATS(headers []frame.Header, leave ...string) nats.Header {
	var h nats.Header
	var packed url.Values
	for _, f := range headers {
		if owned(f.Name) || slices.Contains(leave, string(f.Name)) {
			continue
		}
		if h == nil {
			h = make(nats.Header, len(headers))
		}
		name := string(f.Name)
		if _, repeated := h[name]; repeated || packed.Has(name) {
			continue
		}
		if carries(name, f.Value) {
			h[name] = []string{string(f.Value)}
			continue
		}
		if packed == nil {
			packed = make(url.Values)
		}
		packed.Set(name, string(f.Value))
	}
	if packed != nil {
		h[packedHeader] = []string{packed.Encode()}
	}
	return h
}

// carries says whether a NATS header can hold the pair octet by octet without meaning anything to NATS.
func carries(name string, value []byte) bool {
	for i := range len(name) {
		if !tokenOctet[name[i]] {
			return false
		}
	}
	if reserved(name) || status(name, value) {
		return false
	}
	if n := len(value); n > 0 && (blank(value[0]) || blank(value[n-1])) {
		return false
	}
	for _, c := range value {
		if c == '\r' || c == '\n' || c == 0 {
			return false
		}
	}
	return name != ""
}

// reserved says whether NATS, or this package, gives the name a meaning.
func reserved(name string) bool {
	return len(name) >= len(reservedPrefix) && strings.EqualFold(name[:len(reservedPrefix)], reservedPrefix) ||
		strings.EqualFold(name, packedHeader)
}

// status says whether NATS clients take the pair for a word of the server: that nobody answers, for example.
func status(name string, value []byte) bool {
	if !strings.EqualFold(name, "Status") || len(value) != 3 {
		return false
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// lastOf is a header that the server adds to a message: what its publisher has put under that name comes before it.
func lastOf(h nats.Header, name string) string {
	values := h[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// tokenOctet marks the octets of an HTTP token (RFC 9110, 5.6.2).
var tokenOctet = func() (t [256]bool) {
	for c := range 256 {
		b := byte(c)
		t[c] = b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
	}
	return t
}()

// extras are the headers that the broker itself puts on the MESSAGE of a stored message.
type extras struct {
	redelivered bool
	count, seq  uint64 // count is 0 where nothing is counted
	timestamp   int64  // ms since the epoch
}

// expiry is when JetStream removes a stored message, in ms since the epoch: what its sender said, or what follows from
// its TTL. 0: never.
func (x *extras) expiry(h nats.Header) int64 {
	end := x.end(h)
	if said := h[expiresHeader]; end > 0 && len(said) > 0 {
		if at, err := strconv.ParseInt(said[0], 10, 64); err == nil && at > 0 {
			return at
		}
	}
	return end
}

// end is when the TTL of a stored message is over, in ms since the epoch. 0: never.
func (x *extras) end(h nats.Header) int64 {
	ttl := h[ttlHeader]
	if len(ttl) == 0 {
		return 0
	}
	seconds, err := strconv.ParseInt(ttl[0], 10, 32)
	if err != nil {
		d, err := time.ParseDuration(ttl[0])
		if err != nil {
			return 0 // "never".
		}
		seconds = int64(d / time.Second)
	}
	return x.timestamp + 1000*seconds
}

// appendTail appends what follows the headers that differ per delivery: destination, the message's own headers,
// content-length, the blank line, the body and the end of the frame. x is nil on a topic.
func appendTail(dst []byte, v frame.Version, destination string, m *nats.Msg, x *extras) []byte {
	dst = frame.AppendHeader(dst, v, "destination", destination)
	if len(m.Header) > 0 {
		stamps := stamps{timestamp: x != nil, expires: x != nil && x.expiry(m.Header) > 0}
		dst = appendHeaders(dst, v, m.Header, stamps)
	}
	if x != nil {
		dst = x.append(dst)
		if at := x.expiry(m.Header); at > 0 {
			dst = append(append(dst, expiresHeader...), ':')
			dst = append(strconv.AppendInt(dst, at, 10), '\n')
		}
	}
	return appendBody(dst, m.Data)
}

// appendBody appends content-length, the blank line, the body and the end of the frame.
func appendBody(dst, body []byte) []byte {
	dst = append(dst, "content-length:"...)
	dst = appendUint(dst, uint64(len(body)))
	dst = append(dst, "\n\n"...)
	dst = append(dst, body...)
	return append(dst, 0, '\n')
}

func (x *extras) append(dst []byte) []byte {
	if x.redelivered {
		dst = append(dst, "redelivered:true\n"...)
	}
	if x.count > 0 {
		dst = append(dst, "x-delivery-count:"...)
		dst = append(appendUint(dst, x.count), '\n')
	}
	dst = append(dst, "x-seq:"...)
	dst = appendUint(dst, x.seq)
	dst = append(dst, "\ntimestamp:"...)
	dst = appendUint(dst, uint64(max(x.timestamp, 0)))
	return append(dst, '\n')
}

// appendHeaders appends the headers of a NATS message that a client may see, sorted by name, those that the version
// cannot represent left out. Where a native publisher repeats a header the first value is taken.
func appendHeaders(dst []byte, v frame.Version, h nats.Header, stamped stamps) []byte {
	var space [16]string
	names := space[:0]
	for name := range h {
		if !owned(name) && !reserved(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if values := h[name]; len(values) > 0 {
			dst = appendPassed(dst, v, name, values[0], stamped)
		}
	}
	if packed := h[packedHeader]; len(packed) > 0 {
		dst = appendPacked(dst, v, h, packed[0], stamped)
	}
	return dst
}

func appendPacked(dst []byte, v frame.Version, h nats.Header, packed string, stamped stamps) []byte {
	values, _ := url.ParseQuery(packed) // A malformed pair is left out, the others count.
	names := make([]string, 0, len(values))
	for name := range values {
		if _, twice := h[name]; owned(name) || twice && !reserved(name) {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		dst = appendPassed(dst, v, name, values[name][0], stamped)
	}
	return dst
}

// stamps are the headers that pass unless the broker sets them itself.
type stamps struct{ timestamp, expires bool }

// appendPassed appends one header of a message.
func appendPassed(dst []byte, v frame.Version, name, value string, stamped stamps) []byte {
	if stamped.timestamp && name == "timestamp" || stamped.expires && name == expiresHeader || !frame.Representable(v, name, value) {
		return dst
	}
	return frame.AppendHeader(dst, v, name, value)
}
