// Package metrics shows what a server does to Prometheus.
//
// What is counted per message is counted by the connections themselves, each in its own memory; a scrape asks for the sum
// of it (Sample). Only what happens seldom, or has a distribution, is counted here. No label value comes from a client.
package metrics
