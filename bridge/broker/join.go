package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// minVersion is the oldest nats-server that has all that natstomp uses: atomic batches.
	minVersion = "2.12.0"
	// placementPatience is how long `nats.replicas: auto` waits for a cluster that may be forming.
	placementPatience = 5 * time.Second
)

// Error codes of JetStream that say that so many replicas cannot be placed.
const (
	codeNoPeers              = 10005
	codeReplicasNotSupported = 10074
	codeInsufficient         = 10023
)

// joined is what Join finds out.
type joined struct {
	replicas atomic.Int32 // 0 until Join has succeeded
}

// Replicas is how many copies of a message the streams have that natstomp makes; 0 until Join has succeeded, and for the
// embedded server, which does not say.
func (b *Broker) Replicas() int { return int(b.replicas.Load()) }

// Join finds out what the external NATS offers: whether JetStream is there for this login, and how many replicas can be
// placed. Nothing of natstomp works before it has succeeded; it is to be called again after an error. For the embedded
// server it does nothing.
func (b *Broker) Join(ctx context.Context) error {
	if !b.External() || b.Replicas() > 0 {
		return nil
	}
	if err := b.connected(); err != nil {
		return err
	}
	if _, err := b.JS.AccountInfo(ctx); err != nil {
		return fmt.Errorf("%w: JetStream for this login: %s", ErrNotReady, err.Error())
	}
	if v := b.ServerVersion(); older(v, minVersion) {
		b.log.Warn("the NATS server is older than natstomp needs: transactions on queues will be refused by it",
			"version", v, "needed", minVersion)
	}
	replicas, err := b.chooseReplicas(ctx)
	if err != nil {
		return err
	}
	b.replicas.Store(int32(replicas))
	return nil
}

// chooseReplicas is what nats.replicas says, or for auto 3 if that can be placed, else 1.
func (b *Broker) chooseReplicas(ctx context.Context) (int, error) {
	if b.cfg.Replicas != "auto" {
		return strconv.Atoi(b.cfg.Replicas)
	}
	if b.ClusterName() == "" {
		return 1, nil // A single server: nothing to warn of.
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(placementPatience); ; {
		err := b.probe(ctx, 3)
		if err == nil {
			return 3, nil
		}
		if !unplaceable(err) {
			return 0, fmt.Errorf("%w: nats.replicas: %s", ErrNotReady, err.Error())
		}
		if time.Now().After(deadline) {
			b.log.Warn("nats.replicas: 3 replicas cannot be placed, so new streams have 1; set nats.replicas to 3 to wait for the cluster instead", "err", err)
			return 1, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// probe makes a stream with so many replicas and removes it.
func (b *Broker) probe(ctx context.Context, replicas int) error {
	name := "natstomp_probe_" + rand.Text()
	_, err := b.JS.CreateStream(ctx, jetstream.StreamConfig{
		Name:     name,
		Subjects: []string{"_natstomp.probe." + name},
		Storage:  jetstream.MemoryStorage,
		MaxBytes: 1 << 10,
		Replicas: replicas,
	})
	if err != nil {
		return err
	}
	return b.JS.DeleteStream(ctx, name)
}

func unplaceable(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == codeNoPeers || api.ErrorCode == codeReplicasNotSupported || api.ErrorCode == codeInsufficient)
}

// older compares versions such as 2.12.1 and 2.12.1-RC.1; one that cannot be read is not older.
func older(version, than string) bool {
	var v, t [3]int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2]); n < 2 {
		return false
	}
	_, _ = fmt.Sscanf(than, "%d.%d.%d", &t[0], &t[1], &t[2]) // Our own constant.
	for i := range v {
		if v[i] != t[i] {
			return v[i] < t[i]
		}
	}
	return false
}
