// Package bridge carries STOMP's messages to NATS and back, one file per pattern: topics with local fan-out (fanout.go),
// queues on JetStream with an own pull loop (queues.go, pull.go), requests (request.go) and their STOMP responders
// (respond.go), reply addresses (address.go). It knows nothing of connections or of rights: package connector asks, and
// takes deliveries through the small interfaces TopicReceiver, QueueReceiver and Responder.
//
// Nothing here blocks on a client. What may block on NATS says so.
package bridge
