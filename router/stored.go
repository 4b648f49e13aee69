package router

import (
	"errors"
	"fmt"
	"strings"
)

// store turns the route of a stored topic into what it is on NATS, and marks a wildcard that reaches some.
func (r *Router) store(route *Route) {
	switch {
	case len(r.stored) == 0:
	case !route.Wildcard && r.stored.has(route.Channel), route.Wildcard && r.stored.covers(route.Channel):
		*route = r.storedRoute(*route)
	case route.Wildcard:
		route.Mixed = len(r.stored.within(route.Channel)) > 0
	}
}

func (r *Router) storedRoute(route Route) Route {
	route.Pattern, route.Topic = Store, true
	route.Subject = r.subjects[Store] + route.Channel
	route.Wide, route.Mixed = false, false
	return route
}

// StoredPart returns the route of the stored topics that a Mixed route reaches, and the subjects that hold them. The
// subjects may hold more than that; Shown tells.
func (r *Router) StoredPart(route Route) (Route, []string) {
	filters := r.stored.within(route.Channel)
	for i, f := range filters {
		filters[i] = r.subjects[Store] + f
	}
	return r.storedRoute(route), filters
}

// compileStored parses the stored topics. Its errors begin with the path of the setting at fault.
func (r *Router) compileStored(list []string) error {
	var faults []error
	var stored channels
	for i, pattern := range list {
		route, err := r.Parse(pattern, Subscribe)
		if err == nil && route.Pattern != Events {
			err = fmt.Errorf("%q is no topic", pattern)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("destinations.stored_topics[%d]: %w", i, err))
			continue
		}
		stored = append(stored, strings.Split(route.Channel, "."))
	}
	r.stored = stored
	return errors.Join(faults...)
}
