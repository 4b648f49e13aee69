package bridge

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// attachments are the subscriptions of this node that read from durable subscriptions. Whoever deletes one tells the
// nodes, since who has no open pull would not notice, and would go on with another one of the name: to another
// destination perhaps.
type attachments struct {
	b *Bridge

	mu         sync.Mutex
	byConsumer map[string]map[*QueueSubscription]struct{} // guarded by mu; by stream and consumer
	deletions  uint64                                     // guarded by mu; how many were heard of
}

// key names a durable subscription in words between nodes.
func (c *consumer) key() string { return c.stream + "." + c.name }

// heard counts the deletions so far.
func (a *attachments) heard() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.deletions
}

// put notes a subscription. heard is what that said before its durable subscription was looked for: a deletion since
// then may be its own.
func (a *attachments) put(s *QueueSubscription, heard uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byConsumer == nil {
		a.byConsumer = make(map[string]map[*QueueSubscription]struct{})
	}
	key := s.d.key()
	if a.byConsumer[key] == nil {
		a.byConsumer[key] = make(map[*QueueSubscription]struct{})
	}
	a.byConsumer[key][s] = struct{}{}
	if a.deletions != heard {
		s.b.launch(func() { s.lookAgain(1) })
	}
}

func (a *attachments) drop(s *QueueSubscription) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := s.d.key()
	delete(a.byConsumer[key], s)
	if len(a.byConsumer[key]) == 0 {
		delete(a.byConsumer, key)
	}
}

// ended has those look again who read from a durable subscription that was deleted. It does not block.
func (a *attachments) ended(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deletions++
	for s := range a.byConsumer[key] {
		a.b.launch(func() { s.lookAgain(1) })
	}
}

// tell says to all nodes, this one too, that a durable subscription was deleted.
func (a *attachments) tell(key string) {
	a.ended(key)
	if err := a.b.queues.presence.say(wordEnded, key); err != nil {
		a.b.log.Debug("the deletion of a durable subscription was not told", "consumer", key, "err", err)
	}
}

// audit has all subscriptions look again, one after the other: while the link was down no word came.
func (a *attachments) audit() {
	a.mu.Lock()
	var list []*QueueSubscription
	for _, set := range a.byConsumer {
		list = slices.AppendSeq(list, maps.Keys(set))
	}
	a.mu.Unlock()
	for _, s := range list {
		s.lookAgain(2) // A server that has just started may not know all of them.
	}
}

// lookAgain returns when it is known whether the durable subscription is still the one that was attached to. If not,
// which so many looks must say, the receiver is told.
func (s *QueueSubscription) lookAgain(looks int) {
	for !s.b.ending() {
		err := s.d.verify()
		pause := pullRetry
		switch {
		case err == nil:
			return
		case errors.Is(err, s.d.gone()):
			if looks--; looks == 0 {
				s.removed(err)
				return
			}
			pause = certainty
		}
		select {
		case <-s.stop:
			return
		default:
			s.b.pause(pause)
		}
	}
}
