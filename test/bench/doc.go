// Package bench measures natstomp against NATS itself (DESIGN section 12): topics, queues and latency through STOMP,
// through nats.go and, for topics, through precomputed lines of the NATS protocol, all on one natstomp process with its
// embedded server at durability os, in one run. The peers take turns in short slices, so that whatever else the machine
// does meets all of them alike: compare the ratios, not the absolute figures.
//
// With taskset and two cores the server runs on core 0 and the load on core 1; the first line of output says whether.
// A -benchtime in iterations (1x) only shows that everything works: slices are then too short to measure anything, and no
// ratio is reported.
package bench
