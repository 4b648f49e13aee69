package router

import (
	"errors"
	"slices"
)

// Pattern is a messaging pattern: what happens to a message sent to a destination. The zero value is no pattern.
type Pattern uint8

// The patterns. Reply, TempQueue and TempTopic are local to a connection and have no NATS subject.
const (
	Events    Pattern = iota + 1 // /topic/: at most once, to all who listen.
	Store                        // /topic-store/: stored and replayable.
	Queues                       // /queue/: stored, one consumer at a time.
	Commands                     // /command/: a request that does something.
	Queries                      // /query/: a request that asks something.
	Reply                        // /reply/: where the answers to requests arrive.
	TempQueue                    // /temp-queue/: a private reply address, as in RabbitMQ and ActiveMQ.
	TempTopic                    // /temp-topic/: the same under its other name.
	patternEnd
)

// patterns holds the two names of each pattern: the resource that a policy names, and the prefix that a MESSAGE carries.
var patterns = [patternEnd]struct{ resource, prefix string }{
	Events:    {"events", "/topic/"},
	Store:     {"events_store", "/topic-store/"},
	Queues:    {"queues", "/queue/"},
	Commands:  {"commands", "/command/"},
	Queries:   {"queries", "/query/"},
	Reply:     {"reply", "/reply/"},
	TempQueue: {"temp_queue", "/temp-queue/"},
	TempTopic: {"temp_topic", "/temp-topic/"},
}

// String returns the name of the pattern as a policy's resource, such as "events_store", and "unknown" for a value
// that is no pattern.
func (p Pattern) String() string {
	if p == 0 || p >= patternEnd {
		return "unknown"
	}
	return patterns[p].resource
}

// wildcards reports whether a SUBSCRIBE to the pattern may hold wildcard tokens.
func (p Pattern) wildcards() bool { return p == Events || p == Store }

// Use says what a destination is parsed for.
type Use uint8

// The uses. Only Subscribe permits wildcards.
const (
	Send Use = iota
	Subscribe
)

// Route is a parsed destination. It is a value without references into the destination's text, free to keep and to
// compare with ==.
type Route struct {
	Pattern  Pattern
	Channel  string // Channel is in dot form, with ">" for a wildcard tail; of a local pattern it is the name.
	Subject  string // Subject is the NATS subject; empty for Reply, TempQueue and TempTopic.
	Wildcard bool   // Wildcard is true if a token of the channel is "*" or ">"; never for Send.
	Wide     bool   // Wide is true if the subject's first token is a wildcard: it would match reserved subjects too.

	Topic bool     // Topic is true for a stored topic: of pattern Store, but written and shown as /topic/.
	Mixed bool     // Mixed is true for a wildcard of Events that reaches stored topics too; see StoredPart.
	Bound *Binding // Bound is the binding that gave the route its subject, which may then be empty; nil without. Read only.
}

// Router parses destinations. It is immutable and safe for concurrent use.
type Router struct {
	subjects [patternEnd]string // Subject prefix of each pattern.
	roots    []string           // First tokens of the subject prefixes that a topic without prefix must keep clear of.
	fallback Pattern            // Pattern of an unknown first segment; 0 refuses it.
	bindings []bound
	stored   channels // The stored topics.
}

// New returns a Router for c, or an error that joins all faults found in c, each beginning with the path of the
// setting at fault, such as "destinations.subjects.queue".
func New(c Config) (*Router, error) {
	fallback, err := c.check()
	if err != nil {
		return nil, err
	}
	r := &Router{fallback: fallback}
	for _, s := range c.Subjects.list() {
		r.subjects[s.pattern] = s.prefix
		if root := firstToken(s.prefix); s.pattern != Events && !slices.Contains(r.roots, root) {
			r.roots = append(r.roots, root)
		}
	}
	// The destinations in the configuration are what they say, whatever else is configured.
	stored, bindings := *r, *r
	if err := errors.Join(bindings.compile(c.Bindings), stored.compileStored(c.StoredTopics)); err != nil {
		return nil, err
	}
	r.bindings, r.stored = bindings.bindings, stored.stored
	return r, nil
}
