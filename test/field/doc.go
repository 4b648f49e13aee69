// Package field holds natstomp to what was seen in the field: octets that real clients wrote, replayed against the
// running server; faults that users of other brokers reported, by their ids; headers of every kind on every pattern. It
// also keeps the books: which test holds which report, and which script holds which clause of the design.
package field
