// Package identity tests who a client is, from the socket to NATS: tokens, users, certificates and their ends over every
// transport, what the audit log says of it and what no output ever shows, and each limit of a connection.
package identity
