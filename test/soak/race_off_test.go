//go:build !race

package soak_test

// slowness is 1 where nothing slows down the server.
const slowness = 1
