package router_test

import (
	"testing"

	"github.com/natstomp/natstomp/router"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, channel string
		want             bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"a", "a.b", false},
		{"a.b", "a", false},
		{"a.b", "a.b", true},
		{"*", "a", true},
		{"*", "a.b", false},
		{"a.*", "a.b", true},
		{"a.*", "a", false},
		{"a.*.c", "a.b.c", true},
		{"a.*.c", "a.b.d", false},
		{"a.*.c", "a.b.c.d", false},
		{">", "a", true},
		{">", "a.b.c", true},
		{"a.>", "a", false},
		{"a.>", "a.b", true},
		{"a.>", "a.b.c", true},
		{"a.>", "b.a", false},
		{"*.>", "a", false},
		{"*.>", "a.b", true},
		{"A", "a", false},
		{"c#", "c#", true},
	} {
		if got := router.Match(tt.pattern, tt.channel); got != tt.want {
			t.Errorf("%q and %q: got %t, want %t", tt.pattern, tt.channel, got, tt.want)
		}
	}
}
