// Command natstomp serves STOMP clients on NATS. It reads the configuration (file, environment, flags), fills a
// connector.Config with it, runs a connector.Server and turns signals into a clean stop. All that a client can see is
// done by package connector.
//
// Exit codes: 0 for done, 1 for failed, 2 for a command line that is not understood.
package main

//go:generate go test -count=1 -run TestGenerated . -update
