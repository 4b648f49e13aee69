// Package interop shows that real client libraries work with natstomp: stomp.py (Debian's python3-stomp) and go-stomp,
// both through the same scenarios, with each other, and side by side with native NATS clients on nats.go.
//
// A scenario is one function per client of the same name (testdata/stomp_client.py, gostomp_*_test.go) that does what a
// program with that library would do and reports what it saw as events. One test per scenario asserts on the events of
// both. The server is the natstomp program, run by test/testserver.
package interop
