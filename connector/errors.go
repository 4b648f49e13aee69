package connector

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/bridge/broker"
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// ClientError is a fault whose text the client sees in an ERROR frame.
type ClientError struct {
	// Text names what is wrong, and the header or limit; it holds nothing internal.
	Text string
	// headers are further headers of the ERROR frame.
	headers []frame.Header
	// reason is what the metrics count it as; empty for request.
	reason string
}

// Error returns the text.
func (e *ClientError) Error() string { return e.Text }

func refuse(format string, args ...any) *ClientError {
	return &ClientError{Text: fmt.Sprintf(format, args...)}
}

// The fixed texts of DESIGN section 3.
var (
	errConnectionLimit = &ClientError{Text: "connection limit reached"}
	errRPCSubscribe    = &ClientError{Text: "cannot subscribe to RPC destinations"}
	errShutdown        = &ClientError{Text: "server shutting down"}
	errSlowConsumer    = &ClientError{Text: "slow consumer"}
	errQueueFull       = &ClientError{Text: "queue full"}
	errKicked          = &ClientError{Text: "disconnected by an operator", reason: "kicked"}
)

var (
	// errDisconnect ends a session after DISCONNECT.
	errDisconnect = errors.New("disconnected")
	// errFailed ends reading because an ERROR is already on its way.
	errFailed = errors.New("failed")
	// errTimeout ends a session whose peer was silent for too long.
	errTimeout = errors.New("no heart-beat")
)

// silent says that nobody is there to read an ERROR about err.
func silent(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, errTimeout) || errors.Is(err, os.ErrDeadlineExceeded) || isNetError(err)
}

func isNetError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// clientError turns any fault into what the client is told. ok is false for a fault that only the log may show.
func clientError(err error) (e *ClientError, ok bool) {
	var (
		client *ClientError
		syntax *frame.SyntaxError
		limit  *frame.LimitError
		dest   *router.Error
	)
	switch {
	case errors.As(err, &client):
		return client, true
	case errors.As(err, &syntax):
		return refuse("%s", syntax.Text), true
	case errors.As(err, &limit):
		return limitError(limit), true
	case errors.As(err, &dest):
		return refuse("%s", dest.Text), true
	case errors.Is(err, bridge.ErrQueueFull):
		return errQueueFull, true
	case errors.Is(err, bridge.ErrQueueLimit):
		return refuse("no more queues can be created: limits.queues is reached"), true
	case errors.Is(err, bridge.ErrQueueName):
		return refuse("the queue cannot be made: its stream's name is taken, choose another channel"), true
	case errors.Is(err, bridge.ErrDenied):
		return refuse("the NATS server does not let natstomp use this destination"), true
	case errors.Is(err, bridge.ErrNoRoom):
		return refuse("NATS has no room for one more queue: each reserves queues.max_bytes"), true
	case errors.Is(err, bridge.ErrNoStream):
		return refuse("the stream of the destination was removed from NATS"), true
	case errors.Is(err, bridge.ErrNoDurable):
		return refuse("the durable subscription was deleted"), true
	case errors.Is(err, bridge.ErrDurableFilter):
		return refuse("the durable subscription has another destination, which cannot be changed: UNSUBSCRIBE with the same header deletes it"), true
	case errors.Is(err, bridge.ErrDurableStart):
		return refuse("the durable subscription began elsewhere, which cannot be changed: UNSUBSCRIBE with the same header deletes it"), true
	case errors.Is(err, bridge.ErrDurableLimit):
		return refuse("no more durable subscriptions can be made: limits.durables is reached"), true
	case errors.Is(err, bridge.ErrForeignStore):
		return refuse("stored topics are not available: on NATS a stream that is not natstomp's has their name"), true
	case errors.Is(err, bridge.ErrNotThere):
		return refuse("the stream or consumer that the destination is bound to does not exist (destinations.bindings)"), true
	case errors.Is(err, bridge.ErrNotShared):
		return refuse("the consumer that the destination is bound to is no pull consumer with explicit acks (destinations.bindings)"), true
	case errors.Is(err, bridge.ErrNoSubject):
		return refuse("nothing can be sent to the destination: its binding names no subject (destinations.bindings)"), true
	case errors.Is(err, bridge.ErrNoConsumer):
		return refuse("nothing can be received from the destination: its binding names no consumer (destinations.bindings)"), true
	case errors.Is(err, bridge.ErrNoBatch):
		return refuse("COMMIT: the stream that the destination is bound to takes no transactions, nothing was stored"), true
	case errors.Is(err, bridge.ErrNoTTL):
		return refuse("headers expires and expiration: the stream that the destination is bound to keeps no message by its own time (allow_msg_ttl)"), true
	case errors.Is(err, bridge.ErrNoDelay):
		return refuse("messages of a bound queue cannot be delayed (destinations.bindings)"), true
	case errors.Is(err, bridge.ErrTimeout):
		return refuse("not confirmed by NATS within nats.publish_timeout"), true
	case errors.Is(err, bridge.ErrTooLarge):
		return refuse("message with its headers is larger than NATS takes (max_payload)"), true
	case errors.Is(err, bridge.ErrHeaders):
		return refuse("headers too large: NATS stores at most 64 KiB of headers with a message, what natstomp adds included"), true
	case errors.Is(err, bridge.ErrAddress):
		return refuse("destination is no reply address: only the reply-to of a MESSAGE can be answered"), true
	case errors.Is(err, bridge.ErrStopped):
		return errShutdown, true
	case errors.Is(err, broker.ErrNotReady), bridge.Away(err):
		return refuse("NATS is not available, try again later"), true
	}
	if code := bridge.Refusal(err); code != 0 {
		return refuse("NATS refused it%s (JetStream error %d)", refusals[code], code), false
	}
	return refuse("internal error"), false
}

