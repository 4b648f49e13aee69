package bridge

import (
	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

// View is how a receiver wants its messages written.
type View struct {
	// Version decides the escaping.
	Version frame.Version
	// Destination is the value of the destination header; empty: made from each message's subject.
	Destination string

	route router.Route // the subscription's, where Destination is empty
}

// of returns the view of a subscription of route.
func (v View) of(route router.Route) View {
	if v.Destination == "" {
		v.route = route
	}
	return v
}

// destination is what the header says for a message on subject. false: a native publisher's subject that no STOMP client
// could name.
func (v *View) destination(r *router.Router, subject string) (string, bool) {
	if v.Destination != "" {
		return v.Destination, true
	}
	return r.Shown(v.route, subject)
}
