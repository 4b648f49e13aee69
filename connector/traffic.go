package connector

import (
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/natstomp/natstomp/connector/frame"
	"github.com/natstomp/natstomp/router"
)

const (
	commands = int(frame.Error) + 1
	patterns = int(router.TempTopic) + 1
	// sentKinds is how many commands a server sends: CONNECTED to ERROR.
	sentKinds = commands - int(frame.Connected)
)

// sentFrames counts frames of the server, by command from CONNECTED on.
type sentFrames [sentKinds]uint32

func (s *sentFrames) count(c frame.Command) { s[c-frame.Connected]++ }

func (s *sentFrames) add(more sentFrames) {
	for i, n := range more {
		s[i] += n
	}
}

// traffic is what one connection has carried. Each part is written by one goroutine, or with conn.mu held, and read by
// whoever asks: the memory is the connection's own, so counting costs no contention.
type traffic struct {
	received  [frame.Connected]atomic.Uint64 // by command
	sent      [sentKinds]atomic.Uint64       // by command from CONNECTED on
	delivered [patterns]atomic.Uint64        // by pattern
	octetsIn  atomic.Uint64
	octetsOut atomic.Uint64
}

// read counts a frame of the client. A command that is none of a client's counts as unknown.
func (t *traffic) read(c frame.Command) {
	if int(c) >= len(t.received) {
		c = frame.Unknown
	}
	t.received[c].Add(1)
}

// wrote counts what is in the socket.
func (t *traffic) wrote(burst []chunk) {
	var frames sentFrames
	octets := 0
	for i := range burst {
		octets += len(burst[i].data)
		frames.add(burst[i].frames)
	}
	t.octetsOut.Add(uint64(octets))
	for i, n := range frames {
		if n > 0 {
			t.sent[i].Add(uint64(n))
		}
	}
}

// sums is the traffic of several connections. It is not safe for concurrent use.
type sums struct {
	received  [commands]uint64
	sent      [commands]uint64
	delivered [patterns]uint64
	octetsIn  [transports]uint64
	octetsOut [transports]uint64
}

func (s *sums) add(t *traffic, via transport) {
	for i := range t.received {
		s.received[i] += t.received[i].Load()
	}
	for i := range t.sent {
		s.sent[int(frame.Connected)+i] += t.sent[i].Load()
	}
	for i := range t.delivered {
		s.delivered[i] += t.delivered[i].Load()
	}
	s.octetsIn[via] += t.octetsIn.Load()
	s.octetsOut[via] += t.octetsOut.Load()
}

// total is the sum over an array of counters.
func total(counters []atomic.Uint64) (n uint64) {
	for i := range counters {
		n += counters[i].Load()
	}
	return n
}

// transport is what carries a connection.
type transport uint8

const (
	viaTCP transport = iota
	viaTLS
	viaWS
	viaWSS
	viaLocal // Server.Subscribe and Server.Publish.
	transports
)

var transportNames = [transports]string{"tcp", "tls", "ws", "wss", "local"}

func (t transport) String() string { return transportNames[t] }

// transportOf tells what carries a connection. A WebSocket says it by itself, because package listen hides its type.
func transportOf(nc net.Conn) transport {
	switch nc := nc.(type) {
	case *tls.Conn:
		return viaTLS
	case *localEnd:
		return viaLocal
	case interface{ Secure() bool }:
		if nc.Secure() {
			return viaWSS
		}
		return viaWS
	}
	return viaTCP
}