// refusals are what a client should know of why JetStream refused something, by its code.
var refusals = map[int]string{
	10049: ": it cannot write to its store",
	10054: ": the message is larger than the stream takes",
	10077: ": it cannot write to its store",
	10109: ": the stream is sealed",
}

func limitError(e *frame.LimitError) *ClientError {
	if e.Bodiless != frame.Unknown {
		return refuse("%s carries no body, and its NUL did not follow its headers within %d octets (limits.%s)", e.Bodiless, e.Max, e.Name)
	}
	got := ""
	if e.Got > 0 {
		got = fmt.Sprintf(" (got %d)", e.Got)
	}
	what := map[string]string{
		"headers":              "too many headers",
		"header_line":          "header line too long",
		"passcode":             "passcode too long",
		"body":                 "body too large",
		"frame_before_connect": "frame too large before CONNECT",
	}[e.Name]
	if what == "" {
		what = "limit exceeded"
	}
	return refuse("%s: limits.%s is %d%s", what, e.Name, e.Max, got)
}

// printable makes text safe for a header of any version and for a log line.
func printable(text string) string {
	const most = 512
	if len(text) > most {
		text = text[:most]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfffd {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// errorFrame is the ERROR that tells e (DESIGN section 3). The content type is not exactly text/plain: that, with a
// small content-length, kills the Node client stompit 1.0.0.
func errorFrame(v frame.Version, connected bool, e *ClientError, receipt string) []byte {
	text := printable(e.Text)
	if !connected {
		// Nobody has agreed on an escaping yet.
		text = strings.ReplaceAll(text, `\`, "/")
	}
	f := frame.Frame{Command: frame.Error, Body: []byte(text)}
	add := func(name, value string) {
		f.Headers = append(f.Headers, frame.Header{Name: []byte(name), Value: []byte(value)})
	}
	add("message", text)
	add("content-type", "text/plain;charset=utf-8")
	if receipt != "" {
		add("receipt-id", receipt)
	}
	f.Headers = append(f.Headers, e.headers...)
	return frame.Append(nil, v, &f)
}
