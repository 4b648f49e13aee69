// Package cluster tests natstomp on an external NATS: real nats-server processes on loopback, alone and as a cluster of
// three, which are killed, stopped and cut off under load. What a client was told must hold, and no client of a
// natstomp that lives may be closed for what happens behind it.
//
// The nats-server program is built, once for each test process, from the module that natstomp embeds.
package cluster
