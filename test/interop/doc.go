// Package interop shows that real client libraries work with natstomp: stomp.py (Debian's python3-stomp), go-stomp, and of
// npm stompit over TCP and @stomp/stompjs over WebSocket, that one in Node and in Chromium; all through the same scenarios,
// with each other, and side by side with native NATS clients on nats.go. The older stompjs 2 and webstomp-client run some.
//
// A scenario is one function of the same name in each language (testdata/stomp_client.py, gostomp_*_test.go,
// testdata/js/*scenarios.mjs) that does what a program with that library would do and reports what it saw as events. One
// test per scenario asserts on the events of all. A new one is a function in each of these, or only in those where it makes
// sense, and a test. What a library makes of headers is in quirks_test.go. The server is the natstomp program, run by
// test/testserver.
//
// Chromium runs once, on a page that the test serves; each scenario is a frame in it, which posts its events.
package interop
