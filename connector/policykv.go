package connector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// PolicyBucket is the NATS bucket of authz.kv, PolicyKey the key in it that has the text of the policy (DESIGN section 6).
const (
	PolicyBucket = "natstomp_policy"
	PolicyKey    = "policy.csv"
)

// policyHistory is how many policies the bucket keeps.
const policyHistory = 10

var errNoPolicy = &ClientError{Text: "not ready: there is no policy yet, try again later"}

// EnsurePolicyBucket returns the bucket of authz.kv, which it makes where it does not exist.
func EnsurePolicyBucket(ctx context.Context, js jetstream.JetStream, replicas int) (jetstream.KeyValue, error) {
	kv, err := js.KeyValue(ctx, PolicyBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: PolicyBucket, Description: "natstomp: the policy of all nodes", History: policyHistory,
			Storage: jetstream.FileStorage, Replicas: replicas,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", PolicyBucket, err)
	}
	return kv, nil
}

// followBucket takes each policy of the bucket in force, until ctx ends.
func (s *Server) followBucket(ctx context.Context) {
	said := ""
	for pause := joinLeast; ; pause = min(2*pause, joinMost) {
		err := s.watchBucket(ctx)
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

// watchBucket follows the bucket for as long as that goes well.
func (s *Server) watchBucket(ctx context.Context) error {
	if err := s.broker.Ready(); err != nil {
		return err
	}
	kv, err := EnsurePolicyBucket(ctx, s.broker.JS, s.broker.Replicas())
	if err != nil {
		return err
	}
	w, err := kv.Watch(ctx, PolicyKey)
	if err != nil {
		return fmt.Errorf("bucket %s: %w", PolicyBucket, err)
	}
	defer func() { _ = w.Stop() }() // Its subscription ends with the connection at the latest.
	for {
		select {
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return errors.New("the bucket " + PolicyBucket + " is watched no more")
			case e == nil: // What was there at the beginning is through.
			case e.Operation() == jetstream.KeyValuePut:
				_ = s.rights.Load(fmt.Sprintf("%s, revision %d", PolicyBucket, e.Revision()), e.Value()) // policyChanged tells.
			default:
				s.rights.Fail(PolicyBucket, errors.New("the policy was deleted"))
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
