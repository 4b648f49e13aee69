package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// PolicyBucket is the NATS bucket of authz.kv, PolicyKey the key in it that has the text of the policy (DESIGN section 6).
const (
	PolicyBucket = "natstomp_policy"
	PolicyKey    = "policy.csv"
)

// policyHistory is how many policies the bucket keeps.
const policyHistory = 10

// policyBucket returns the bucket, which it makes where it does not exist.
func policyBucket(ctx context.Context, js jetstream.JetStream, replicas int) (jetstream.KeyValue, error) {
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

// PutPolicy stores the text of a policy in the bucket, for every node, and returns its revision. It does not read the
// policy.
func PutPolicy(ctx context.Context, js jetstream.JetStream, replicas int, text []byte) (revision uint64, err error) {
	kv, err := policyBucket(ctx, js, replicas)
	if err != nil {
		return 0, err
	}
	if revision, err = kv.Put(ctx, PolicyKey, text); err != nil {
		return 0, fmt.Errorf("bucket %s: %w", PolicyBucket, err)
	}
	return revision, nil
}

// FollowPolicy calls changed, one after the other, with the policy of the bucket now and each that follows, and with nil
// when it was deleted. It returns why it can follow the bucket no more, at the latest when ctx ends.
func FollowPolicy(ctx context.Context, js jetstream.JetStream, replicas int, changed func(revision uint64, text []byte)) error {
	kv, err := policyBucket(ctx, js, replicas)
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
				changed(e.Revision(), append([]byte{}, e.Value()...))
			default:
				changed(e.Revision(), nil)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
