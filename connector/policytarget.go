package connector

import (
	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/router"
)

// PolicyTarget returns what a policy is asked about a destination under the settings of c: the resources, each of which has
// to be allowed, and the channel. No resource means that the destination needs no right. It is what a SEND (write) and a
// SUBSCRIBE (read) do; the error is the text that they are refused with.
func (c Config) PolicyTarget(a authz.Action, destination string) (resources []string, channel string, err error) {
	r, err := router.New(c.Destinations.router())
	if err != nil {
		return nil, "", err
	}
	use := router.Subscribe
	if a == authz.Write {
		use = router.Send
	}
	route, err := r.Parse(destination, use)
	if err != nil {
		return nil, "", err
	}
	return targets(&route), route.Channel, nil
}

// targets are the resources that a route needs a right on. A wildcard that reaches stored topics needs it for both kinds;
// what stays on the connection needs none.
func targets(route *router.Route) []string {
	switch {
	case isLocal(route.Pattern):
		return nil
	case route.Mixed:
		return []string{route.Pattern.String(), router.Store.String()}
	}
	return []string{route.Pattern.String()}
}
