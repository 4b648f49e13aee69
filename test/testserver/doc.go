// Package testserver runs the real natstomp program for tests: built once per test process, with the race detector
// where the test has it, on loopback ports of its own and a store of its own. A server that a test ends must exit with
// 0 within the time DESIGN section 8 promises, and its log must show neither a panic nor a data race.
//
// A test package that uses it calls Clean at the end of its TestMain.
package testserver
