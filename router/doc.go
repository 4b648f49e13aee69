// Package router turns a STOMP destination into a Route and back: which messaging pattern, which channel,
// which NATS subject. It knows the whole destination grammar and nothing else: it opens no connection, checks
// no right and keeps no state.
//
// A destination is a path. Its first segment selects the pattern, the rest is the channel in dot form:
//
//	/topic/a/b  =  /topic/a.b  =  /events/a/b   ->  Events, channel a.b, subject a.b
//	/queue/a/b                                  ->  Queues, channel a.b, subject stomp.queue.a.b
//	/reply/r1                                   ->  Reply, name r1, no subject
//
// A topic that is kept (Config.StoredTopics) is the channel of that name of /topic-store/, in rights and subject; only its
// destination is written otherwise. A binding (Config.Bindings) replaces the subject of a Route and nothing else.
//
// The grammar is written down for users in docs/destinations.md. Three properties hold for every router that
// New returns, and the tests check them:
//
//   - canonical: the rights (Pattern and Channel) and the Subject of a Route come from the same tokens, so two
//     spellings of one channel can never be judged apart from each other;
//   - injective: two Routes that differ in pattern or channel never share a subject, unless bindings give them one;
//   - inert: a subject holds no blank, no control character and no empty token, has at most 1,024 octets, and
//     holds a wildcard token only when the Route says so. It may be written to a NATS protocol line as it is.
//
// Neighbours: connector calls Parse for each SEND and SUBSCRIBE, bridge uses the Route and calls Destination and
// Reserved for what a wildcard subscription receives. The package uses the standard library only.
package router
