// Package rights attacks a server that has a policy, as clients that do not have the rights would: over TCP, TLS and
// WebSocket, with every spelling of a destination and on every way on which a message is written, kept and delivered. What
// the policy itself says to a question is the business of package authz and its tests.
package rights
