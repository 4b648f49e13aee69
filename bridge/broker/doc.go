// Package broker gives natstomp its NATS: an in-process nats-server with JetStream on disk, reached through in-process
// connections, one per role. It also keeps the marks file, which tells after a restart what may have been delivered
// before (DESIGN section 4.3).
//
// The server's own documentation of JetStream and of server.Options is the reference for what is set here.
package broker
