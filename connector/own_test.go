package connector_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/stompclient"
)

// TestClientsThatJoinATopicTogetherSeeTheirOwnMessages: the second finds the topic's NATS subscription in the making and
// must not publish before it is made.
func TestClientsThatJoinATopicTogetherSeeTheirOwnMessages(t *testing.T) {
	const rounds = 100
	g := start(t, nil)
	clients := []*client{g.dial(), g.dial(), g.dial()}
	for round := range rounds {
		topic, id := fmt.Sprint("/topic/own/", round), fmt.Sprint(round)
		var all sync.WaitGroup
		for i, c := range clients {
			all.Go(func() {
				own := fmt.Sprint(round, " of ", i)
				burst := stompclient.New("SUBSCRIBE", "id", id, "destination", topic).Encode("1.2")
				burst = append(burst, stompclient.New("SEND", "destination", topic).WithBody([]byte(own)).Encode("1.2")...)
				if err := c.Write(burst); err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				for {
					f, err := c.Read(rig.Patience)
					if err != nil {
						t.Errorf("client %d, round %d: its own message did not come: %v", i, round, err)
						return
					}
					if string(f.Body) == own {
						return
					}
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		for _, c := range clients {
			c.Do("UNSUBSCRIBE", "id", id)
		}
	}
}
