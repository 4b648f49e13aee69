package router_test

import (
	"testing"

	"github.com/natstomp/natstomp/router"
)

var benchDestinations = []struct {
	name, destination string
	use               router.Use
}{
	{"topic", "/topic/orders/eu/created", router.Send},
	{"queue", "/queue/orders.eu.created", router.Send},
	{"wildcard", "/topic/orders/*/created/#", router.Subscribe},
	{"unicode", "/topic/bestellung/gr\u00f6\u00dfe", router.Send},
}

// TestAllocations holds the hot path to what its comments promise.
func TestAllocations(t *testing.T) {
	r := newRouter(t, nil)
	for _, b := range benchDestinations {
		if got := testing.AllocsPerRun(100, func() { _, _ = r.Parse(b.destination, b.use) }); got > 1 {
			t.Errorf("Parse(%q): got %v allocations, want at most 1", b.destination, got)
		}
	}
	if got := testing.AllocsPerRun(100, func() { r.Reserved("orders.eu.created") }); got != 0 {
		t.Errorf("Reserved: got %v allocations, want 0", got)
	}
	if got := testing.AllocsPerRun(100, func() { r.Destination(router.Events, "orders.eu.created") }); got > 1 {
		t.Errorf("Destination: got %v allocations, want at most 1", got)
	}
}

func BenchmarkParse(b *testing.B) {
	r := newRouter(b, nil)
	for _, bb := range benchDestinations {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Parse(bb.destination, bb.use); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReserved(b *testing.B) {
	r := newRouter(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		r.Reserved("orders.eu.created")
	}
}

func BenchmarkDestination(b *testing.B) {
	r := newRouter(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		r.Destination(router.Events, "orders.eu.created")
	}
}
