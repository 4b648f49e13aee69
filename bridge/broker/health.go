package broker

import (
	"errors"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// Fault returns why the embedded server stores nothing any more, in all or in some streams, although it answers: a full
// disk as a rule, after which JetStream writes to such a stream only when it has been started anew. It returns nil where
// no such thing is known, and for an external NATS, whose health its own monitoring tells.
func (b *Broker) Fault() error {
	if b.External() || !b.srv.Running() {
		return nil
	}
	var faults []string
	for _, e := range b.srv.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type != server.HealthzErrorAccount { // The directory of an account that is configured no more.
			faults = append(faults, e.Error)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New("embedded NATS: " + strings.Join(faults, "; ") + "; once the cause is gone, restart natstomp")
}
