package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/natstomp/natstomp/authz"
	"github.com/natstomp/natstomp/bridge"
	"github.com/natstomp/natstomp/bridge/broker"
)

// CheckPolicy returns an *authz.PolicyError with all that is wrong with the text of a policy under the model that c names,
// or another error if that cannot be read. Origin is what the policy is called.
func (c Config) CheckPolicy(origin string, text []byte) error {
	model, err := c.Authz.model()
	if err != nil {
		return err
	}
	a, err := authz.New(authz.Config{Model: model})
	if err != nil {
		return fmt.Errorf("authz.model: %w", err)
	}
	return a.Load(origin, text)
}

// model is the text of the Casbin model, empty for the one that is built in.
func (a Authz) model() (string, error) {
	if a.Model == "" {
		return "", nil
	}
	text, err := os.ReadFile(a.Model)
	if err != nil {
		return "", fmt.Errorf("authz.model: %w", err)
	}
	return string(text), nil
}

// PushPolicy stores the text of a policy in the bucket of the external NATS that c names, from which every node with
// authz.kv takes it, and returns its revision there. A policy with a fault is not stored: see CheckPolicy. It tries until
// ctx ends.
func PushPolicy(ctx context.Context, c Config, origin string, text []byte) (revision uint64, err error) {
	if !c.NATS.External() {
		return 0, errors.New("nats.url is empty: the policy of a server with a NATS of its own is a file (authz.policy)")
	}
	if err := c.CheckPolicy(origin, text); err != nil {
		return 0, err
	}
	b, err := broker.Start(ctx, c.NATS, broker.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Stop(leastStop, broker.Marks{})) }()
	for {
		if err = b.Join(ctx); err == nil {
			if revision, err = bridge.PutPolicy(ctx, b.JS, b.Replicas(), text); err == nil {
				return revision, nil
			}
		}
		select {
		case <-time.After(againLeast):
		case <-ctx.Done():
			return 0, err
		}
	}
}
