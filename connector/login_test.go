package connector_test

import (
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/stompclient"
	"github.com/natstomp/natstomp/test/tokens"
)

// TestClockThatIsSetBack (S7): a look at the clock that is too early does not end a session, and is not the last one.
func TestClockThatIsSetBack(t *testing.T) {
	g := newRig(t, func(c *connector.Config) {
		c.Auth.Mode, c.Auth.JWT.HMACSecret, c.Auth.JWT.Leeway = "jwt", tokens.Secret, 0
	})
	end := time.Now().Truncate(time.Second).Add(6 * time.Second)
	token := tokens.Sign(t, time.Now(), tokens.Signers()["HS256"], nil, tokens.Values{"exp": end.Unix()})
	conn, err := stompclient.Dial(g.addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{conn, t}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Connect("1.2", "passcode", token); err != nil {
		t.Fatal(err)
	}
	g.LookAtTheClock()
	c.do("BEGIN", "transaction", "t", "receipt", "r")
	c.receipt("r")
	g.LookAtTheClock()
	c.refused("token expired")
	if late := time.Since(end); late < 0 {
		t.Errorf("ended %s before its token", -late)
	}
}
