package bridge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/natstomp/natstomp/bridge"
)

// TestReturnedMessagesThatFillAPullComeInOrder: JetStream puts a returned message that a pull has no room for behind
// the others.
func TestReturnedMessagesThatFillAPullComeInOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		size func(i int) int
	}{
		{"all of 100 KiB", func(int) int { return 100 << 10 }},
		{"one of 900 KiB behind small ones", func(i int) int { return []int{100, 900 << 10}[min(i/59, 1)] }},
		{"from 1 to 300 KiB", func(i int) int { return (i%3*150 + 1) << 10 }},
		{"some above a pull", func(i int) int { return []int{100, 3 << 19}[i/10%2*(i%2)] }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const messages = 60
			g := newRig(t, nil)
			for i := range messages {
				if err := g.send("/queue/full", fmt.Sprint(i, " ", strings.Repeat("x", tt.size(i)))); err != nil {
					t.Fatal(err)
				}
			}
			var s *bridge.QueueSubscription
			for round := range 3 { // First deliveries, then twice the returned ones.
				c := newConsumer(messages)
				s = g.subscribe("/queue/full", c)
				var got []string
				for range messages {
					_, body := c.next(t)
					number, _, _ := strings.Cut(body, " ")
					got = append(got, number)
				}
				for i, number := range got {
					if number != fmt.Sprint(i) {
						t.Errorf("round %d: message %d is %s; all: %s", round, i, number, got)
						break
					}
				}
				c.close()
				s.Stop(c.takeHeld)
			}
		})
	}
}
