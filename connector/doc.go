// Package connector is the STOMP server: it accepts connections, speaks STOMP 1.0, 1.1 and 1.2 with them and hands what
// they ask for to package bridge, which knows NATS. The wire format lives in package frame, the grammar of destinations
// in package router.
//
// A Server is made by New from a Config, started by Start and ended by Shutdown. All exported methods are safe for
// concurrent use.
package connector
