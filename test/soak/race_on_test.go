//go:build race

package soak_test

// slowness is by how much the race detector slows down the server, and this test beside it.
const slowness = 4
