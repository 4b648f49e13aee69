// Package rig is what the tests of whole servers share: a server in this process, clients whose faults end the test,
// an authority that signs certificates, a NATS client beside them, and waiting. Servers that are processes of their own
// are those of test/testserver.
package rig
