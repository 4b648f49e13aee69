// Package soak shows what holds under load and faults: readers that do not read, consumers dropped in the middle of a
// pull, processes killed, hostile octets, connections that come and go. Each test runs the natstomp program itself, by
// test/testserver, and talks to it over sockets, by test/stompclient and nats.go.
//
// What must never happen (a loss, a second delivery without its mark, a frame for somebody else) is asserted in every
// run. What is a matter of time is compared with a run of the same kind without the fault, in the same test.
package soak
