package connector

import (
	"context"
	"errors"
	"fmt"

	"github.com/natstomp/natstomp/bridge"
)

var errNoPolicy = &ClientError{Text: "there is no policy yet, try again later"}

// followBucket takes each policy of the NATS bucket in force, until ctx ends.
func (s *Server) followBucket(ctx context.Context) {
	follow := func() error {
		if err := s.broker.Ready(); err != nil {
			return err
		}
		return bridge.FollowPolicy(ctx, s.broker.JS, s.broker.Replicas(), s.takePolicy)
	}
	s.keepTrying(ctx, "the policy cannot be followed, trying on", follow(), follow)
}

// takePolicy takes a policy of the bucket in force; policyChanged tells of it.
func (s *Server) takePolicy(revision uint64, text []byte) {
	if text == nil {
		s.rights.Fail(bridge.PolicyBucket, errors.New("the policy was deleted"))
		return
	}
	_ = s.rights.Load(fmt.Sprintf("%s, revision %d", bridge.PolicyBucket, revision), text)
}
