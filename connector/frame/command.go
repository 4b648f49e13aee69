package frame

// Command is the command of a frame.
type Command uint8

// The commands of the three versions; Stomp came with 1.1. Unknown is no command: a Decoder
// refuses any other text with a [SyntaxError].
const (
	Unknown Command = iota
	Connect
	Stomp
	Send
	Subscribe
	Unsubscribe
	Ack
	Nack
	Begin
	Commit
	Abort
	Disconnect
	Connected
	Message
	Receipt
	Error
)

var commandNames = [...]string{
	Unknown:     "unknown",
	Connect:     "CONNECT",
	Stomp:       "STOMP",
	Send:        "SEND",
	Subscribe:   "SUBSCRIBE",
	Unsubscribe: "UNSUBSCRIBE",
	Ack:         "ACK",
	Nack:        "NACK",
	Begin:       "BEGIN",
	Commit:      "COMMIT",
	Abort:       "ABORT",
	Disconnect:  "DISCONNECT",
	Connected:   "CONNECTED",
	Message:     "MESSAGE",
	Receipt:     "RECEIPT",
	Error:       "ERROR",
}

// String returns the command as it stands on the wire, and "unknown" for any other value.
func (c Command) String() string {
	if int(c) >= len(commandNames) {
		c = Unknown
	}
	return commandNames[c]
}

// hasBody reports whether a frame of this command may carry a body.
// STOMP 1.2, Body: only SEND, MESSAGE and ERROR.
func (c Command) hasBody() bool {
	return c == Send || c == Message || c == Error
}

// raw reports whether the headers of a frame of this command are never escaped.
// STOMP 1.2, Value Encoding: CONNECT and CONNECTED; STOMP is another name of CONNECT.
func (c Command) raw() bool {
	return c == Connect || c == Stomp || c == Connected
}

// parseCommand returns Unknown for a line that is not exactly a command.
func parseCommand(line []byte) Command {
	switch string(line) {
	case "CONNECT":
		return Connect
	case "STOMP":
		return Stomp
	case "SEND":
		return Send
	case "SUBSCRIBE":
		return Subscribe
	case "UNSUBSCRIBE":
		return Unsubscribe
	case "ACK":
		return Ack
	case "NACK":
		return Nack
	case "BEGIN":
		return Begin
	case "COMMIT":
		return Commit
	case "ABORT":
		return Abort
	case "DISCONNECT":
		return Disconnect
	case "CONNECTED":
		return Connected
	case "MESSAGE":
		return Message
	case "RECEIPT":
		return Receipt
	case "ERROR":
		return Error
	default:
		return Unknown
	}
}
