// Package frame reads and writes STOMP frames in the versions 1.0, 1.1 and 1.2.
//
// A [Decoder] cuts a stream of octets into frames, whatever the borders of the
// reads are, and holds every limit before the memory it guards is taken. [Append]
// and [AppendHeader] write frames into a buffer of the caller. Neither allocates per frame.
// [Negotiate] and [ParseHeartbeat] read the two headers of CONNECT that decide how
// the connection goes on.
//
// The specifications are https://stomp.github.io/stomp-specification-1.0.html and its
// successors 1.1 and 1.2. Where real clients force a choice that the specifications leave open,
// the comment at the place says which.
//
// The package knows octets only. What a command means, which headers it must have and how a
// fault is answered is decided by package connector; package bridge uses the package to build
// MESSAGE frames. It imports nothing but the standard library.
package frame
