package connector_test

import (
	"testing"
	"time"

	"github.com/natstomp/natstomp/connector"
	"github.com/natstomp/natstomp/test/rig"
	"github.com/natstomp/natstomp/test/tokens"
)

// TestClockThatIsSetBack (S7): a look at the clock that is too early does not end a session, and is not the last one.
func TestClockThatIsSetBack(t *testing.T) {
	g := start(t, func(c *connector.Config) {
		c.Auth.Mode, c.Auth.JWT.HMACSecret, c.Auth.JWT.Leeway = "jwt", tokens.Secret, 0
	})
	end := time.Now().Truncate(time.Second).Add(6 * time.Second)
	token := tokens.Sign(t, time.Now(), tokens.Signers()["HS256"], nil, tokens.Values{"exp": end.Unix()})
	c := rig.Connect(t, g.At("tcp"), "passcode", token)
	g.LookAtTheClock()
	c.Do("BEGIN", "transaction", "t", "receipt", "r")
	c.Receipt("r")
	g.LookAtTheClock()
	c.Refused("token expired")
	if late := time.Since(end); late < 0 {
		t.Errorf("ended %s before its token", -late)
	}
}
