// Package stompclient is a STOMP client for tests. It shares no code with the server: frames are written and read by a
// codec of its own, so that a fault in one is not hidden by the same fault in the other. It sends what it is told to,
// also octets that are no STOMP at all, and is strict about what it reads: a frame that breaks a rule of DESIGN section
// 3 is an error that names the rule.
package stompclient
