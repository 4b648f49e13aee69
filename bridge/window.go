package bridge

import (
	"sync"
	"time"
)

const (
	// windowMessages and windowBytes bound what waits for one stream's PubAck on this node. JetStream refuses
	// publishes above 100,000 messages or 128 MiB waiting.
	windowMessages = 4_000
	windowBytes    = 32 << 20
)

// window bounds the messages and octets that are on their way to one stream. It is also the gate of the queue: while it
// is shut nothing enters, so that what is on the way can be waited for.
type window struct {
	maxMessages, maxBytes int

	mu              sync.Mutex
	room            sync.Cond
	messages, bytes int  // guarded by mu; on the way
	parked          int  // guarded by mu; of the messages, those that wait for the gate's holder
	users           int  // guarded by mu; subscriptions of this node
	used            bool // guarded by mu; there was a subscription
	isShut          bool // guarded by mu
	isGone          bool // guarded by mu; the queue was deleted by natstomp: ask for it anew
}

func newWindow(messages, bytes int) *window {
	w := &window{maxMessages: messages, maxBytes: bytes}
	w.room.L = &w.mu
	return w
}

// enter blocks until there is room. Everything that entered leaves within the publish timeout. The first message always
// fits. False: the queue is gone.
func (w *window) enter(messages, bytes int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.isGone && (w.isShut || w.messages > 0 && (w.messages+messages > w.maxMessages || w.bytes+bytes > w.maxBytes)) {
		w.room.Wait()
	}
	if w.isGone {
		return false
	}
	w.messages += messages
	w.bytes += bytes
	return true
}

func (w *window) leave(messages, bytes int) {
	w.mu.Lock()
	w.messages -= messages
	w.bytes -= bytes
	w.mu.Unlock()
	w.room.Broadcast()
}

// park says that messages which entered wait for the holder of the gate; a negative number takes that back.
func (w *window) park(messages int) {
	w.mu.Lock()
	w.parked += messages
	w.mu.Unlock()
	w.room.Broadcast()
}

// join counts one more subscription. It blocks while the gate is shut. False: the queue is gone.
func (w *window) join() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.isShut && !w.isGone {
		w.room.Wait()
	}
	if w.isGone {
		return false
	}
	w.users++
	w.used = true
	return true
}

// part counts one subscription less.
func (w *window) part() {
	w.mu.Lock()
	w.users--
	w.mu.Unlock()
}

// free says whether this node has no subscription, and whether it ever had one.
func (w *window) free() (unused, used bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.users == 0, w.used
}

// hold shuts the gate, once whoever holds it now opens it. False: the queue is gone.
func (w *window) hold() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.isShut && !w.isGone {
		w.room.Wait()
	}
	w.isShut = true
	return !w.isGone
}

// holdUnused shuts the gate if nobody holds it and there is no subscription.
func (w *window) holdUnused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isShut || w.isGone || w.users > 0 {
		return false
	}
	w.isShut = true
	return true
}

// drain waits until nothing is on the way but what is parked. False: it took too long.
func (w *window) drain(limit time.Duration) bool {
	late := false
	timer := time.AfterFunc(limit, func() {
		w.mu.Lock()
		late = true
		w.mu.Unlock()
		w.room.Broadcast()
	})
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.messages > w.parked && !late {
		w.room.Wait()
	}
	return w.messages <= w.parked
}

// open opens the gate.
func (w *window) open() {
	w.mu.Lock()
	w.isShut = false
	w.mu.Unlock()
	w.room.Broadcast()
}

// goAway tells everybody that the queue was deleted.
func (w *window) goAway() {
	w.mu.Lock()
	w.isGone = true
	w.mu.Unlock()
	w.room.Broadcast()
}

func (w *window) gone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isGone
}
