package router

import (
	"errors"
	"fmt"
	"strings"
)

// maxPrefix bounds a subject prefix, in octets. With a destination of at most maxDestination octets it keeps every
// subject within the 1,024 octets that are safe on a NATS control line.
const maxPrefix = 512

// Config is the part of the configuration that the grammar depends on. Start from DefaultConfig: the zero value is
// refused by New.
type Config struct {
	DefaultPattern string   // DefaultPattern takes an unknown first segment: "events" (default), "queues", "store" or "none" to refuse it.
	Subjects       Subjects // Subjects places the patterns on NATS.

	StoredTopics []string  // StoredTopics are topics, wildcards allowed, that are kept as those of /topic-store/ are.
	Bindings     []Binding // Bindings map destinations onto what exists on NATS.
}

// Subjects holds the NATS subject prefix of each pattern. A prefix ends with a dot and is written before the channel.
// Only Topic may be empty; then the first tokens of the other prefixes are reserved and no topic channel may begin
// with one of them, with "$" or with "_". No prefix may begin with another, or with "$" or "_".
type Subjects struct {
	Topic   string // Topic is the prefix of /topic/; default empty.
	Store   string // Store is the prefix of /topic-store/; default "stomp.store.".
	Queue   string // Queue is the prefix of /queue/; default "stomp.queue.".
	Command string // Command is the prefix of /command/; default "stomp.command.".
	Query   string // Query is the prefix of /query/; default "stomp.query.".
}

// DefaultConfig returns the defaults named at the fields.
func DefaultConfig() Config {
	return Config{
		DefaultPattern: "events",
		Subjects: Subjects{
			Store:   "stomp.store.",
			Queue:   "stomp.queue.",
			Command: "stomp.command.",
			Query:   "stomp.query.",
		},
	}
}

// placed is one subject prefix with the name of its setting.
type placed struct {
	pattern Pattern
	key     string
	prefix  string
}

func (s Subjects) list() [5]placed {
	return [5]placed{
		{Events, "destinations.subjects.topic", s.Topic},
		{Store, "destinations.subjects.store", s.Store},
		{Queues, "destinations.subjects.queue", s.Queue},
		{Commands, "destinations.subjects.command", s.Command},
		{Queries, "destinations.subjects.query", s.Query},
	}
}

// check returns the pattern of unknown first segments (0 for none) and all faults of c joined.
func (c Config) check() (Pattern, error) {
	var faults []error
	fallback, err := c.fallback()
	if err != nil {
		faults = append(faults, err)
	}
	list := c.Subjects.list()
	for i, s := range list {
		if err := checkPrefix(s); err != nil {
			faults = append(faults, err)
			continue
		}
		for _, earlier := range list[:i] {
			if overlap(earlier.prefix, s.prefix) {
				faults = append(faults, fmt.Errorf("%s: %q overlaps %q of %s", s.key, s.prefix, earlier.prefix, earlier.key))
			}
		}
	}
	return fallback, errors.Join(faults...)
}

func (c Config) fallback() (Pattern, error) {
	switch c.DefaultPattern {
	case "events":
		return Events, nil
	case "queues":
		return Queues, nil
	case "store":
		return Store, nil
	case "none":
		return 0, nil
	}
	return 0, fmt.Errorf("destinations.default_pattern: %q is none of events, queues, store, none", c.DefaultPattern)
}

// overlap reports whether a subject could lie under both prefixes. An empty one is kept apart by the reserved roots.
func overlap(a, b string) bool {
	return a != "" && b != "" && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

func checkPrefix(s placed) error {
	if s.prefix == "" {
		if s.pattern == Events {
			return nil
		}
		return fmt.Errorf("%s: must not be empty", s.key)
	}
	if len(s.prefix) > maxPrefix {
		return fmt.Errorf("%s: has %d octets, the limit is %d", s.key, len(s.prefix), maxPrefix)
	}
	if err := checkText(s.prefix); err != nil {
		return fmt.Errorf("%s: %q: %w", s.key, s.prefix, err)
	}
	if s.prefix[0] == '$' || s.prefix[0] == '_' {
		return fmt.Errorf(`%s: %q begins with "$" or "_", which NATS and natstomp keep for themselves`, s.key, s.prefix)
	}
	if strings.ContainsAny(s.prefix, "*>/") {
		return fmt.Errorf(`%s: %q holds "*", ">" or "/"`, s.key, s.prefix)
	}
	if s.prefix[len(s.prefix)-1] != '.' {
		return fmt.Errorf("%s: %q does not end with a dot", s.key, s.prefix)
	}
	if s.prefix[0] == '.' || strings.Contains(s.prefix, "..") {
		return fmt.Errorf("%s: %q: %w", s.key, s.prefix, errEmptyToken)
	}
	return nil
}
