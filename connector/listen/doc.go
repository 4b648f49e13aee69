// Package listen makes a net.Conn of every transport that STOMP runs over, so that the session knows none of them.
// WebSocket follows RFC 6455 and the subprotocol names of the STOMP 1.0 to 1.2 registrations.
package listen
