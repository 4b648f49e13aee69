package connector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/natstomp/natstomp/bridge"
)

var errNoPolicy = &ClientError{Text: "not ready: there is no policy yet, try again later"}

// followBucket takes each policy of the NATS bucket in force, until ctx ends.
func (s *Server) followBucket(ctx context.Context) {
	said := ""
	for pause := joinLeast; ; pause = min(2*pause, joinMost) {
		err := s.broker.Ready()
		if err == nil {
			err = bridge.FollowPolicy(ctx, s.broker.JS, s.broker.Replicas(), s.takePolicy)
		}
		if ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != said {
			said = text
			s.log.Warn("the policy cannot be followed, trying on", "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// takePolicy takes a policy of the bucket in force; policyChanged tells of it.
func (s *Server) takePolicy(revision uint64, text []byte) {
	if text == nil {
		s.rights.Fail(bridge.PolicyBucket, errors.New("the policy was deleted"))
		return
	}
	_ = s.rights.Load(fmt.Sprintf("%s, revision %d", bridge.PolicyBucket, revision), text)
}
