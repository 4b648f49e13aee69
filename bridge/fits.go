package bridge

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/natstomp/natstomp/router"
)

// ErrHeaders says that a message has more octets of headers than JetStream stores.
var ErrHeaders = errors.New("headers too large")

const (
	// storedHeaders is how many octets of headers a message may have that is stored: JetStream's limit of 64 KiB less
	// what is added behind this check, by natstomp to the parts of an atomic batch and by the server to what was delayed.
	storedHeaders = 64<<10 - 1 - 512
	// storeRoom is what natstomp itself adds to the headers of a stored message.
	storeRoom = 2 << 10
)

// headerSize is the octets of a header block as NATS counts them.
func headerSize(h nats.Header) int {
	if len(h) == 0 {
		return 0
	}
	size := len("NATS/1.0\r\n\r\n")
	for name, values := range h {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	return size
}

// Fits returns ErrTooLarge, or ErrHeaders, for a message that NATS would refuse by its size.
func (b *Bridge) Fits(s Send) error {
	headers := headerSize(toNATS(s.Headers))
	if kept := s.Route.Pattern == router.Queues || s.Route.Pattern == router.Store; kept && headers > storedHeaders {
		return fmt.Errorf("%w: %d octets", ErrHeaders, headers)
	}
	if int64(len(s.Body)+headers+storeRoom) > b.cfg.Data.MaxPayload() {
		return ErrTooLarge
	}
	return nil
}

// fits returns ErrHeaders for a parcel that JetStream would refuse by its headers.
func (p *parcel) fits() error {
	for _, m := range p.msgs {
		if size := headerSize(m.Header); size > storedHeaders {
			return fmt.Errorf("%w: %d octets", ErrHeaders, size)
		}
	}
	return nil
}

// Refusal is the code with which JetStream refused what led to err; 0 if it was not JetStream.
func Refusal(err error) int {
	var publish *apiError
	if errors.As(err, &publish) {
		return publish.Code
	}
	var call *jetstream.APIError
	if errors.As(err, &call) {
		return int(call.ErrorCode)
	}
	return 0
}
